import { createInterface } from 'node:readline'
import { exitCodes } from '../command-line/exit-code.ts'
import { failureOf } from '../command-line/failure-of.ts'
import { Failure, usageFailure } from '../command-line/failure.ts'
import type { Input } from '../command-line/io.ts'
import type { Ended, PrintSession } from './print-session.ts'
import { z } from 'zod'

interface InputOptions {
  session: PrintSession
  stdin: Input
  /** Sent before any line is read. */
  first?: { text: string; imageIds: string[] }
  /** Called once for each run, when it has ended. */
  onEnded: (ended: Ended) => Promise<void>
  /** Called for a line that could not be executed. */
  onProblem: (sentence: string) => Promise<void>
  /** No more answers can arrive. */
  onEndOfInput: () => void
}

/** Executes lines of JSON until there are no more and nothing is pending. Returns the first failure, if any. */
export async function answerInput(options: InputOptions): Promise<Failure | undefined> {
  const { stdin, session, first, onEndOfInput, onProblem } = options
  const { signal } = session
  const reports = new Reports(options)
  if (first) reports.add((await session.send('prompt', first.text, first.imageIds)).ended)
  // Do not await anything between this and the loop: lines that arrive earlier would be lost.
  const lines = createInterface({ input: stdin, crlfDelay: Infinity })
  const stop = (): void => lines.close()
  signal.addEventListener('abort', stop, { once: true })
  if (signal.aborted) stop()
  let refused: Failure | undefined
  let number = 0
  for await (const text of lines) {
    number++
    if (text.trim() === '') continue
    const line = readInputLine(text)
    const problem = typeof line === 'string' ? malformed(line) : await carryOut(line, session, reports)
    if (problem === undefined) continue
    refused ??= problem
    await onProblem(`Line ${number} of stdin failed. ${problem.message}`)
  }
  signal.removeEventListener('abort', stop)
  // Unread lines were not executed either.
  const cut = session.stopFailure
  onEndOfInput()
  return (await reports.failure()) ?? refused ?? cut
}

function malformed(message: string): Failure {
  return usageFailure(message, ['tapetree run --help'])
}

/** The failure, if there is one. */
async function carryOut(line: InputLine, session: PrintSession, reports: Reports): Promise<Failure | undefined> {
  try {
    switch (line.type) {
      case 'prompt':
      case 'steer':
      case 'follow_up':
        reports.add((await session.send(line.type, line.text)).ended)
        return undefined
      case 'answer': {
        const { request_id: requestId, option_id: optionId, text, outcome } = line
        await session.handle.answer(requestId, {
          ...(optionId !== undefined && { optionId }),
          ...(text !== undefined && { text }),
          ...(outcome && { outcome }),
        })
        return undefined
      }
      case 'cancel':
        await session.handle.cancel()
        return undefined
      default:
        return line satisfies never
    }
  } catch (error) {
    return refusal(failureOf(error))
  }
}

/** The line was valid; a refusal is not a usage error. */
function refusal({ code, message, type, why, next, cause }: Failure): Failure {
  const isElsewhere = code === exitCodes.ownedElsewhere || code === exitCodes.interrupted
  const details = { type, next, cause, ...(why !== undefined && { why }) }
  return new Failure(isElsewhere ? code : exitCodes.runFailed, message, details)
}

/** Reports runs in order and each once: the run that received a steer also answers it. */
class Reports {
  readonly #options: InputOptions
  readonly #told = new Set<string>()
  readonly #ended: Promise<Failure | undefined>[] = []

  constructor(options: InputOptions) {
    this.#options = options
  }

  add(ended: Promise<Ended>): void {
    const before = this.#ended.at(-1) ?? Promise.resolve(undefined)
    const told = before.catch(() => undefined).then(async () => this.#tell(await ended))
    told.catch(() => undefined)
    this.#ended.push(told)
  }

  /** The first failure. */
  async failure(): Promise<Failure | undefined> {
    const failures = await Promise.all(this.#ended)
    return failures.find((failure) => failure !== undefined)
  }

  async #tell(ended: Ended): Promise<Failure | undefined> {
    const { end } = ended
    if (end.type === 'run') {
      if (this.#told.has(end.end.runId)) return undefined
      this.#told.add(end.end.runId)
    }
    await this.#options.onEnded(ended)
    return ended.failure
  }
}

const text = z.string().min(1)

const inputLine = z.discriminatedUnion('type', [
  z.strictObject({ type: z.literal('prompt'), text }),
  z.strictObject({ type: z.literal('steer'), text }),
  z.strictObject({ type: z.literal('follow_up'), text }),
  z.strictObject({
    type: z.literal('answer'),
    request_id: z.string().min(1),
    option_id: z.string().exactOptional(),
    text: z.string().exactOptional(),
    outcome: z.enum(['allowed', 'rejected', 'cancelled']).exactOptional(),
  }),
  z.strictObject({ type: z.literal('cancel') }),
])

/** The lines that stdin may have with `--input jsonl`. */
type InputLine = z.output<typeof inputLine>

/** The line, or a sentence about what is wrong with it. */
function readInputLine(line: string): InputLine | string {
  let value: unknown
  try {
    value = JSON.parse(line)
  } catch {
    return 'It is not JSON.'
  }
  const { data, error } = inputLine.safeParse(value)
  return data ?? z.prettifyError(error).replaceAll(/\s*\n\s*/g, ' ')
}
