import { wrapTextWithAnsi } from '@earendil-works/pi-tui'
import { harmless } from '../../harmless.ts'
import type { Theme } from '../theme.ts'

type Kind = 'said' | 'warning' | 'error'

const maxLines = 6

/** What the chat itself has to say, above the composer, until the next message goes out. */
export class Remarks {
  #remarks: { kind: Kind; text: string }[] = []
  readonly #onChange: (text: string) => void

  /** Called with each remark, already harmless. */
  constructor(onChange: (text: string) => void) {
    this.#onChange = onChange
  }

  say(text: string): void {
    this.#add('said', text)
  }

  warn(text: string): void {
    this.#add('warning', text)
  }

  fail(error: unknown): void {
    this.#add('error', error instanceof Error ? error.message : String(error))
  }

  /** Work that nobody waits for: what goes wrong is said. */
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

  #add(kind: Kind, text: string): void {
    const shown = harmless(text).trimEnd()
    this.#remarks = [...this.#remarks.filter(({ text: said }) => said !== shown).slice(-3), { kind, text: shown }]
    this.#onChange(shown)
  }
}
