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
  /** The folder whose sessions are listed first; undefined for those of all folders. */
  folder: string | undefined
  /** Scrolls to an entry of the session. */
  onShowEntry: (entryId: string) => void
  /** Goes back to an entry: in the conversation, the files or both. */
  onGo: (entryId: string) => Promise<void>
  onChange: () => void
  open: (panel: Panel, listeners?: PanelListeners) => void
  close: () => void
}

/** Replaces the composer while it is open. */
export interface Panel extends Component, Focusable {
  handleInput(data: string): void
  setRows(rows: number): void
  /** It takes the whole screen; the conversation is hidden. */
  readonly isFullScreen?: boolean
}

export interface PanelListeners {
  /** Called after each change of the session, to update the panel. */
  follow?: () => void
  /** Called when the panel is gone, however: it was answered, the user closed it, or another one replaced it. */
  onClosed?: () => void
}

/** One panel at a time: requests of the session take precedence over panels that the user opened. */
export class PanelPlace {
  #chosen: Panel | undefined
  #listeners: PanelListeners = {}
  #asked: Panel | undefined

  get current(): Panel | undefined {
    return this.#asked ?? this.#chosen
  }

  get isAsking(): boolean {
    return this.#asked !== undefined
  }

  follow(): void {
    this.#listeners.follow?.()
  }

  choose(panel: Panel | undefined, listeners: PanelListeners = {}): void {
    const { onClosed } = this.#listeners
    this.#chosen = panel
    this.#listeners = listeners
    if (panel) panel.focused = true
    onClosed?.()
  }

  ask(panel: Panel | undefined): void {
    this.#asked = panel
    if (panel) panel.focused = true
  }
}
