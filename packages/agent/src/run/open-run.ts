import { newId, type Cause, type CommittedLine, type ToolUse, type WaitingMessage } from '@tapetree/session'
import { lineKind, type EntryDraft, type RecordDraft, type RequestReference } from '@tapetree/session/format'
import { noHooks, type Hooks } from './hooks.ts'
import { Repetition, Spending, type Spent } from './limits.ts'
import { openDraft, type Draft } from './draft.ts'
import type { Model } from '../models/model.ts'
import { imagesOf } from '../prompt/images.ts'
import { SessionSuspended, type Tool } from '../tools/tool.ts'
import type { RunDeps } from './run-deps.ts'

interface OpenRunOptions {
  runId: string
  signal: AbortSignal
  /** What a resumed run used before its process died. */
  spent?: Spent | undefined
  /** Calls that are in the log and have not run yet. */
  callsToRun?: number
}

/** A line of a run, and the command of a client that caused it. */
export interface CausedDraft {
  draft: EntryDraft | RecordDraft
  cause?: Cause | undefined
}

/**
 * The state of one run, from before its first line until after `run_end`. It has its own head, so that its entries follow each other,
 * and counts what it uses. `append` keeps a fact in the log, `deps.observe` notifies observers.
 */
export class OpenRun {
  readonly deps: RunDeps
  readonly hooks: Hooks
  readonly runId: string
  readonly signal: AbortSignal
  readonly draft: Draft
  model: Model
  /** The tools that the model is offered now. An accepted plan adds some during the run. */
  tools: ReadonlyMap<string, Tool>
  /** The parent of the next entry of this run. */
  head: string | null
  /** Pending while the session appends the next entry of this run: entries from outside must wait, or they would follow the one before. */
  headMove: Promise<void> | undefined
  turn = 0
  /** The owner is closing and leaves the run to be resumed: no call starts. */
  isLeft = false
  /** The system prompt in force, if this run has looked at it. */
  systemPrompt: string | undefined
  /** A compaction freed too little or was cancelled: none is tried again before the context overflows. */
  isCompactionFutile = false
  /** A summary in the background freed too little or failed: none is begun again in this run. */
  isHeadStartFutile = false
  readonly #spending: Spending
  readonly #repetition = new Repetition()
  readonly #calls = new Map<string, ToolUse>()
  #stopCounting: (() => void) | undefined
  /** Entries that are not durable yet. */
  #storing: Promise<unknown> = Promise.resolve()

  constructor(deps: RunDeps, { runId, signal, spent, callsToRun }: OpenRunOptions) {
    const { session, clock, settings } = deps
    this.deps = deps
    this.hooks = deps.hooks ?? noHooks
    this.runId = runId
    this.signal = signal
    this.draft = openDraft(session.localFolder)
    this.model = deps.model()
    this.tools = toolsByName(deps.tools())
    this.head = session.leafId
    const limits = { run: settings.runLimits, session: settings.sessionLimits }
    this.#spending = new Spending({ session, clock, limits, spent, callsToRun })
  }

  /** From now on every line of the session counts towards the limits of this run. */
  countLines(): void {
    this.#stopCounting = this.deps.session.subscribe((committed) => this.#countLine(committed))
  }

  /** Call after the last line. Text of an answer that could not be appended stays in the draft file. */
  async close(): Promise<void> {
    this.#stopCounting?.()
    await this.draft.close()
  }

  /** Resolves when the line is durable. An entry follows the previous entry of this run. */
  async append(draft: EntryDraft | RecordDraft, request?: RequestReference, cause?: Cause): Promise<void> {
    const { session } = this.deps
    const context = { ...(request && { request }), ...(cause && { cause }) }
    if (draft.type === 'message') this.#countMessage(draft)
    if (lineKind(draft.type) !== 'node') {
      await session.append(draft, context)
      return
    }
    if (draft.type === 'message') await this.#withdrawQuestions(draft)
    const id = draft.id ?? newId()
    const parentId = this.head
    this.head = id
    await this.#stored(session.append({ ...draft, id }, { ...context, parentId }), parentId)
  }

  /** Resolves when all lines are durable. They are stored together, and each entry follows the one before it. */
  async appendAll(drafts: readonly CausedDraft[]): Promise<void> {
    const before = this.head
    const placed = drafts.map(({ draft, cause }) => {
      const caused = cause && { cause }
      if (lineKind(draft.type) !== 'node') return { draft, context: { ...caused } }
      const [id, parentId] = [draft.id ?? newId(), this.head]
      this.head = id
      return { draft: { ...draft, id }, context: { parentId, ...caused } }
    })
    await this.#stored(this.deps.session.appendAll(placed), before)
  }

