import type { SessionInfo, SessionStore } from '@tapetree/session'
import { exitCodes, type ExitCode } from '../command-line/exit-code.ts'
import { usageFailure, Failure } from '../command-line/failure.ts'
import { openStore } from '../host/open-store.ts'
import type { Io, Input } from '../command-line/io.ts'
import { placesOf } from '../host/places.ts'
import { answerPrompt } from './answer-prompt.ts'
import { checkSetup, type Setup } from './check-setup.ts'
import { composePrompt, readStdin, type ComposedPrompt } from './compose-prompt.ts'
import { readOutputSchema } from './output-schema.ts'
import { PrintedRun } from './printed-run.ts'
import type { RunOptions } from './run-options.ts'
import { findSession } from '../host/find-session.ts'
import { createInterface } from 'node:readline'
import { failureOf } from '../command-line/failure-of.ts'
import type { Ended, PrintSession } from './print-session.ts'
import { z } from 'zod'

/** From the options to the exit code. `setup` is present if it was already checked, as for a new session. */
export async function printRun(
  options: RunOptions,
  { io, setup: known }: { io: Io; setup: Setup | undefined },
): Promise<ExitCode> {
  const schema = options.outputSchema === undefined ? undefined : await readOutputSchema(options.outputSchema, io)
  const store = await openStore(placesOf(io))
  try {
    const meant = options.session === undefined ? undefined : await meantSession(store, options.session, io.cwd)
    const { model, notices } = known ?? (await setupOf(meant, options, io))
    const prompt = await promptFrom(options, io)
    await using run = await PrintedRun.open({ io, store, options, meant, model, isWhole: schema !== undefined })
    for (const notice of [...notices, ...(prompt?.notices ?? [])]) await run.notice(notice)
    const imageIds = await run.keepImages(prompt?.images ?? [])
    run.letOthersIn()
    await run.resumeFirst()
    const failure =
      options.input === 'jsonl'
        ? await inputFailure(run, { io, prompt, imageIds })
        : await run.report(await answerPrompt(run.session, { text: prompt?.text ?? '', imageIds }, schema))
    await run.end()
    if (failure) throw failure
    return exitCodes.ok
  } finally {
    await store.close()
  }
}

/** An existing session has its own folder and model. */
async function setupOf(meant: SessionInfo | undefined, options: RunOptions, io: Io): Promise<Setup> {
  const { flags, model, toolNames } = options
  return checkSetup({ io: { ...io, cwd: meant?.cwd ?? io.cwd }, flags, model, toolNames, isNew: !meant })
}

/** Undefined if prompts arrive as lines. */
export async function promptFrom({ prompt: typed, input }: RunOptions, io: Io): Promise<ComposedPrompt | undefined> {
  const { cwd, home, stdin, stderr, signal } = io
  if (input === 'jsonl') return typed.trim() === '' ? undefined : composePrompt({ typed, piped: '', cwd, home, signal })
  const piped = await readStdin(stdin, {
    signal,
    onTooLong: () => {
      throw usageFailure(
        'The piped input is too large for a prompt. Name a file instead: the agent can read it in parts.',
      )
    },
    onWaiting: () => stderr.write('! Waiting for the end of stdin. If you pipe nothing in, add < /dev/null.\n'),
  })
  return composePrompt({ typed, piped, cwd, home, signal })
}

function inputFailure(
  run: PrintedRun,
  { io, prompt, imageIds }: { io: Io; prompt: ComposedPrompt | undefined; imageIds: string[] },
): Promise<Failure | undefined> {
  return answerInput({
    session: run.session,
    stdin: io.stdin,
    ...(prompt && { first: { text: prompt.text, imageIds } }),
    onEnded: async (ended) => void (await run.report(ended)),
    onProblem: (sentence) => run.notice(sentence),
    onEndOfInput: () => run.endInput(),
  })
}

/** The session to continue. Refuses a log with unacknowledged damage, because a script cannot judge it. */
export async function meantSession(store: SessionStore, reference: string, cwd: string): Promise<SessionInfo> {
  const found = await findSession(store, reference, reference === 'last' ? { cwd } : {})
  await using session = await store.open(found.id, { readOnly: true })
  const lost = session.damage.filter(({ isNew }) => isNew)
  if (lost.length === 0) return found
  throw new Failure(exitCodes.damaged, `The log of session ${found.id} is damaged.`, {
    type: 'log-damaged',
    why: `${lost.length === 1 ? 'One place' : `${lost.length} places`} in it cannot be read. Everything else is intact.`,
    next: [`tapetree log verify ${found.id}`, `tapetree log repair ${found.id}`],
  })
}

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
async function answerInput(options: InputOptions): Promise<Failure | undefined> {
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
        await session.handle.abort()
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
