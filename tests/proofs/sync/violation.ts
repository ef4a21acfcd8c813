/** An invariant of PROTOCOL.md that did not hold. */
export interface Violation {
  invariant: string
  message: string
}
