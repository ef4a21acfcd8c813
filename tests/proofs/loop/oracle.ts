import { SessionError, type Usage } from '@tapetree/session'
import type { LiveEvent } from '../../../packages/agent/src/run/events.ts'
import type { RunEnd } from '../../../packages/agent/src/run/run-settings.ts'
import type { ModelRequest } from '../../../packages/agent/src/models/model.ts'
import { LogCheck } from './check-log.ts'
import { problemOfRequest, sentIn } from './check-request.ts'
import type { RequestKind } from './driven-model.ts'
import { replayOf, type DrivenTools, type ToolName } from './driven-tools.ts'
import type { DyingDisk } from './dying-disk.ts'
import type { Life, Witness } from './life.ts'
import type { Setup } from './setup.ts'

/** Sees everything that processes do and says what breaks a promise. It outlives them. */
export class Oracle implements Witness {
  /** What was broken first. */
  problem: string | undefined
  readonly log = new LogCheck()
  requests = 0
  readonly #setup: Setup
  readonly #tools: DrivenTools
  #disk!: DyingDisk
  #life!: Life
  /** Messages that were acknowledged. */
  readonly #accepted = new Set<string>()
  /** Messages that the user has taken back or held, or tried to: that may still be on its way to the disk. */
  readonly #takenBack = new Set<string>()
  readonly #held = new Set<string>()
  /** Runs that the user stopped. */
  readonly #stoppedRuns = new Set<string>()
  /** The user has stopped what this process is doing. */
  #isStopped = false
  /** The message that the last run was to begin with. */
  #delivering: string | undefined
  /** A steer that waited at the beginning of this step: nothing may overtake it. */
  #steer: string | undefined
  /** Calls that had started when the process died. */
  #startedBefore: ReadonlySet<string> = new Set()
  /** The text that was observed, of each model call. */
  #observed = new Map<string, string>()
  /** What model calls of this process have used. */
  #used: { inputTokens: number; kind: RequestKind }[] = []
  #hasEnded = false

  constructor(setup: Setup, tools: DrivenTools) {
    this.#setup = setup
    this.#tools = tools
  }

  complain(problem: string): void {
    this.problem ??= problem
  }

  // What happens around the process

  /** The disk is there before the process that writes to it. */
  watch(disk: DyingDisk): void {
    this.#disk = disk
    this.#read()
  }

