import type { AssistantItem, InFlightItem, Transcript } from '@tapetree/session/view'
import { harmless } from '../text/harmless.ts'
import { write, printJson, type Io } from '../command-line/io.ts'
import { textIn } from './run-account.ts'
import type { RunPrinter, RunResult } from './run-result.ts'

/**
 * The answer as text. Only text that no call follows is the answer, so a program receives it when the run is over. A person sees all text
 * as it is streamed.
 */
export class TextPrinter implements RunPrinter {
  readonly #stdout: Io['stdout']
  /** Only JSON that matches the schema is an answer. */
  readonly #isWhole: boolean
  /** Whether text is printed as it is streamed. */
  readonly streams: boolean
  /** How much of each part of the streamed item is printed. */
  #printed = new Map<string, number>()
  #seq: number
  #isMidLine = false

  constructor(stdout: Io['stdout'], { after, isWhole }: { after: number; isWhole: boolean }) {
    this.#stdout = stdout
    this.#seq = after
    this.#isWhole = isWhole
    this.streams = !isWhole && stdout.isTTY === true
  }

  /** Ends the line before other output on the same screen. */
  async endLine(): Promise<void> {
    if (this.#isMidLine) await this.#write('\n')
  }

  async print(transcript: Transcript): Promise<void> {
    if (!this.streams) return
    for (const item of newAnswers(transcript, this.#seq)) await this.#printLanded(item)
    this.#seq = Math.max(this.#seq, transcript.seq)
    for (const item of transcript.inFlight.values()) await this.#printInFlight(item)
  }

  async answered({ text, output, outcome }: RunResult): Promise<void> {
    await this.endLine()
    if (output !== undefined) return printJson({ stdout: this.#stdout }, output)
    const isAnswer = outcome === 'completed' || outcome === 'handled'
    if (!isAnswer || this.#isWhole || text === '' || (this.streams && outcome !== 'handled')) return
    const shown = this.#stdout.isTTY ? harmless(text) : text
    await write(this.#stdout, shown.endsWith('\n') ? shown : `${shown}\n`)
  }

  async end(): Promise<void> {
    await this.endLine()
  }

  async #printLanded(item: AssistantItem): Promise<void> {
    for (const [index, part] of item.parts.entries()) {
      if (part.type === 'text') await this.#printRest(`${item.id}/${index}`, 0, part.text)
    }
    if (textIn(item) !== '') await this.endLine()
    this.#printed = new Map()
  }

  async #printInFlight({ item, parts }: InFlightItem): Promise<void> {
    for (const { kind, part, off, text } of parts) {
      if (kind === 'text') await this.#printRest(`${item}/${part}`, off, text)
    }
  }

  async #printRest(key: string, off: number, text: string): Promise<void> {
    const printed = this.#printed.get(key) ?? 0
    const rest = text.slice(Math.max(0, printed - off))
    this.#printed.set(key, off + text.length)
    if (rest !== '') await this.#write(harmless(rest))
  }

  async #write(text: string): Promise<void> {
    this.#isMidLine = !text.endsWith('\n')
    await write(this.#stdout, text)
  }
}

/** Oldest first. */
function newAnswers({ path: { items } }: Transcript, seq: number): AssistantItem[] {
  const found: AssistantItem[] = []
  for (let index = items.length - 1; index >= 0; index--) {
    const item = items.at(index)
    if (!item || item.seq <= seq) break
    if (item.type === 'assistant') found.unshift(item)
  }
  return found
}
