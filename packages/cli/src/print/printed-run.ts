import type { SessionChange, SessionHandle } from '@tapetree/client'
import type { Failure } from '../command-line/failure.ts'
import { harmlessLine } from '../text/harmless.ts'
import { OutputError } from '../command-line/output-error.ts'
import type { AnsweredPrompt } from './answer-prompt.ts'
import { leftBehindIn } from './left-behind.ts'
import { makePrinters, type Printers } from './make-printer.ts'
import { openRun, runClientName, type OpenRun, type OpenRunOptions } from './open-run.ts'
import { outcomeInLog } from './outcome-in-log.ts'
import { PacedPrinter } from './paced-printer.ts'
import { PrintSession } from './print-session.ts'
import { RequestRefuser } from './refuse-requests.ts'
import { resumeFirst } from './resume-first.ts'
import { resultOf } from './run-result.ts'
import { untilIdle } from './until-idle.ts'

interface PrintedRunOptions extends Omit<OpenRunOptions, 'onProblem'> {
  /** Only the answer as a whole is printed, because it has to fit a schema. */
  isWhole: boolean
}

/** The session of a run with all that prints it, answers for it and stops it. */
export class PrintedRun implements AsyncDisposable {
  readonly session: PrintSession
  readonly #open: OpenRun
  readonly #printers: Printers
  readonly #paced: PacedPrinter
  readonly #refuser: RequestRefuser
  readonly #stops: (() => void)[] = []
  /** Whoever writes stdin can answer. */
  #isInputOpen: boolean
  #retry = ''

  private constructor({ io, store, options }: PrintedRunOptions, open: OpenRun, printers: Printers) {
    const { handle } = open.opened
    this.#open = open
    this.#printers = printers
    this.#isInputOpen = options.input === 'jsonl'
    this.#refuser = new RequestRefuser({
      handle,
      isOurs: (runId) => this.#isOurs(runId),
      isSomebodyThere: () => this.#isSomebodyThere(),
      onWaiting: ({ title, requestId }) => this.#say(`An answer is waited for (${requestId}): ${title}`),
      onUnanswered: ({ title }) => this.#say(`Nobody is here to answer: ${title}`),
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
      // Nobody reads any more, so nobody wants the rest.
      onFailure: () => this.session.stop('unread'),
    })
    this.#stops.push(handle.subscribe((change) => this.#tellOfRetry(change, handle)))
    this.#stopWith(io.signal, options.timeoutMs)
  }

  static async open(wanted: PrintedRunOptions): Promise<PrintedRun> {
    const { io, store, options, meant, isWhole } = wanted
    const onProblem = (sentence: string): void => void io.stderr.write(`! ${harmlessLine(sentence)}\n`)
    const open = await openRun({ ...wanted, onProblem })
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
    return run
  }

  async keepImages(images: readonly { mediaType: string; bytes: Uint8Array }[]): Promise<string[]> {
    const { sessionId } = this.session.handle
    return Promise.all(images.map((image) => this.#open.host.keepImage(sessionId, image)))
  }

  /** Lets other screens in, beside the work. */
  letOthersIn(): void {
    this.#open.host.listen().catch((error: unknown) => this.#say(String(error)))
  }

  async notice(sentence: string): Promise<void> {
    await this.#printers.progress.notice(sentence)
  }

  /** Before the first prompt: what an earlier process left in the middle comes to its end. */
  async resumeFirst(): Promise<void> {
    await resumeFirst(this.session, {
      isSomebodyThere: this.#isSomebodyThere(),
      // Whoever writes stdin may have to answer for it.
      goesOn: this.#isInputOpen,
      say: (sentence) => this.notice(sentence),
    })
  }

  /** Prints how it came out. Gives the failure, if it is one. */
  async report({ end, account, failure, output }: AnsweredPrompt): Promise<Failure | undefined> {
    const { sessionId } = this.session.handle
    const result = resultOf({ sessionId, end, account, failure, ...(output !== undefined && { output }) })
    await unlessUnread(async () => {
      await this.#paced.settled()
      await this.#printers.printer.answered(result)
    })
    return failure
  }

  /** From here on nobody can answer. */
  endInput(): void {
    this.#isInputOpen = false
    this.#refuser.look()
  }

  /** Nothing more is printed. Who owns a session does not leave in the middle of what others have asked for. */
  async end(): Promise<void> {
    this.#paced.close()
    await unlessUnread(() => this.#printers.printer.end())
    if (!this.#isOwner) return
    await untilIdle(this.session.handle, {
      signal: this.session.signal,
      onWaiting: () => this.#say('The prompt is answered. What others have asked for in this session is waited for.'),
    })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const stop of this.#stops) stop()
    this.#refuser.close()
    this.#paced.close()
    this.session.close()
    await this.#printers.close()
    await this.session.handle.close()
    await this.#open.host.close()
  }

  get #isOwner(): boolean {
    return this.#open.opened.access.type === 'owner'
  }

  /** A run of another is for that one to answer for, as long as it is there. A run that was left behind waits for more than an answer. */
  #isOurs(runId: string): boolean {
    const { handle } = this.session
    if (leftBehindIn(handle) !== undefined) return false
    const isAlone = (handle.state('presence') ?? []).length <= 1
    return this.session.isOwn(runId) || (this.#isOwner && isAlone)
  }

  /** The owner of a session that is not ours may have a screen, and others may watch ours. Another run is nobody to ask. */
  #isSomebodyThere(): boolean {
    const present = this.#open.opened.handle.state('presence') ?? []
    return this.#isInputOpen || present.some(({ name }) => name !== runClientName)
  }

  #stopWith(signal: AbortSignal, timeoutMs: number | undefined): void {
    const { sessionId } = this.session.handle
    const interrupt = (): void => {
      this.#say(`Interrupted. What was said stays: tapetree run --session ${sessionId} "Go on"`)
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
    this.#say(`${error.message} It is tried again in ${Math.ceil(delayMs / 1000)} s.`)
  }

  #say(sentence: string): void {
    // Where stderr cannot be written to, there is nobody to tell.
    this.notice(sentence).catch(() => undefined)
  }
}

/** Where nobody reads any more, nobody misses the rest; how it came out is told by the exit code. */
async function unlessUnread(printing: () => Promise<void>): Promise<void> {
  try {
    await printing()
  } catch (error) {
    if (!(error instanceof OutputError && error.isUnread)) throw error
  }
}