  opened(life: Life): void {
    this.#life = life
    const { session } = life
    if (session.head.seq !== this.#disk.lines.length) this.complain('opening did not take in all lines')
    if (session.damage.length > 0) this.complain(`opening found damage: ${session.damage[0]?.reason}`)
  }

  died(): void {
    this.#read()
    this.#isStopped = false
    // A hold that had not reached the disk is lost with the process.
    this.#held.clear()
    this.#observed = new Map()
    this.#startedBefore = new Set(this.log.started)
    // The last call may have said in vain what it used, and so may the last one in the background.
    if (this.#unknownUsage.length > (this.#setup.hasBackground ? 2 : 1))
      this.complain('the usage of several calls was lost')
    this.#used = []
  }

  accepted(submissionId: string): void {
    this.#accepted.add(submissionId)
  }

  takingBack(submissionId: string): void {
    this.#takenBack.add(submissionId)
  }

  holding(submissionId: string): void {
    this.#held.add(submissionId)
  }

  delivering(submissionId: string | undefined): void {
    this.#delivering = submissionId
  }

  stopping(): void {
    this.#isStopped = true
    this.#read()
  }

  // What the process does

  requested(request: ModelRequest, kind: RequestKind): void {
    this.requests++
    this.#read()
    const { model, controller, background } = this.#life
    const isInBackground = kind === 'summary' && background !== undefined
    const broken = problemOfRequest(request)
    if (broken !== undefined) this.complain(`request ${this.requests}: ${broken}`)
    if (kind === 'turn') this.#compareWithLog(request)
    const isInRun = controller !== undefined && this.log.openRun !== undefined
    if (!isInRun && !isInBackground) this.complain('a request was sent outside of every run')
    if (this.log.isAborted || controller?.signal.aborted) this.complain('a request was sent after the run was stopped')
    const other = background ? model[kind] : model.open
    if (other) this.complain('a request was sent while another was open')
    if (kind === 'turn' && this.#isOvertaken) this.complain('a steer waits, and a request was sent without it')
  }

  used({ inputTokens }: Usage, kind: RequestKind): void {
    this.#used.push({ inputTokens: inputTokens as number, kind })
  }

  began(callId: string, name: ToolName): void {
    this.#read()
    if (!this.log.started.has(callId)) this.complain(`${callId} was carried out before its start was in the log`)
    if (this.log.hasResult(callId)) this.complain(`${callId} was carried out and had its result already`)
    const times = this.#tools.executions.get(callId) ?? 0
    if (times > 1 && replayOf[name] !== 'safe') this.complain(`${callId} was carried out ${times} times`)
    // What had started in a process that died is only taken up again; what is announced while a disk is slow has started too.
    const isNew = !this.#startedBefore.has(callId) && !this.#setup.isDiskSlow
    if (isNew && this.#setup.policy !== 'after-batch' && this.#isOvertaken) {
      this.complain(`${callId} began although a steer waited`)
    }
  }

  observed(event: LiveEvent): void {
    if (event.type !== 'delta' || event.kind !== 'text') return
    const before = this.#observed.get(event.item) ?? ''
    if (event.off !== before.length) this.complain(`a delta begins at ${event.off} and not at ${before.length}`)
    this.#observed.set(event.item, before + event.text)
  }

  ended({ runId, outcome }: RunEnd): void {
    this.#read()
    this.#hasEnded = true
    const { session } = this.#life
    const { lastEnd } = this.log
    const isStopped = this.#isStopped || this.#stoppedRuns.has(runId)
    if (outcome === 'aborted' && !isStopped) this.complain('a run ended as aborted that nobody stopped')
    this.#isStopped = false
    if (session.openRun) this.complain('the run is over and still open')
    if (lastEnd?.runId !== runId || lastEnd.outcome !== outcome) this.complain('the log has another end of the run')
    if (session.pendingPermissions.length > 0) this.complain('the run is over and a question of it waits')
    const early = this.log.waiting.filter(({ id, seq }) => this.#mayGoOut(id) && seq < (lastEnd?.seq ?? 0))
    if (early.length === 0 || session.inbox.hold) return
    this.complain(`the run is over, and ${early.map(({ delivery }) => String(delivery)).join(', ')} waits for nothing`)
  }

  /** Only a message that was taken back in time keeps a run from beginning. */
  failed(error: unknown): void {
    this.#read()
    const isGone = error instanceof SessionError && error.code === 'message-not-found'
    // Taken back, held, or stopped before it went out.
    const isKept = this.#life.session.inbox.hold !== null || !this.#mayGoOut(this.#delivering)
    if (isGone && isKept && this.log.openRun === undefined) return
    this.complain(`the run was rejected: ${error instanceof Error ? error.stack : String(error)}`)
  }

  // When everything has come to rest

  stepBegins(): void {
    this.#steer = this.#life.session.nextWaiting('steer')?.id
  }

  rests(): void {
    this.#read()
    if (!this.#setup.isDiskSlow) this.log.rest()
  }

  async checkAtRest(): Promise<void> {
    if (this.problem) return
    const { isRunning } = this.#life
    if (isRunning && !this.#disk.isWriting) this.#checkWhatIsAwaited()
    if (!isRunning && this.#hasEnded) await this.#checkAfterRun()
  }

  /** After the last action and the tail: nothing is open and nothing waits. */
  checkAtEnd(): void {
    const { session } = this.#life
    if (session.openRun) this.complain('a run is still open')
    if (this.log.isUnheard) this.complain('a message was delivered and nobody heard it')
    for (const id of this.#accepted) {
      if (!this.log.isAccountedFor(id)) this.complain(`${id} was accepted and is lost`)
    }
    for (const id of this.log.removed) {
      if (!this.#takenBack.has(id)) this.complain(`${id} was removed, and nobody took it back`)
    }
    const stay = session.inbox.messages.filter(({ held }) => !held)
    if (stay.length > 0) this.complain(`${stay.length} messages still wait`)
    const { tokens } = session.totals
    if (tokens !== this.log.tokens) this.complain(`the totals say ${tokens} tokens, the lines ${this.log.tokens}`)
  }

  /** A run that goes on waits for something, and not for what it should not wait for. */
  #checkWhatIsAwaited(): void {
    const { session, model, clock, requests, controller } = this.#life
    const isTimed = clock.waits.some((ms) => ms < Infinity)
    const isAsked = requests.pending.length > 0
    const isTool = this.#tools.isAwaited
    if (!model.open && !isTimed && !isAsked && !isTool) this.complain('the run waits for nothing')
    const stale = requests.pending.find(({ callId }) => callId !== undefined && this.log.hasResult(callId))
    if (stale) this.complain(`${stale.callId} has its result, and a question about it still waits`)
    if (controller?.signal.aborted && !isTimed) this.complain('the run was stopped and waits for what may never come')
    const { policy, isDeaf } = this.#setup
    if (policy === 'after-batch' || !session.nextWaiting('steer')) return
    if (isAsked && !isTool) this.complain('a steer waits for the answer to a question')
    if (isTool && policy === 'interrupt' && !isDeaf) this.complain('a steer did not interrupt')
  }

  async #checkAfterRun(): Promise<void> {
    this.#hasEnded = false
    const { repairs } = await this.#life.session.getContext()
    if (repairs.length > 0) this.complain(`the context needs repair: ${repairs[0]}`)
    for (const [item, said] of this.#observed) {
      if (this.log.textOf(item) !== said) this.complain(`of the words “${said}” the log has “${this.log.textOf(item)}”`)
    }
    this.#observed = new Map()
    // A summary in the background is not of the run, and its usage is known when it has ended.
    const isSummaryOpen = this.#setup.hasBackground && (this.#life.model.summary ?? this.#disk.isWriting)
    const missing = this.#unknownUsage.filter(({ kind }) => kind === 'turn' || !isSummaryOpen)
    if (missing.length > 0)
      this.complain(`the usage of call ${missing.map(({ inputTokens }) => inputTokens).join(', ')} is missing`)
  }

  #mayGoOut(submissionId: string | undefined): boolean {
    const message = this.log.waiting.find(({ id }) => id === submissionId)
    return message !== undefined && !message.isHeld && !this.#takenBack.has(message.id) && !this.#held.has(message.id)
  }

  /** A message that is in the log and not in the request is lost all the same. */
  #compareWithLog(request: ModelRequest): void {
    const sent = sentIn(request).join(', ')
    const toBeSent = this.log.toBeSent.join(', ')
    if (sent !== toBeSent) this.complain(`request ${this.requests} has “${sent}”, the log “${toBeSent}”`)
  }

  get #unknownUsage(): { inputTokens: number; kind: RequestKind }[] {
    return this.#used.filter(({ inputTokens }) => !this.log.usage.has(inputTokens))
  }

  get #isOvertaken(): boolean {
    return this.#steer !== undefined && this.#life.session.nextWaiting('steer')?.id === this.#steer
  }

  #read(): void {
    this.log.take(this.#disk.lines)
    // The start of the run that was stopped may have been on its way to the disk.
    if (this.#isStopped && this.log.openRun !== undefined) this.#stoppedRuns.add(this.log.openRun)
    if (this.log.problem) this.complain(this.log.problem)
  }
}
