import { printJson, write, type Io } from '../command-line/io.ts'
import type { RunResult, RunPrinter } from './run-result.ts'
import type { Session } from '@tapetree/session'
import type { InFlightItem, Transcript } from '@tapetree/session/view'
import { harmlessJson, jsonText } from '../text/json-text.ts'

/** One object at the end, for the last prompt. */
export class JsonPrinter implements RunPrinter {
  readonly #stdout: Io['stdout']
  #last: RunResult | undefined

  constructor(stdout: Io['stdout']) {
    this.#stdout = stdout
  }

  async print(): Promise<void> {}

  async answered(result: RunResult): Promise<void> {
    this.#last = result
  }

  async end(): Promise<void> {
    if (this.#last) await printJson({ stdout: this.#stdout }, this.#last)
  }
}

interface JsonlPrinterOptions {
  stdout: Io['stdout']
  /** The same session, opened read-only: prints its lines as they are in the log. */
  session: Session
  /** The last line that is not printed. The header always is. */
  after: number
}

/** Prints every line of the log once it is durable, and streamed text in between. */
export class JsonlPrinter implements RunPrinter {
  readonly #options: JsonlPrinterOptions
  #seq = 0
  /** How much of each streamed part is printed. */
  #printed = new Map<string, number>()

  constructor(options: JsonlPrinterOptions) {
    this.#options = options
  }

  async print(transcript: Transcript): Promise<void> {
    if (this.#seq === 0) await this.#printHeader()
    if (transcript.seq > this.#seq) await this.#printLines(transcript.seq)
    const printed = new Map<string, number>()
    for (const item of transcript.inFlight.values()) await this.#printText(item, printed)
    this.#printed = printed
  }

  async answered(result: RunResult): Promise<void> {
    await this.#write(jsonText({ type: 'result', ...result }))
  }

  async end(): Promise<void> {}

  async #printHeader(): Promise<void> {
    for await (const line of this.#options.session.lines()) {
      if (line.type === 'line') await this.#write(line.text)
      break
    }
    this.#seq = Math.max(1, this.#options.after)
  }

  async #printLines(through: number): Promise<void> {
    const { session } = this.#options
    await session.refresh()
    for await (const line of session.lines({ after: this.#seq })) {
      if (line.seq > through) break
      if (line.type === 'line') await this.#write(line.text)
      else await this.#write(jsonText({ type: 'lost', seq: line.seq, count: line.count }))
      this.#seq = line.type === 'line' ? line.seq : line.seq + line.count - 1
    }
  }

  async #printText({ item, run, parts }: InFlightItem, printed: Map<string, number>): Promise<void> {
    for (const { part, kind, off, text } of parts) {
      const key = `${item}/${part}/${kind}`
      const from = Math.max(off, this.#printed.get(key) ?? 0)
      const rest = text.slice(from - off)
      printed.set(key, off + text.length)
      if (rest === '') continue
      await this.#write(jsonText({ type: 'text_delta', item, part, kind, off: from, text: rest, run }))
    }
  }

  async #write(line: string): Promise<void> {
    const { stdout } = this.#options
    await write(stdout, `${stdout.isTTY ? harmlessJson(line) : line}\n`)
  }
}
