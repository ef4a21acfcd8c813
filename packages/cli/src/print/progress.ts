import type { Transcript, TranscriptItem, ToolCallPart } from '@tapetree/session/view'
import { stylesFor, write, type Styles, type Io } from '../command-line/io.ts'
import { harmless, harmlessLine } from '../text/harmless.ts'
import { textIn } from './run-account.ts'
import { callArgument, contentText } from '../text/content-text.ts'
import { fitText } from '../text/display-width.ts'

interface ProgressOptions {
  io: Pick<Io, 'stderr' | 'env'>
  after: number
  /** Whether text between calls is shown here; otherwise it is already on stdout. */
  showsWords: boolean
  /** Called before each write. */
  endLine: () => Promise<void>
}

/** Progress on stderr: a line for each call, and for each failed one. */
export class Progress {
  readonly #options: ProgressOptions
  readonly #styles: Styles
  readonly #columns: number
  /** The last item examined; its calls may still fail. */
  #seq: number
  readonly #failed = new Set<string>()
  #openFrom: number

  constructor(options: ProgressOptions) {
    const { stderr, env } = options.io
    this.#options = options
    this.#styles = stylesFor(stderr, env)
    this.#columns = Math.max(40, (stderr.isTTY && stderr.columns) || 100) - 4
    this.#seq = options.after
    this.#openFrom = options.after
  }

  /** A notice. */
  async remark(sentence: string): Promise<void> {
    await this.#line('·', harmlessLine(sentence))
  }

  /** A warning. */
  async notice(sentence: string): Promise<void> {
    await this.#line(this.#styles.yellow('!'), harmlessLine(sentence))
  }

  async print({ path: { items } }: Transcript): Promise<void> {
    const recent: TranscriptItem[] = []
    for (let index = items.length - 1; index >= 0; index--) {
      const item = items.at(index)
      if (!item || item.seq <= Math.min(this.#seq, this.#openFrom)) break
      recent.unshift(item)
    }
    for (const item of recent) await this.#printItem(item)
  }

  async #printItem(item: TranscriptItem): Promise<void> {
    if (item.type === 'compaction' && item.seq > this.#seq) await this.remark('The context was compacted.')
    if (item.type !== 'assistant') return this.#passed(item.seq)
    const calls = item.parts.filter((part) => part.type === 'tool_call')
    if (item.seq > this.#seq) {
      const words = textIn(item).trim()
      if (this.#options.showsWords && calls.length > 0 && words !== '') await this.#line('·', harmless(words))
      for (const call of calls) await this.#line(this.#styles.cyan('>'), toolLine(call, this.#columns))
      this.#failed.clear()
      this.#openFrom = item.seq - 1
    }
    for (const call of calls) {
      if (call.status !== 'failed' || this.#failed.has(call.callId)) continue
      this.#failed.add(call.callId)
      await this.#line(this.#styles.red('x'), failedLine(call, this.#columns))
    }
    this.#passed(item.seq)
  }

  #passed(seq: number): void {
    this.#seq = Math.max(this.#seq, seq)
  }

  async #line(mark: string, text: string): Promise<void> {
    try {
      await this.#options.endLine()
      await write(this.#options.io.stderr, `${mark} ${text}\n`)
    } catch {
      // If stderr fails, the work continues without progress. The printer handles errors of stdout.
    }
  }
}

/** A call on one line: the tool and its main argument. */
export function toolLine(call: Pick<ToolCallPart, 'name' | 'input'>, columns = 100): string {
  return fitText(harmlessLine(`${call.name} ${callArgument(call)}`.trim()), columns)
}

/** The first line of the output of a failed call. */
function failedLine({ name, result }: Pick<ToolCallPart, 'name' | 'result'>, columns = 100): string {
  const lines = contentText(result?.content ?? '').split('\n')
  const first = lines.find((line) => line.trim() !== '') ?? ''
  return fitText(harmlessLine(`${name} failed: ${first.trim()}`), columns)
}
