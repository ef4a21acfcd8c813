import type { Page } from 'playwright-core'
import type { FakeHome } from '../../../packages/cli/src/testing/fake-home.ts'

/** One screen of the web app, used as a person uses it. It runs once for each size and theme. */
export interface Journey {
  page: Page
  home: FakeHome
  /** The address of the app, without a fragment. */
  base: string
  /** Size and theme, for example `360-light`. */
  name: string
  /** Checks the page as it is now, and keeps a picture. */
  look: (screen: string) => Promise<void>
  complain: (problem: string) => void
  /** The session with branches, written by `seedTree`. */
  treeId: string
}