  /** The head when all entries up to it are durable. Entries from outside of the run, such as a command of the user, may be on their way. */
  async storedHead(): Promise<string | null> {
    for (;;) {
      const { head } = this
      await this.#storing
      if (this.head === head) return head
    }
  }

  async deliver(message: WaitingMessage): Promise<void> {
    const { runId } = this
    const { session } = this.deps
    const images = message.imageIds.length > 0 && { images: () => imagesOf(message, session) }
    await this.moveHead(() => session.deliver(message.id, { parentId: this.head, with: { runId }, ...images }))
  }

  /** Lets the session append the next entry, and continues behind it. */
  async moveHead(append: () => Promise<string | undefined>): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    this.headMove = promise
    try {
      this.head = (await append()) ?? this.head
    } finally {
      this.headMove = undefined
      resolve()
    }
  }

  nextSteer(): WaitingMessage | undefined {
    return this.deps.session.nextWaiting('steer')
  }

  /** Calls the listener for each new steer, and at once if one is waiting. */
  onSteer(listener: () => void): () => void {
    if (this.nextSteer()) queueMicrotask(listener)
    return this.deps.session.subscribe(({ line }) => {
      if (line.type === 'submission' && this.nextSteer()) listener()
    })
  }

  /** Call before an effect: throws if the run was stopped, or `SessionSuspended` if it is left to be resumed. */
  throwIfStopped(): void {
    if (this.isLeft) throw new SessionSuspended()
    this.signal.throwIfAborted()
  }

  /** Counts a request or a call. Throws `RunStopped` if a limit leaves no room for it. */
  spend(next: 'request' | 'call'): void {
    this.#repetition.check()
    this.#spending.spend(next)
  }

  /** Why this call must not run, if it only repeats the calls before it. */
  repeated(call: ToolUse): string | undefined {
    this.#calls.set(call.id, call)
    return this.#repetition.refusal(call)
  }

  /** Switches to the fallback model. Returns false if there is no other model. */
  async fallBack(): Promise<boolean> {
    const model = await this.deps.fallbackModel?.()
    if (!model || (model.provider === this.model.provider && model.id === this.model.id)) return false
    this.model = model
    await this.append({ type: 'model_change', modelChange: { provider: model.provider, modelId: model.id } })
    return true
  }

  /** Waits for entries up to the head. If they are refused, the next entry follows the one before them. */
  async #stored(entries: Promise<unknown>, before: string | null): Promise<void> {
    const { head } = this
    // Without the outcomes: each would keep all before it.
    this.#storing = Promise.allSettled([this.#storing, entries]).then(() => undefined)
    try {
      await entries
    } catch (error) {
      if (this.head === head) this.head = before
      throw error
    }
  }

  /** An answered call has no more questions. A question from before a crash may still be pending. */
  async #withdrawQuestions(draft: EntryDraft & { type: 'message' }): Promise<void> {
    const { requests } = this.deps
    for (const block of draft.message.content) {
      if (block.type !== 'tool_result') continue
      const asked = requests.pending.filter(({ callId }) => callId === block.toolResult.toolUseId)
      for (const { requestId } of asked) await requests.answer({ requestId, outcome: 'cancelled' })
    }
  }

  #countMessage(draft: EntryDraft & { type: 'message' }): void {
    const { usage, content } = draft.message
    if (usage) this.#spending.addUsage(usage)
    for (const block of content) {
      if (block.type !== 'tool_result') continue
      const call = this.#calls.get(block.toolResult.toolUseId)
      if (call) this.#repetition.answered(call, block.toolResult)
      this.#calls.delete(block.toolResult.toolUseId)
    }
  }

  #countLine({ line, text }: CommittedLine): void {
    this.#spending.addLogBytes(text.length)
    // Model calls without a message: failed ones, and those of a compaction.
    if (line.type === 'usage') this.#spending.addUsage(line.usage.tokens)
  }
}

/** What the caller of `run` sees of the run that is open. */
export interface CurrentRun {
  /** Set before the run appends anything: entries from outside must follow its head. */
  open?: OpenRun
  /** Resolves when entries from outside are stored. A new run follows them. */
  appended?: () => Promise<void>
  /** Called when `run_start` is durable, for each run. */
  begun?: (runId: string) => void
}

export function toolsByName(tools: readonly Tool[]): ReadonlyMap<string, Tool> {
  return new Map(tools.map((tool) => [tool.name, tool]))
}
