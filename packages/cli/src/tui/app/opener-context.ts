import type { SessionSource } from '../../session-source.ts'
import type { Appearance } from './appearance.ts'
import type { CurrentSession } from '../chat/current-session.ts'
import type { Panel } from './panel-place.ts'
import type { Remarks } from '../chat/remarks.ts'
import type { SessionActions } from '../chat/session-actions.ts'

/** What a panel opened from its own file needs. */
export interface OpenerContext {
  source: SessionSource
  session: CurrentSession
  actions: SessionActions
  remarks: Remarks
  appearance: Appearance
  /** The working folder. */
  cwd: string
  /** Scrolls to an entry of the session. */
  onShowEntry: (entryId: string) => void
  onChange: () => void
  /** `follow` is called after each change of the session. */
  open: (panel: Panel, follow?: () => void) => void
  close: () => void
}
