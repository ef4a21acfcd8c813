import type { SessionChange, SessionHandle, PromptResult } from '@tapetree/client'
import { Failure } from '../command-line/failure.ts'
import { harmlessLine } from '../text/harmless.ts'
import { OutputError } from '../command-line/io.ts'
import type { AnsweredPrompt } from './answer-prompt.ts'
import { leftBehindIn } from './run-watch.ts'
import { makePrinters, PacedPrinter, type Printers } from './make-printer.ts'
import { openHostedSession, runClientName, type HostedSession, type HostedSessionOptions } from './hosted-session.ts'
import { PrintSession } from './print-session.ts'
import { RequestRefuser } from './refuse-requests.ts'
import { resultOf } from './run-result.ts'
import type { SessionStore } from '@tapetree/session'
import { fromDisk, type DiskLine, type Line } from '@tapetree/session/format'
import type { PermissionRequest } from '@tapetree/session/view'
import { exitCodes } from '../command-line/exit-code.ts'

interface PrintedRunOptions extends Omit<HostedSessionOptions, 'onProblem'> {
  /** Prints only the complete answer, because it must match a schema. */
  isWhole: boolean
}

/** The session of a run with everything that prints it, answers for it and stops it. */
export class PrintedRun implements AsyncDisposable {
  readonly session: PrintSession
  readonly #session: HostedSession
  readonly #printers: Printers
  readonly #paced: PacedPrinter
  readonly #refuser: RequestRefuser
  readonly #stops: (() => void)[] = []
  /** The writer of stdin can answer. */
  #isInputOpen: boolean
  #retry = ''

