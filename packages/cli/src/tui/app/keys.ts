import { matchesKey } from '@earendil-works/pi-tui'
import type { Composer } from '../input/composer.ts'
import { againQuits, twiceMs, type ChatLife, type Interrupts } from '../chat/chat-life.ts'
import type { CurrentSession } from '../chat/current-session.ts'
import type { Dialogs } from './dialogs.ts'
import { actionFor, type KeyAction } from './key-actions.ts'
import type { PanelOpeners } from './panel-openers.ts'
import type { PanelPlace } from './panel-place.ts'
import { queueOf } from './queue-state.ts'
import type { Remarks } from '../chat/remarks.ts'
import type { Sender } from '../chat/sender.ts'
import type { SessionActions } from '../chat/session-actions.ts'
import type { TranscriptPane } from './transcript-pane.ts'

export interface KeysOptions {
  session: CurrentSession
  composer: Composer
  panels: PanelPlace
  pane: TranscriptPane
  dialogs: Dialogs
  openers: PanelOpeners
  actions: SessionActions
  interrupts: Interrupts
  sender: Sender
  remarks: Remarks
  life: Pick<ChatLife, 'quit'>
  now: () => number
  /** Takes the last message back into the composer, on a new branch. */
  onEditLast: () => Promise<void>
  onEditor: () => Promise<void>
  onRedraw: () => void
  onSuspend: () => void
  /** Inserts the image in the clipboard. */
  onPasteImage: () => Promise<void>
}

/**
 * Dispatches every key: Ctrl-C and Ctrl-Z first, then the open panel, the chat, and the composer. Enter in the composer calls
 * `Sender.send`.
 */
export class Keys {
  readonly #options: KeysOptions
  #lastEscapeMs: number | undefined

  constructor(options: KeysOptions) {
    this.#options = options
  }

  press(data: string): void {
    const { panels, composer, session, pane, dialogs, remarks } = this.#options
    if (matchesKey(data, 'ctrl+c')) return this.#interrupt()
    if (matchesKey(data, 'ctrl+z')) return this.#options.onSuspend()
    if (panels.current) return panels.current.handleInput(data)
    const action = actionFor(data, {
      isBusy: session.isBusy,
      isComposerEmpty: composer.isEmpty,
      hasQueued: session.handle !== undefined && queueOf(session.handle).messages.length > 0,
      takesEscape: composer.takesEscape,
      isAtNewest: pane.scrolling?.isAtNewest ?? true,
      hasPostponed: dialogs.hasPostponed,
      canScroll: pane.scrolling !== undefined,
    })
    if (action === undefined) composer.handleInput(data)
    else remarks.watch(this.#act(action))
  }

  #act(action: KeyAction): Promise<void> | void {
    const { composer, pane, dialogs, openers, actions, sender, life, onEditor, onRedraw, onSuspend } = this.#options
    switch (action) {
      case 'enter':
        return dialogs.recall()
      case 'interrupt':
        return this.#interrupt()
      case 'stop':
        return this.#stop()
      case 'end':
        return life.quit()
      case 'steer':
        return sender.send(composer.take(), 'steer')
      case 'queue':
        return openers.queue()
      case 'edit_queued':
        return this.#editQueued()
      case 'tree':
        return openers.tree()
      case 'sessions':
        return openers.sessions()
      case 'model':
        return openers.model()
      case 'details':
        return pane.toggleDetails()
      case 'next_mode':
        return actions.nextMode()
      case 'history':
        return openers.history()
      case 'editor':
        return onEditor()
      case 'find':
        return openers.find()
      case 'page_up':
        return pane.scrolling?.page(-1)
      case 'page_down':
        return pane.scrolling?.page(1)
      case 'newest':
        return pane.scrolling?.to('end')
      case 'oldest':
        return pane.scrolling?.to('start')
      case 'redraw':
        return onRedraw()
      case 'paste_image':
        return this.#options.onPasteImage()
      case 'palette':
        return openers.palette()
      case 'help':
        return openers.help()
      case 'suspend':
        return onSuspend()
      default:
        return action satisfies never
    }
  }

  /** Takes the last queued message back into the composer. If it is delivered first, nothing changes. */
  async #editQueued(): Promise<void> {
    const { session, actions, composer, openers } = this.#options
    const { handle } = session
    const last = handle && queueOf(handle).messages.at(-1)
    if (!handle || !last) return
    // The queue panel loads the full text, and keeps images.
    if (('truncated' in last && last.truncated) || last.imageIds.length > 0) return openers.queue()
    const isTaken = await actions.attempt('Taking the message back', () =>
      handle.changeQueue('queue.remove', { id: last.id }),
    )
    if (isTaken) composer.text = composer.isEmpty ? last.message : `${last.message}\n${composer.text}`
  }

  #stop(): Promise<void> | void {
    const { openers, actions, remarks, composer, now } = this.#options
    openers.cancel()
    if (actions.isAtWork) return actions.cancel()
    const before = this.#lastEscapeMs
    this.#lastEscapeMs = composer.isEmpty ? now() : undefined
    remarks.clear()
    if (!composer.isEmpty) return undefined
    if (before === undefined || now() - before > twiceMs) {
      return remarks.say('Press Esc again to edit your last message.', { forMs: twiceMs })
    }
    this.#lastEscapeMs = undefined
    return this.#options.onEditLast()
  }

  #interrupt(): void {
    const { interrupts, panels, composer, dialogs, openers, remarks } = this.#options
    switch (interrupts.press({ hasPanel: panels.current !== undefined, isComposerEmpty: composer.isEmpty })) {
      case 'close_panel':
        return panels.isAsking ? dialogs.postpone() : openers.close()
      case 'clear_composer':
        composer.remember([composer.take()])
        remarks.say('Up restores it.', { while: () => composer.isEmpty })
        return remarks.say(againQuits, { forMs: twiceMs })
      case 'nothing':
        return undefined
    }
  }
}
