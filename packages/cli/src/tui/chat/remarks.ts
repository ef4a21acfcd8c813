import { wrapTextWithAnsi } from '@earendil-works/pi-tui'
import { harmless } from '../../text/harmless.ts'
import type { Theme } from '../theme.ts'

type Kind = 'said' | 'warning' | 'error'

const maxLines = 6

/** How long a remark is true. If absent, it describes an event and stays until the next message is sent. */
export interface Validity {
  /** Checked at each frame. Once it is false, the remark is removed for good. */
  while?: () => boolean
  forMs?: number
}

interface Remark extends Validity {
  kind: Kind
  text: string
}

/** Remarks of the chat itself, above the composer, until the next message is sent or they are no longer true. */
export class Remarks {
  #remarks: Remark[] = []
  readonly #onChange: (text: string) => void
  readonly #onGone: () => void

  /** `onChange` is called with each remark, already harmless; `onGone` when a remark expires by itself. */
  constructor(onChange: (text: string) => void, onGone: () => void = () => undefined) {
    this.#onChange = onChange
    this.#onGone = onGone
  }

  say(text: string, validity: Validity = {}): void {
    this.#add('said', text, validity)
  }

  warn(text: string, validity: Validity = {}): void {
    this.#add('warning', text, validity)
  }

  fail(error: unknown): void {
    this.#add('error', error instanceof Error ? error.message : String(error))
  }

  /** Runs background work and shows its errors. */
  watch(work: Promise<unknown> | void): void {
    void work?.catch((error: unknown) => this.fail(error))
  }

  clear(): void {
    this.#remarks = []
  }

  get isEmpty(): boolean {
    return this.#remarks.length === 0
  }

  render(width: number, theme: Theme): string[] {
    this.#remarks = this.#remarks.filter((remark) => remark.while?.() ?? true)
    const style = { said: theme.muted, warning: theme.warning, error: theme.error }
    const lines = this.#remarks.flatMap(({ kind, text }) =>
      text
        .split('\n')
        .flatMap((line) => wrapTextWithAnsi(line, Math.max(1, width - 2)).map((part) => ` ${style[kind](part)}`)),
    )
    return lines.length <= maxLines
      ? lines
      : [...lines.slice(0, maxLines - 1), theme.muted(` … ${lines.length - maxLines + 1} more lines`)]
  }

  #add(kind: Kind, text: string, validity: Validity = {}): void {
    const shown = harmless(text).trimEnd()
    const remark = { kind, text: shown, ...validity }
    this.#remarks = [...this.#remarks.filter(({ text: said }) => said !== shown).slice(-3), remark]
    if (validity.forMs !== undefined) setTimeout(() => this.#expire(remark), validity.forMs).unref()
    this.#onChange(shown)
  }

  #expire(remark: Remark): void {
    if (!this.#remarks.includes(remark)) return
    this.#remarks = this.#remarks.filter((each) => each !== remark)
    this.#onGone()
  }
}
