import type {
  ContentBlock,
  CreateTerminalRequest,
  PromptResponse,
  RequestPermissionRequest,
  RequestPermissionResponse,
  TerminalOutputResponse,
  WaitForTerminalExitResponse,
} from '@agentclientprotocol/sdk/unstable'
import { ModelError, type Access, type ModelErrorKind, type Verdict } from '@tapetree/agent'
import type { ForeignRun, ForeignSteer } from '@tapetree/agent/foreign'
import { RunStopped } from '@tapetree/agent/run'
import { newId, type ToolUse, type Usage } from '@tapetree/session'
import { settledWithin } from '@tapetree/session/util/deadline'
import { AgentGone, cancelMs, type AgentConnection, type SteerOutcome, type TurnClient } from './agent-connection.ts'
import { AgentTerminals } from './agent-terminals.ts'
import {
  accessOf,
  jsonOf,
  mergeCalls,
  outputOf,
  readCall,
  readUpdate,
  shownText,
  toolUseOf,
  type AgentCall,
  type AgentUpdate,
} from './agent-updates.ts'
import { EventQueue } from './event-queue.ts'
import { blocksOf } from './prompt-blocks.ts'

export interface AgentTurnOptions {
  run: ForeignRun
  connection: AgentConnection
  sessionId: string
  /** Of the agent, for messages. */
  name: string
  onCommands: (commands: { name: string; description: string }[]) => void
}

type TurnEvent =
  | { type: 'update'; update: AgentUpdate }
  | { type: 'permission'; call: AgentCall; signal: AbortSignal; decide: (verdict: Verdict | undefined) => void }
  | { type: 'decided'; open: OpenCall; verdict: Verdict | undefined; decide: (verdict: Verdict | undefined) => void }
  /** A call that was announced has not changed for a while. */
  | { type: 'quiet' }
  | { type: 'steer' }
  /** The agent has answered a steer, or has not in time. */
  | { type: 'steered'; outcome: SteerOutcome }
  | { type: 'stop' }
  | TurnEnd

/** How the agent ended its turn. `overdue`: it did not stop when it was told to. */
type TurnEnd =
  | { type: 'ended'; response: PromptResponse }
  | { type: 'failed'; error: unknown }
  | { type: 'overdue' }
  | { type: 'suspended' }

/** A steer that was sent to the agent in its turn. */
interface SentSteer {
  steer: ForeignSteer
  answer: PromiseWithResolvers<void>
  /** Absent until the agent has answered. */
  outcome?: SteerOutcome
}

interface OpenCall {
  call: AgentCall
  use: ToolUse
  isLogged: boolean
  isStarted: boolean
  /** The agent asked for it, and was not allowed. */
  isRefused: boolean
  isDone: boolean
  /** What observers have seen of its output. */
  shown: string
}

/** A call that is only announced is recorded after this time; its input may still be on the way. */
const quietMs = 100
/** An agent that does not answer a steer in this time is cancelled. */
const steerMs = 10_000
/**
 * The agent is not read further while so many events, or so many bytes of updates, wait for the log. Its writes block then. What it had
 * begun to send still arrives: one message, which has a limit of its own.
 */
const maxWaiting = { count: 256, bytes: 4 * 1024 * 1024 }
const maxPlans = 1000
const maxWriting = 64 * 1024 * 1024
const maxShownOutput = 64 * 1024

const resultText = {
  stopped: 'Stopped by the user. It may have taken effect in part.',
  interrupted: 'Stopped because the user sent a new message. It may have taken effect in part.',
  unknown: 'Outcome unknown: the agent ended while this was running. It may have taken effect; it was not run again.',
  limited:
    'Outcome unknown: the run reached a limit while this was open. It may have taken effect; it was not run again.',
  unreported: 'Outcome unknown: the agent ended its turn without a result of this call.',
}

/** One prompt to an agent, until it has ended its turn: what it tells becomes entries and records, in order. */
export class AgentTurn implements TurnClient {
  readonly #options: AgentTurnOptions
  readonly #events = new EventQueue<TurnEvent>()
  readonly #calls = new Map<string, OpenCall>()
  readonly #terminals: AgentTerminals
  readonly #questions = new AbortController()
  readonly #over = new AbortController()
  #held: OpenCall | undefined
  #cancelled: 'stopped' | 'interrupted' | undefined
  #isSteered = false
  #sent: SentSteer | undefined
  #plans = 0
  /** The characters of all files that are being written, or that the user is asked about. */
  #writing = 0

