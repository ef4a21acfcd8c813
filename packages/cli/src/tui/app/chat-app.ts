import { TuiAltScreen, TuiMainScreen, type Terminal } from '@earendil-works/pi-tui'
import type { ChatEnd, ChatOptions } from '../chat-options.ts'
import { installKeybindings } from '../input/keybindings.ts'
import { assembleChat, type ChatParts } from './chat-parts.ts'

/** The chat on a screen: draws it, runs until the user quits, and restores the terminal. */
export class ChatApp {
  readonly #options: ChatOptions
  readonly #parts: ChatParts
  #isRestored = false

  constructor(options: ChatOptions, terminal: Terminal) {
    installKeybindings()
    this.#options = options
    this.#parts = assembleChat(options, terminal)
  }

  run(): Promise<ChatEnd> {
    return this.#parts.life.run({
      start: () => this.#start(),
      begin: () => this.#begin(),
      restore: () => this.restore(),
    })
  }

  /** Restores the terminal and leaves the last answer on it. May be called at any time, and repeatedly. */
  restore(): void {
    const { drawing, screen, tui } = this.#parts
    drawing.stop()
    if (this.#isRestored) return
    this.#isRestored = true
    screen.finish()
    if (tui instanceof TuiMainScreen) tui.renderNow()
    tui.stop()
  }

  /** Hands the terminal to the shell for a while. */
  pause(): void {
    if (!this.#isRestored) this.#parts.tui.stop({ preserveScreen: true })
  }

  /** Takes the terminal back. */
  resume(): void {
    if (this.#isRestored) return
    this.#parts.tui.start()
    this.#parts.tui.requestRender(true)
  }

  #start(): void {
    const { tui, screen } = this.#parts
    if (tui instanceof TuiAltScreen) tui.setLayoutRoot(screen)
    else tui.addChild(screen)
    tui.setFocus(screen)
    tui.start()
    tui.renderNow()
  }

  #begin(): void {
    const { first, prompt, remarks: listen } = this.#options
    const { history, composer, remarks, openers, sender } = this.#parts
    history.load()
    composer.remember(history.entries)
    listen?.((text) => remarks.warn(text))
    if (first === undefined) remarks.watch(openers.sessions())
    if (prompt !== undefined) sender.send(prompt)
  }
}
