import { stylesFor, type Io, type Output, type Styles } from '../command-line/io.ts'
import { costText, elapsedText } from '../text/amounts.ts'
import { fitText } from '../text/display-width.ts'
import { harmlessLine } from '../text/harmless.ts'
import { checkText, type VariantState } from './variants-table.ts'

const stepMs = 250

/** Shows what the variants do: a block that is drawn again on a terminal, otherwise a line for each step. Erases itself. */
export class VariantsProgress implements Disposable {
  readonly #output: Output
  readonly #styles: Styles
  readonly #variants: readonly VariantState[]
  readonly #told = new Map<number, string>()
  #timer: NodeJS.Timeout | undefined
  #shownLines = 0

  constructor({ stderr, env }: Pick<Io, 'stderr' | 'env'>, variants: readonly VariantState[]) {
    this.#output = stderr
    this.#styles = stylesFor(stderr, env)
    this.#variants = variants
    if (stderr.isTTY) this.#timer = setInterval(() => this.#draw(), stepMs).unref()
  }

  /** A variant has entered another phase. */
  changed({ number, model, phase, outcome, check, failure }: VariantState): void {
    if (this.#output.isTTY) return this.#draw()
    const said = phase === 'ended' ? (outcome ?? '') : phase
    if (this.#told.get(number) === said || phase === 'waiting') return
    this.#told.set(number, said)
    const checked = phase === 'ended' && check ? `, check ${checkText(check)}` : ''
    const why = phase === 'ended' && failure ? `: ${harmlessLine(failure.message)}` : ''
    this.#output.write(
      `· Variant ${number}${model === '' ? '' : ` (${harmlessLine(model)})`}: ${said}${checked}${why}\n`,
    )
  }

  /** Writes a line above the block. */
  notice(sentence: string): void {
    this.#erase()
    this.#output.write(`${this.#styles.yellow('!')} ${harmlessLine(sentence)}\n`)
    if (this.#output.isTTY && this.#timer) this.#draw()
  }

  close(): void {
    clearInterval(this.#timer)
    this.#timer = undefined
    this.#erase()
  }

  [Symbol.dispose](): void {
    this.close()
  }

  #draw(): void {
    const width = Math.max(40, this.#output.columns ?? 80) - 1
    const cost = this.#variants.reduce((sum, variant) => sum + variant.cost, 0)
    const ended = this.#variants.filter(({ phase }) => phase === 'ended').length
    const last = `${ended} of ${this.#variants.length} ended, ${costText(cost)}. Ctrl-C stops all.`
    const modelWidth = Math.max(...this.#variants.map(({ model }) => harmlessLine(model).length))
    const lines = this.#variants.map((variant) => this.#line(variant, { width, modelWidth }))
    this.#erase()
    this.#output.write([...lines, this.#styles.dim(fitText(last, width))].map((line) => `${line}\n`).join(''))
    this.#shownLines = lines.length + 1
  }

  #line(variant: VariantState, { width, modelWidth }: { width: number; modelWidth: number }): string {
    const { number, model, phase, outcome, startedAtMs, durationMs, cost, activity, check, failure } = variant
    const { green, red, cyan, dim } = this.#styles
    const isGood = outcome === 'completed' && (check === undefined || check.exitCode === 0)
    const mark = phase !== 'ended' ? (phase === 'waiting' ? dim('·') : cyan('>')) : isGood ? green('✓') : red('x')
    const time = durationMs ?? (startedAtMs === undefined ? undefined : performance.now() - startedAtMs)
    const state = phase === 'ended' ? (outcome ?? '') : phase
    const detail = phase === 'ended' ? (check ? `check ${checkText(check)}` : (failure?.message ?? '')) : activity
    const amounts = [time === undefined ? '' : elapsedText(time), cost > 0 ? costText(cost) : '']
    const text = [
      `${String(number).padStart(2)}  ${harmlessLine(model).padEnd(modelWidth)}  ${state.padEnd(10)}`,
      (amounts[0] ?? '').padStart(8),
      (amounts[1] ?? '').padStart(7),
      harmlessLine(detail),
    ].join('  ')
    return `${mark} ${fitText(text, width - 2).trimEnd()}`
  }

  #erase(): void {
    if (this.#shownLines > 0) this.#output.write(`\u001b[${this.#shownLines}A\r\u001b[J`)
    this.#shownLines = 0
  }
}