  private constructor({ io, store, options }: PrintedRunOptions, open: HostedSession, printers: Printers) {
    const { handle } = open.opened
    this.#session = open
    this.#printers = printers
    this.#isInputOpen = options.input === 'jsonl'
    this.#refuser = new RequestRefuser({
      handle,
      isOurs: (runId) => this.#isOurs(runId),
      isSomebodyThere: () => this.#isSomebodyThere(),
      onWaiting: ({ title, requestId }) => this.#say(`Waiting for an answer (${requestId}): ${title}`),
      onUnanswered: ({ title }) => this.#say(`No user is present to answer: ${title}`),
    })
    this.session = new PrintSession({
      handle,
      isOwner: () => this.#isOwner,
      refusalsTo: (runId) => this.#refuser.to(runId),
      findOutcome: (sought) => outcomeInLog(store, sought),
      onTaken: () => this.#refuser.look(),
    })
    this.#paced = new PacedPrinter(handle, {
      print: async (transcript) => {
        await printers.printer.print(transcript)
        await printers.progress.print(transcript)
      },
      // The reader of stdout has gone, so the rest is not needed.
      onFailure: () => this.session.stop('unread'),
    })
    this.#stops.push(handle.subscribe((change) => this.#tellOfRetry(change, handle)))
    this.#stopWith(io.signal, options.timeoutMs)
  }

  static async open(wanted: PrintedRunOptions): Promise<PrintedRun> {
    const { io, store, options, meant, isWhole } = wanted
    const onProblem = (sentence: string): void => void io.stderr.write(`! ${harmlessLine(sentence)}\n`)
    const open = await openHostedSession({ ...wanted, onProblem })
    const { sessionId, transcript } = open.opened.handle
    const { format } = options
    const making = makePrinters({ io, store, sessionId, format, transcript, isNew: !meant, isWhole })
    const printers = await making.catch(async (error: unknown) => {
      await open.host.close()
      throw error
    })
    const run = new PrintedRun(wanted, open, printers)
    const { access } = open.opened
    const where = access.type === 'attached' ? `, in ${access.where}` : ''
    await printers.progress.remark(`Session ${sessionId}${where}`)
    if (open.opened.handle.state('config')?.openRestore !== undefined)
      await run.notice(
        `Putting files back was interrupted: some are old and some are new. Run tapetree sessions rewind ${sessionId} --interrupted finish, or undo.`,
      )
    return run
  }

  async keepImages(images: readonly { mediaType: string; bytes: Uint8Array }[]): Promise<string[]> {
    const { sessionId } = this.session.handle
    return Promise.all(images.map((image) => this.#session.host.keepImage(sessionId, image)))
  }

  /** Lets other screens attach in the background. */
  letOthersIn(): void {
    this.#session.host.listen().catch((error: unknown) => this.#say(String(error)))
  }

  async notice(sentence: string): Promise<void> {
    await this.#printers.progress.notice(sentence)
  }

  /** Before the first prompt: finishes a run that an earlier process left interrupted. */
  async resumeFirst(): Promise<void> {
    await resumeFirst(this.session, {
      isSomebodyThere: this.#isSomebodyThere(),
      // The writer of stdin may have to answer for it.
      goesOn: this.#isInputOpen,
      say: (sentence) => this.notice(sentence),
    })
  }

  /** Prints the outcome. Returns the failure, if there is one. */
  async report({ end, account, failure, output }: AnsweredPrompt): Promise<Failure | undefined> {
    const { sessionId } = this.session.handle
    const result = resultOf({ sessionId, end, account, failure, ...(output !== undefined && { output }) })
    await unlessUnread(async () => {
      await this.#paced.settled()
      await this.#printers.printer.answered(result)
    })
    return failure
  }

  /** From now on no answers can arrive. */
  endInput(): void {
    this.#isInputOpen = false
    this.#refuser.look()
  }

  /** Prints nothing more. The owner of a session waits for the prompts of others before it exits. */
  async end(): Promise<void> {
    this.#paced.close()
    await unlessUnread(() => this.#printers.printer.end())
    if (!this.#isOwner) return
    await untilIdle(this.session.handle, {
      signal: this.session.signal,
      onWaiting: () => this.#say('The prompt is answered. Waiting for the prompts of others in this session.'),
    })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const stop of this.#stops) stop()
    this.#refuser.close()
    this.#paced.close()
    this.session.close()
    await this.#printers.close()
    await this.session.handle.close()
    await this.#session.host.close()
  }

  get #isOwner(): boolean {
    return this.#session.opened.access.type === 'owner'
  }

  /** Leaves a run of another client to that client while it is connected. An interrupted run needs more than an answer. */
  #isOurs(runId: string): boolean {
    const { handle } = this.session
    if (leftBehindIn(handle) !== undefined) return false
    const isAlone = (handle.state('presence') ?? []).length <= 1
    return this.session.isOwn(runId) || (this.#isOwner && isAlone)
  }

  /** The owner of a remote session may have a screen, and other screens may watch ours. Another `tapetree run` cannot answer. */
  #isSomebodyThere(): boolean {
    const present = this.#session.opened.handle.state('presence') ?? []
    return this.#isInputOpen || present.some(({ name }) => name !== runClientName)
  }

  #stopWith(signal: AbortSignal, timeoutMs: number | undefined): void {
    const { sessionId } = this.session.handle
    const interrupt = (): void => {
      this.#say(`Interrupted. To continue: tapetree run --session ${sessionId} "Go on"`)
      this.session.stop('interrupted')
    }
    if (signal.aborted) interrupt()
    signal.addEventListener('abort', interrupt, { once: true })
    this.#stops.push(() => signal.removeEventListener('abort', interrupt))
    if (timeoutMs === undefined) return
    const timer = setTimeout(() => this.session.stop('timeout'), timeoutMs)
    this.#stops.push(() => clearTimeout(timer))
  }

  #tellOfRetry(change: SessionChange, handle: SessionHandle): void {
    if (change.type !== 'state' || change.key !== 'run') return
    const waiting = handle.state('run')?.waitingFor
    if (waiting?.type !== 'auto_retry_start') return
    const { runId, attempt, delayMs, error } = waiting
    if (this.#retry === `${runId}/${attempt}`) return
    this.#retry = `${runId}/${attempt}`
    this.#say(`${error.message} Retrying in ${Math.ceil(delayMs / 1000)} s.`)
  }

  #say(sentence: string): void {
    // If stderr fails, there is no other way to report it.
    this.notice(sentence).catch(() => undefined)
  }
}

