import type { Component, Focusable } from '@earendil-works/pi-tui'
import type { SessionSource } from '../../session-source.ts'
import type { Appearance } from './appearance.ts'
import type { CurrentSession } from '../chat/current-session.ts'
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
  /** Goes back to an entry: in the conversation, the files or both. */
  onGo: (entryId: string) => Promise<void>
  onChange: () => void
  /** `follow` is called after each change of the session. */
  open: (panel: Panel, follow?: () => void) => void
  close: () => void
}

/** Replaces the composer while it is open. */
export interface Panel extends Component, Focusable {
  handleInput(data: string): void
  setRows(rows: number): void
  /** It takes the whole screen; the conversation is hidden. */
  readonly isFullScreen?: boolean
}

/** One panel at a time: requests of the session take precedence over panels that the user opened. */
export class PanelPlace {
  #chosen: Panel | undefined
  #follow: () => void = () => undefined
  #asked: Panel | undefined

  get current(): Panel | undefined {
    return this.#asked ?? this.#chosen
  }

  get isAsking(): boolean {
    return this.#asked !== undefined
  }

  follow(): void {
    if (this.#chosen) this.#follow()
  }

  /** `follow` is called after each change of the session, to update the panel. */
  choose(panel: Panel | undefined, follow: () => void = () => undefined): void {
    this.#chosen = panel
    this.#follow = follow
    if (panel) panel.focused = true
  }

  ask(panel: Panel | undefined): void {
    this.#asked = panel
    if (panel) panel.focused = true
  }
}
