import type { Transcript, TranscriptItem, ToolCallPart } from '@tapetree/session'
import { stylesFor, type Styles } from '../command-line/colour.ts'
import { harmless, harmlessLine } from '../text/harmless.ts'
import { write, type Io } from '../command-line/io.ts'
import { textIn } from './run-account.ts'
import { callArgument, contentText } from '../text/content-text.ts'
import { fitText } from '../text/display-width.ts'

interface ProgressOptions {
  io: Pick<Io, 'stderr' | 'env'>
  after: number
  /** Whether what the model says between its calls is shown here; otherwise it is on stdout already. */
  showsWords: boolean
  /** Called before something is written. */
  endLine: () => Promise<void>
}

/** What happens on the way, on stderr: each call on a line, and each one that failed. */
export class Progress {
  readonly #options: ProgressOptions
  readonly #styles: Styles
  readonly #columns: number
  /** Of the last item that was looked at; calls of that one may still fail. */
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

  /** Something to know. */
  async remark(sentence: string): Promise<void> {
    await this.#line('·', harmlessLine(sentence))
  }

  /** Something that is not as it should be. */
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
      // Where stderr cannot be written to there is nobody to tell, and the work goes on. Of stdout its printer hears.
    }
  }
}

/** A call on one line: the tool and what it is about. */
export function toolLine(call: Pick<ToolCallPart, 'name' | 'input'>, columns = 100): string {
  return fitText(harmlessLine(`${call.name} ${callArgument(call)}`.trim()), columns)
}

/** The first line of what a call that failed had to say. */
function failedLine({ name, result }: Pick<ToolCallPart, 'name' | 'result'>, columns = 100): string {
  const lines = contentText(result?.content ?? '').split('\n')
  const first = lines.find((line) => line.trim() !== '') ?? ''
  return fitText(harmlessLine(`${name} failed: ${first.trim()}`), columns)
}