  constructor(options: AgentTurnOptions) {
    this.#options = options
    this.#terminals = new AgentTerminals(options.run)
  }

  /**
   * Resolves when the agent has ended its turn, also because of a steer. Throws the reason of the run's signal after an abort, and a
   * `ModelError` if the agent failed.
   */
  async play(prompt: ContentBlock[]): Promise<void> {
    const { run, connection, sessionId } = this.#options
    const stop = (): void => this.#events.pushFirst({ type: 'stop' })
    run.signal.addEventListener('abort', stop, { once: true })
    const stopSteering = run.onSteer(() => this.#events.push({ type: 'steer' }))
    const detach = connection.attach(this, sessionId)
    if (run.signal.aborted) stop()
    let isUnderWay = true
    const answer = connection.prompt(sessionId, prompt).finally(() => (isUnderWay = false))
    answer.then(
      (response) => this.#events.push({ type: 'ended', response }),
      (error: unknown) => this.#events.push({ type: 'failed', error }),
    )
    try {
      const end = await this.#listen()
      await this.#settleSteer(end)
      await this.#finish(end)
    } catch (error) {
      this.#withdrawQuestions()
      // A limit, a full disk or a lost session: the agent must not go on alone.
      if (isUnderWay) connection.abandon(sessionId, answer, run.clock)
      if (error instanceof RunStopped) await this.#finishStopped()
      throw error
    } finally {
      detach()
      stopSteering()
      run.signal.removeEventListener('abort', stop)
      this.#withdrawQuestions()
      this.#over.abort()
      this.#events.clear()
      await this.#terminals.close()
    }
  }

  update(given: unknown): void {
    const update = readUpdate(given)
    if (update?.type === 'commands') this.#options.onCommands(update.commands)
    else if (update) this.#events.push({ type: 'update', update }, Buffer.byteLength(jsonOf(update)))
  }

  steered(outcome: SteerOutcome): void {
    if (!this.#sent || this.#sent.outcome !== undefined) return
    this.#sent.outcome = outcome
    this.#sent.answer.resolve()
    this.#events.push({ type: 'steered', outcome })
  }

  room(): Promise<void> {
    return this.#over.signal.aborted ? Promise.resolve() : this.#events.roomFor(maxWaiting)
  }

  async permission(
    { toolCall, options }: RequestPermissionRequest,
    signal: AbortSignal,
  ): Promise<RequestPermissionResponse> {
    const call = readCall(toolCall)
    const cancelled: RequestPermissionResponse = { outcome: { outcome: 'cancelled' } }
    if (!call || this.#over.signal.aborted) return cancelled
    const { promise, resolve } = Promise.withResolvers<Verdict | undefined>()
    const event = { type: 'permission', call, signal, decide: resolve } as const
    this.#events.push(event, Buffer.byteLength(jsonOf(call)))
    this.#over.signal.addEventListener('abort', () => resolve(undefined), { once: true })
    const verdict = await promise
    if (!verdict) return cancelled
    const wanted = verdict.type === 'allowed' ? ['allow_once', 'allow_always'] : ['reject_once', 'reject_always']
    const chosen = wanted.flatMap((kind) => options.filter((option) => option.kind === kind))[0]
    return chosen ? { outcome: { outcome: 'selected', optionId: chosen.optionId } } : cancelled
  }

  readFile(path: string, signal: AbortSignal): Promise<string> {
    return this.#options.run.readFile(path, AbortSignal.any([signal, this.#questions.signal]))
  }

  async writeFile(path: string, content: string, signal: AbortSignal): Promise<void> {
    if (this.#writing + content.length > maxWriting)
      throw new Error(
        `The files to write have more than ${maxWriting} characters together. Wait for the answers first.`,
      )
    this.#writing += content.length
    try {
      await this.#options.run.writeFile(path, content, AbortSignal.any([signal, this.#questions.signal]))
    } finally {
      this.#writing -= content.length
    }
  }

  createTerminal(request: CreateTerminalRequest): Promise<string> {
    return this.#terminals.create(request, this.#questions.signal)
  }

  terminalOutput(id: string): TerminalOutputResponse {
    return this.#terminals.output(id)
  }

  terminalExit(id: string): Promise<WaitForTerminalExitResponse> {
    return this.#terminals.exit(id)
  }

  killTerminal(id: string): void {
    this.#terminals.kill(id)
  }

  releaseTerminal(id: string): void {
    this.#terminals.release(id)
  }

  async #listen(): Promise<TurnEnd> {
    for (;;) {
      const event = await this.#events.next()
      switch (event.type) {
        case 'update':
          await this.#take(event.update)
          break
        case 'permission':
          await this.#ask(event)
          break
        case 'decided':
          await this.#decide(event)
          break
        case 'quiet':
          await this.#logHeld()
          break
        case 'steer':
          this.#isSteered = true
          break
        case 'steered':
          await this.#takeSteered(event.outcome)
          break
        case 'stop':
          if (this.#options.run.isSuspended) return { type: 'suspended' }
          this.#cancel('stopped')
          void this.#terminals.close()
          break
        default:
          return event
      }
      await this.#recordSteer()
      if (this.#isSteered && !this.#sent && this.#mayInterrupt()) await this.#steer()
    }
  }

  /**
   * Gives the next steer to the agent in its turn, if it can take one. Otherwise, and to end a call or a question, cancels the turn: the
   * steer is the next prompt.
   */
  async #steer(): Promise<void> {
    const { connection, run, sessionId } = this.#options
    const steer = await run.nextSteer()
    // The user may have withdrawn it.
    this.#isSteered = steer !== undefined
    if (!steer) return
    const isAsking = run.session.pendingPermissions.length > 0
    const isOnSide = connection.canSteer && this.#cancelled === undefined && !this.#hasOpenCalls && !isAsking
    if (!isOnSide) return this.#cancel('interrupted')
    const { image: hasImages = false } = connection.capabilities.promptCapabilities ?? {}
    const sent: SentSteer = { steer, answer: Promise.withResolvers<void>() }
    this.#sent = sent
    connection.steer(sessionId, blocksOf(steer.message, hasImages))
    const { signal } = this.#over
    void settledWithin(sent.answer.promise, { ms: steerMs, clock: run.clock, signal }).then((outcome) => {
      if (outcome === 'late' && this.#sent === sent) this.steered('refused')
    })
  }

  async #takeSteered(outcome: SteerOutcome): Promise<void> {
    if (outcome === 'injected') return this.#recordSteer()
    this.#sent = undefined
    this.#isSteered = (await this.#options.run.nextSteer()) !== undefined
    // One that was withdrawn may still have begun a turn.
    if (this.#isSteered || outcome === 'started') this.#cancel('interrupted')
  }

  /** What the agent has got is a message of the log as soon as no call is open: a result must follow its call. */
  async #recordSteer(): Promise<void> {
    if (this.#sent?.outcome !== 'injected' || this.#hasOpenCalls) return
    const { steer } = this.#sent
    await this.#logHeld()
    await this.#options.run.deliverSteer(steer)
    this.#sent = undefined
  }

  /** The agent may end its turn before it answers. A turn that it began instead would have no end for us. */
  async #settleSteer({ type }: TurnEnd): Promise<void> {
    if (!this.#sent || type !== 'ended') return
    const { connection, run, sessionId } = this.#options
    await settledWithin(this.#sent.answer.promise, { ms: steerMs, clock: run.clock, signal: run.signal })
    if (this.#sent.outcome === undefined || this.#sent.outcome === 'started') connection.cancel(sessionId)
  }

  get #hasOpenCalls(): boolean {
    return [...this.#calls.values()].some(({ isDone }) => !isDone)
  }

  /** A call that runs may finish first, unless the settings say otherwise. */
  #mayInterrupt(): boolean {
    const { steerPolicy } = this.#options.run
    if (steerPolicy === 'interrupt') return true
    const open = [...this.#calls.values()].filter(({ isDone }) => !isDone)
    return !open.some(({ isStarted }) => isStarted || steerPolicy === 'after-batch')
  }

  #cancel(reason: 'stopped' | 'interrupted'): void {
    const { connection, sessionId, run } = this.#options
    const isFirst = this.#cancelled === undefined
    // A user who stops the run after a message wants it to stop.
    if (this.#cancelled !== 'stopped') this.#cancelled = reason
    if (!isFirst) return
    connection.cancel(sessionId)
    this.#withdrawQuestions()
    run.clock.wait(cancelMs, this.#over.signal).then(
      () => this.#events.push({ type: 'overdue' }),
      () => undefined, // it has ended its turn
    )
  }

  /** Those of a session that is suspended stay in the log: the next process withdraws them. */
  #withdrawQuestions(): void {
    const { isSuspended, signal } = this.#options.run
    this.#questions.abort(isSuspended ? signal.reason : undefined)
  }

  async #take(update: AgentUpdate): Promise<void> {
    const { run } = this.#options
    if (update.type !== 'call' || update.call.toolCallId !== this.#held?.call.toolCallId) await this.#logHeld()
    switch (update.type) {
      case 'said':
        return run.say(update.kind, update.text)
      case 'call':
        return this.#takeCall(update.call, update.isNew)
      case 'plan':
        if (this.#plans++ < maxPlans) await run.append({ type: 'plan', plan: { items: update.items } })
        return
      case 'commands':
        return
      default:
        update satisfies never
    }
  }

  async #takeCall(given: AgentCall, isNew: boolean): Promise<void> {
    const known = this.#calls.get(given.toolCallId)
    // An update about a call of an earlier turn, or of nobody.
    if (!known && !isNew) return
    const open = known && !(isNew && known.isDone) ? known : await this.#begin(given)
    if (open.isDone) return
    open.call = mergeCalls(open.call, given)
    const status = open.call.status ?? 'pending'
    // A refused call fails without having started.
    if (status !== 'pending' && !(status === 'failed' && open.isRefused)) await this.#start(open)
    this.#show(open)
    if (status === 'completed' || status === 'failed') await this.#end(open)
  }

  async #begin(call: AgentCall): Promise<OpenCall> {
    const { run } = this.#options
    await this.#logHeld()
    const use = toolUseOf(call, newId())
    const open = { call, use, isLogged: false, isStarted: false, isRefused: false, isDone: false, shown: '' }
    this.#calls.set(call.toolCallId, open)
    this.#held = open
    run.clock.wait(quietMs, this.#over.signal).then(
      () => this.#events.push({ type: 'quiet' }),
      () => undefined, // the turn is over
    )
    return open
  }

  /** The input of a call may come in several updates: it is recorded when something else happens. */
  async #logHeld(): Promise<void> {
    const open = this.#held
    this.#held = undefined
    if (!open || open.isLogged) return
    open.use = toolUseOf(open.call, open.use.id)
    await this.#options.run.call(open.use)
    open.isLogged = true
  }

  async #start(open: OpenCall): Promise<void> {
    if (open.isStarted) return
    await this.#logHeld()
    open.isStarted = true
    await this.#options.run.startCall(open.use, this.#accessOf(open))
  }

  async #end(open: OpenCall): Promise<void> {
    await this.#logHeld()
    open.isDone = true
    // What was said before it ended comes before its result.
    await this.#options.run.endAnswer('pause')
    const output = outputOf(open.call, (id) => this.#terminals.textOf(id))
    await this.#options.run.answerCall(open.use, output, this.#accessOf(open))
    // Its content may be large, and is in the log now.
    open.call = { toolCallId: open.call.toolCallId }
    open.use = { ...open.use, input: {} }
  }

  #show(open: OpenCall): void {
    const text = shownText(open.call, (id) => this.#terminals.textOf(id)).slice(0, maxShownOutput)
    if (!open.isStarted || !text.startsWith(open.shown) || text === open.shown) return
    this.#options.run.showOutput(open.use, text.slice(open.shown.length))
    open.shown = text
  }

  #accessOf({ call }: OpenCall): Access[] {
    return accessOf(call, this.#options.run.cwd)
  }

  /** Asks without waiting: the agent may go on with other calls. */
  async #ask({ call, signal, decide }: Extract<TurnEvent, { type: 'permission' }>): Promise<void> {
    const { run } = this.#options
    const known = this.#calls.get(call.toolCallId)
    const open = known ?? (await this.#begin(call))
    if (open.isDone) return decide(undefined)
    if (this.#cancelled !== undefined) {
      open.isRefused = true
      return decide(undefined)
    }
    open.call = mergeCalls(open.call, { ...call, status: undefined })
    await this.#logHeld()
    const { id: callId, name: tool } = open.use
    const { input } = toolUseOf(open.call, callId)
    const readOnly = ['read', 'search', 'think', 'fetch'].includes(tool)
    const asked = run.admit(
      { callId, tool, readOnly, input, access: this.#accessOf(open) },
      AbortSignal.any([signal, this.#questions.signal]),
    )
    asked.then(
      (verdict) => this.#events.push({ type: 'decided', open, verdict, decide }),
      () => this.#events.push({ type: 'decided', open, verdict: undefined, decide }),
    )
  }

  async #decide({ open, verdict, decide }: Extract<TurnEvent, { type: 'decided' }>): Promise<void> {
    const isAllowed = verdict?.type === 'allowed' && this.#cancelled === undefined && !open.isDone
    if (isAllowed) await this.#start(open)
    else open.isRefused = true
    decide(this.#cancelled === undefined ? verdict : undefined)
  }

  async #finish(end: TurnEnd): Promise<void> {
    const { run, name } = this.#options
    if (end.type === 'suspended') throw run.signal.reason
    if (end.type === 'overdue') await this.#endAgent()
    await this.#logHeld()
    if (this.#cancelled !== undefined) {
      await run.endAnswer(this.#cancelled === 'stopped' ? 'aborted' : 'interrupted')
      await this.#answerOpen(resultText[this.#cancelled])
      if (this.#cancelled === 'stopped') throw run.signal.reason
      return
    }
    if (end.type === 'ended') return this.#finishEnded(end.response)
    const error = end.type === 'failed' ? modelErrorOf(end.error, name) : new ModelError('network', `${name} hangs.`)
    await run.failAnswer({ kind: error.kind, message: error.message })
    await this.#answerOpen(error.kind === 'network' ? resultText.unknown : resultText.unreported)
    throw error
  }

  /** What the agent says until it is gone is kept. Its prompt fails then, at the latest. */
  async #endAgent(): Promise<void> {
    const gone = this.#options.connection.end('It did not end its turn when it was told to.', { isReadToEnd: true })
    for (let event = await this.#events.next(); ; event = await this.#events.next()) {
      if (event.type === 'update') await this.#take(event.update)
      else if (event.type === 'ended' || event.type === 'failed') break
    }
    await gone
  }

  async #finishEnded({ stopReason, usage }: PromptResponse): Promise<void> {
    const { run, name } = this.#options
    await run.endAnswer(stopReasons[stopReason] ?? 'other', usageOf(usage))
    await this.#answerOpen(resultText.unreported)
    if (stopReason === 'refusal') throw new ModelError('refused', `${name} refused to continue.`)
    if (stopReason === 'cancelled') throw new ModelError('unknown', `${name} cancelled its turn.`)
  }

  /** A limit has ended the run. What was said is kept, and calls in the log get a result. */
  async #finishStopped(): Promise<void> {
    await this.#options.run.endAnswer('length')
    await this.#answerOpen(resultText.limited)
  }

  async #answerOpen(content: string): Promise<void> {
    for (const open of this.#calls.values()) {
      if (open.isDone) continue
      open.isDone = true
      if (!open.isLogged) continue
      await this.#options.run.answerCall(open.use, { content, isError: true }, this.#accessOf(open))
    }
    await this.#recordSteer()
  }
}

const stopReasons: Partial<Record<PromptResponse['stopReason'], string>> = {
  end_turn: 'stop',
  max_tokens: 'length',
  refusal: 'refused',
}

function usageOf(usage: PromptResponse['usage']): Usage | undefined {
  if (!usage) return undefined
  const { inputTokens, outputTokens, totalTokens, cachedReadTokens, cachedWriteTokens, thoughtTokens } = usage
  return {
    inputTokens,
    outputTokens,
    totalTokens,
    ...(cachedReadTokens != null && { cacheReadTokens: cachedReadTokens }),
    ...(cachedWriteTokens != null && { cacheWriteTokens: cachedWriteTokens }),
    ...(thoughtTokens != null && { reasoningTokens: thoughtTokens }),
  }
}

const authRequired = -32000

/** Only a lost agent is tried again by itself. */
export function modelErrorOf(error: unknown, name: string): ModelError {
  if (error instanceof ModelError) return error
  const message = error instanceof Error ? error.message : String(error)
  if (error instanceof AgentGone) return new ModelError('network', message, { cause: error })
  const code = (error as { code?: unknown } | undefined)?.code
  const kind: ModelErrorKind = code === authRequired ? 'auth' : 'unknown'
  return new ModelError(kind, `${name} reports: ${message}`, { cause: error })
}
