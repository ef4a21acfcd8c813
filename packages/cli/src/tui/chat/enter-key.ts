/** What Enter does while a run goes on: steers it, or waits for its end. */
export interface EnterKey {
  steers: boolean
}