/** Ignores EPIPE: the reader has gone and the exit code reports the outcome. */
async function unlessUnread(printing: () => Promise<void>): Promise<void> {
  try {
    await printing()
  } catch (error) {
    if (!(error instanceof OutputError && error.isUnread)) throw error
  }
}

interface ResumeOptions {
  /** A client that can answer what the run waits for. */
  isSomebodyThere: boolean
  /** Whether the next prompt can be queued behind the run. Otherwise waits for its end. */
  goesOn: boolean
  say: (sentence: string) => Promise<void>
}

/** Resumes an interrupted run before any prompt: a prompt would close the run and drop its pending calls. */
async function resumeFirst(session: PrintSession, options: ResumeOptions): Promise<void> {
  const { isSomebodyThere, goesOn, say } = options
  const { handle } = session
  const runId = leftBehindIn(handle)
  if (runId === undefined) return
  const [open] = handle.transcript.permissions
  if (open && !isSomebodyThere) throw waitsForAnswer(handle.sessionId, open)
  await say('A run was interrupted in this session. Resuming it before the prompt.')
  const { ended } = await session.resume(runId)
  const told = ended.then(({ failure }) => say(`The interrupted run has ended. ${failure?.message ?? ''}`.trim()))
  // If it was stopped, it has not ended.
  if (goesOn) told.catch(() => undefined)
  else await told
}

function waitsForAnswer(sessionId: string, { title }: PermissionRequest): Failure {
  const message = `A run was interrupted in this session while it waited for an answer: ${harmlessLine(title)}`
  return new Failure(exitCodes.permissionNeeded, message, {
    type: 'run-interrupted',
    why: 'No user is present to answer, and a prompt would leave that run unfinished.',
    next: [`tapetree --session ${sessionId}`],
  })
}

interface IdleOptions {
  /** Ends the waiting. */
  signal: AbortSignal
  /** Called once, if there is a run to wait for. */
  onWaiting: () => void
}

/** Resolves when the session is idle and no queued message will start by itself. */
function untilIdle(handle: SessionHandle, { signal, onWaiting }: IdleOptions): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  const isIdle = (): boolean => !isAtWork(handle) || handle.status.type === 'closed' || signal.aborted
  let isTold = false
  const look = (): void => {
    if (isIdle()) return resolve()
    if (isTold || handle.transcript.run === null) return
    isTold = true
    onWaiting()
  }
  const stop = handle.subscribe(look)
  signal.addEventListener('abort', look)
  look()
  return promise.finally(() => {
    stop()
    signal.removeEventListener('abort', look)
  })
}

/** The log and the state arrive separately: either may be first. */
function isAtWork(handle: SessionHandle): boolean {
  const { run } = handle.transcript
  return handle.state('run')?.isBusy === true || (run !== null && leftBehindIn(handle) !== run.runId)
}

interface Sought {
  sessionId: string
  /** The id of the command. */
  command: string
  /** The last line before it was sent. */
  after: number
}

/** Finds the outcome of a prompt whose answer was lost when its process exited: log lines name the command that caused them. */
export async function outcomeInLog(
  store: SessionStore,
  { sessionId, command, after }: Sought,
): Promise<PromptResult | undefined> {
  await using session = await store.open(sessionId, { readOnly: true })
  for await (const stored of session.lines({ after })) {
    if (stored.type !== 'line') continue
    const line = fromDisk(JSON.parse(stored.text) as DiskLine, stored.seq)
    const outcome = 'cause' in line && line.cause?.cmd === command ? outcomeOf(line) : undefined
    if (outcome) return outcome
  }
  return undefined
}

function outcomeOf(line: Line): PromptResult | undefined {
  if (line.type === 'submission' && line.submission.action === 'add') {
    return { outcome: 'queued', runId: null, messageId: line.submission.id }
  }
  const runId = line.type === 'message' ? line.message.runId : undefined
  return runId === undefined ? undefined : { outcome: 'started', runId }
}
