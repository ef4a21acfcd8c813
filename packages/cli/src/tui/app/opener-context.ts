import type { SessionSource } from '../../session-source.ts'
import type { Appearance } from './appearance.ts'
import type { CurrentSession } from '../chat/current-session.ts'
import type { Panel } from './panel-place.ts'
import type { Remarks } from '../chat/remarks.ts'
import type { SessionActions } from '../chat/session-actions.ts'

/** What a panel needs that is opened in a file of its own. */
export interface OpenerContext {
  source: SessionSource
  session: CurrentSession
  actions: SessionActions
  remarks: Remarks
  appearance: Appearance
  /** The folder one works in. */
  cwd: string
  /** Brings an entry of the session into sight. */
  onShowEntry: (entryId: string) => void
  onChange: () => void
  /** `follow` is called after each change of the session. */
  open: (panel: Panel, follow?: () => void) => void
  close: () => void
}
