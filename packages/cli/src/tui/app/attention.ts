import type { Terminal } from '@earendil-works/pi-tui'
import { basename } from 'node:path'
import { fitText } from '../../text/display-width.ts'
import { harmlessLine } from '../../text/harmless.ts'

export interface AttentionOptions {
  terminal: Terminal
  env: Readonly<Record<string, string | undefined>>
  /** The alternate screen reports the focus already. */
  reportsFocus: boolean
  now: () => number
}

/** What the session does, as far as somebody elsewhere wants to know it. */
export interface Situation {
  folder: string
  isBusy: boolean
  /** The ids of pending requests. */
  requests: readonly string[]
}

/** Without reports of the focus, the user counts as away after this time without a key. */
const awayAfterMs = 60_000
const longestFolder = 40

const [focusIn, focusOut] = ['\u001b[I', '\u001b[O']

/**
 * Calls the user: sets the title of the terminal and, while the user looks elsewhere, rings the bell and sends a notification when the agent
 * needs an answer or is done. Its texts are our own and the name of the folder, so that nothing of a model gets there.
 */
export class Attention {
  readonly #options: AttentionOptions
  #isFocused: boolean | undefined
  #lastKeyMs: number
  #before: Situation | undefined
  #title = ''
  #isOn = false

  constructor(options: AttentionOptions) {
    this.#options = options
    this.#lastKeyMs = options.now()
    watchInput(options.terminal, (data) => this.#takes(data))
  }

  start(): void {
    const { terminal, reportsFocus } = this.#options
    this.#isOn = true
    this.#title = ''
    terminal.write(`${pushTitle}${reportsFocus ? '' : '\u001b[?1004h'}`)
  }

  /** The terminal gets its own title again. */
  stop(): void {
    if (!this.#isOn) return
    this.#isOn = false
    this.#options.terminal.write(`${this.#options.reportsFocus ? '' : '\u001b[?1004l'}${popTitle}`)
  }

  /** Call it after each change of the session. */
  update(now: Situation): void {
    if (!this.#isOn) return
    const before = this.#before
    this.#before = now
    this.#setTitle(now)
    if (!before || !this.#isAway) return
    const folder = folderName(now)
    if (now.requests.some((id) => !before.requests.includes(id))) this.#call(`tapetree needs you in ${folder}`)
    else if (before.isBusy && !now.isBusy) this.#call(`tapetree is done in ${folder}`)
  }

  get #isAway(): boolean {
    const { now } = this.#options
    return this.#isFocused === undefined ? now() - this.#lastKeyMs >= awayAfterMs : !this.#isFocused
  }

  #setTitle(now: Situation): void {
    const asked = now.requests.length
    const sign = asked > 0 ? `? (${asked}) ` : now.isBusy ? '● ' : ''
    const title = `${sign}tapetree · ${folderName(now)}`
    if (title === this.#title) return
    this.#title = title
    this.#options.terminal.setTitle(title)
  }

  #call(text: string): void {
    const { terminal, env } = this.#options
    const isOther = env['VTE_VERSION'] !== undefined || /^(?:foot|rxvt)/.test(env['TERM'] ?? '')
    terminal.write(`\u0007${isOther ? `\u001b]777;notify;tapetree;${text}\u0007` : `\u001b]9;${text}\u0007`}`)
  }

  /** Whether the screen should see this input. */
  #takes(data: string): boolean {
    const isFocus = data === focusIn || data === focusOut
    if (isFocus) this.#isFocused = data === focusIn
    else this.#lastKeyMs = this.#options.now()
    return !isFocus || this.#options.reportsFocus
  }
}

const pushTitle = '\u001b[22;0t'
const popTitle = '\u001b[23;0t'

function folderName({ folder }: Situation): string {
  return fitText(harmlessLine(basename(folder) || folder), longestFolder)
}

/** The alternate screen keeps reports of the focus for itself, so they are seen before it. */
function watchInput(terminal: Terminal, takes: (data: string) => boolean): void {
  const start = terminal.start.bind(terminal)
  terminal.start = (onInput, onResize) => start((data) => takes(data) && onInput(data), onResize)
}
