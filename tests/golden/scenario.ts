import type { Stage } from './stage.ts'

/** One golden session: what happens in it, in words and as a play. */
export interface Scenario {
  /** Of its log in this folder. */
  name: string
  /** A sentence. */
  title: string
  play: (stage: Stage) => Promise<void>
}

export interface ScenarioGroup {
  title: string
  scenarios: Scenario[]
}
