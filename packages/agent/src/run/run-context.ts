import {
  newId,
  type Cause,
  type CommittedLine,
  type Content,
  type EntryDraft,
  type RecordDraft,
  type RequestReference,
  type ToolUse,
  type WaitingMessage,
} from '@tapetree/session'
import type { Clock } from '../util/clock.ts'
import { noHooks, type Hooks } from './hooks.ts'
import type { LiveEvent } from './events.ts'
import { Repetition, Spending, type Spent } from './limits.ts'
import type { LoopContext, LoopRequest, SteerPolicy } from './loop-context.ts'
import type { Draft } from './draft.ts'
import type { Model } from '../models/model.ts'
import { ModelError } from '../models/model-error.ts'
import { thinkingLevels, type ThinkingLevel } from '../models/model.ts'
import { askUser, type PermissionRequest, type PermissionResult } from '../permissions/requests.ts'
import type { Gate, Answer, Question, Tool, ToolContext, ToolOutput } from '../tools/tool.ts'
import type { AgentParts } from './agent-parts.ts'
import { compact, needsCompaction, type CompactionReason } from '../summary/compaction.ts'
import { contextSize } from '../summary/context-size.ts'
import { inlineImages, imagesOf } from '../prompt/images.ts'
import { ensureSystem } from './system-entry.ts'

export interface RunContextOptions {
  runId: string
  signal: AbortSignal
  draft: Draft
  spent?: Spent | undefined
  /** Calls that are in the log and have yet to be run. */
  callsToRun?: number
}

const entryTypes = new Set<string>(['message', 'system', 'model_change', 'thinking_level', 'compaction', 'custom'])

/** One run over a session: it has a head of its own, on which its entries hang, and counts what it uses. */
export class RunContext implements LoopContext {
  readonly runId: string
  readonly signal: AbortSignal
  readonly clock: Clock
  model: Model
  tools: ReadonlyMap<string, Tool>
  readonly gate: Gate
  readonly draft: Draft
  readonly steerPolicy: SteerPolicy
  readonly #parts: AgentParts
  readonly #hooks: Hooks
  readonly #spending: Spending
  readonly #repetition = new Repetition()
  readonly #calls = new Map<string, ToolUse>()
  #head: string | null
  #turn = 0
  /** A compaction freed next to nothing: it is not tried again in this run. */
  #isCompactionFutile = false

  constructor(parts: AgentParts, { runId, signal, draft, spent, callsToRun }: RunContextOptions) {
    const { session, clock, settings } = parts
    this.runId = runId
    this.signal = signal
    this.draft = draft
    this.clock = clock
    this.model = parts.model()
    this.tools = byName(parts.tools())
    this.gate = parts.gate
    this.steerPolicy = settings.steerPolicy
    this.#parts = parts
    this.#hooks = parts.hooks ?? noHooks
    this.#head = session.leafId
    const limits = { run: settings.runLimits, session: settings.sessionLimits }
    this.#spending = new Spending({ session, clock, limits, spent, callsToRun })
  }

  get head(): string | null {
    return this.#head
  }

  async append(draft: EntryDraft | RecordDraft, request?: RequestReference, cause?: Cause): Promise<void> {
    const context = { ...(request && { request }), ...(cause && { cause }) }
    if (draft.type === 'message') this.#count(draft)
    if (!entryTypes.has(draft.type)) {
      await this.#parts.session.append(draft, context)
      return
    }
    if (draft.type === 'message') await this.#withdrawQuestions(draft)
    const id = draft.id ?? newId()
    const parentId = this.#head
    this.#head = id
    await this.#parts.session.append({ ...draft, id }, { ...context, parentId })
  }

  observe(event: LiveEvent): void {
    this.#parts.observe(event)
  }

  async request(): Promise<LoopRequest> {
    const { session, settings } = this.#parts
    if (await this.#isTooLarge()) {
      await this.#compactInTime()
      // That took its time: whoever has steered meanwhile is heard in this request.
      for (let steer = this.nextSteer(); steer; steer = this.nextSteer()) await this.deliver(steer)
    }
    await this.#renewTools()
    const leafId = this.#head
    const context = await session.getContext({ leafId, reasoning: settings.reasoning })
    const given = context.messages.map(({ message }) => message)
    const { messages, changedBy } = await this.#hooks.context(given, this.signal)
    const { maxOutputTokens, temperature } = settings
    return {
      leafId,
      system: context.system?.prompt ?? '',
      tools: context.system?.tools ?? [],
      messages: await inlineImages(messages, (sha256) => session.getBlob(sha256)),
      thinkingLevel: thinkingLevelOf(context.thinkingLevel),
      ...(changedBy.length > 0 && { changedBy }),
      ...(maxOutputTokens !== undefined && { maxOutputTokens }),
      ...(temperature !== undefined && { temperature }),
    }
  }

  /** Makes the context smaller; false where that freed nothing worth the name. */
  async compact(reason: CompactionReason, instructions?: string): Promise<boolean> {
    const { session, settings } = this.#parts
    const { runId, model, signal } = this
    const before = await this.#hooks.beforeCompact(
      { reason, ...(instructions !== undefined && { instructions }) },
      signal,
    )
    if (before.cancelledBy !== undefined) {
      this.#isCompactionFutile = true
      return false
    }
    this.observe({ type: 'auto_compaction_start', runId, reason })
    let outcome: 'compacted' | 'futile' | 'failed' = 'failed'
    try {
      const compacted = await compact({
        session,
        model,
        headId: this.#head,
        settings: settings.compaction,
        reason,
        signal,
        ...(before.instructions !== undefined && { instructions: before.instructions }),
      })
      if (compacted.type === 'compacted') this.#head = compacted.entryId
      const isWorthwhile = compacted.type === 'compacted' && compacted.isWorthwhile
      outcome = isWorthwhile ? 'compacted' : 'futile'
      this.#isCompactionFutile = !isWorthwhile
      return isWorthwhile
    } finally {
      this.observe({ type: 'auto_compaction_end', runId, reason, outcome })
    }
  }

  /** Goes on with the model that steps in; false where there is none. */
  async fallBack(): Promise<boolean> {
    const model = await this.#parts.fallbackModel?.()
    if (!model || (model.provider === this.model.provider && model.id === this.model.id)) return false
    this.model = model
    await this.append({ type: 'model_change', modelChange: { provider: model.provider, modelId: model.id } })
    return true
  }

  async turnStarts(): Promise<void> {
    await this.#hooks.turnStart({ runId: this.runId, turn: ++this.#turn }, this.signal)
  }

  async turnEnds(): Promise<void> {
    await this.#hooks.turnEnd({ runId: this.runId, turn: this.#turn }, this.signal)
  }

  async beforeCall(call: ToolUse): Promise<ToolUse | string> {
    return this.#hooks.toolCall(call, this.signal)
  }

  async afterCall(call: ToolUse, output: ToolOutput): Promise<ToolOutput> {
    return this.#hooks.toolResult(call, output, this.signal)
  }

  spend(next: 'request' | 'call'): void {
    this.#repetition.check()
    this.#spending.spend(next)
  }

  /** Takes in a line that became durable while the run went on. */
  countLine({ line, text }: CommittedLine): void {
    this.#spending.addLogBytes(text.length)
    // Calls that made no message: failed ones, and those of a compaction.
    if (line.type === 'usage') this.#spending.addUsage(line.usage.tokens)
  }

  nextSteer(): WaitingMessage | undefined {
    return this.#parts.session.nextWaiting('steer')
  }

  onSteer(listener: () => void): () => void {
    if (this.nextSteer()) queueMicrotask(listener)
    return this.#parts.session.subscribe(({ line }) => {
      if (line.type === 'submission' && this.nextSteer()) listener()
    })
  }

  async prompt(content: Content[], cause?: Cause): Promise<void> {
    const { runId } = this
    const options = { with: { runId }, parentId: this.#head, ...(cause && { cause }) }
    this.#head = await this.#parts.session.appendMessage('user', content, options)
  }

  async deliver(message: WaitingMessage): Promise<void> {
    const { runId } = this
    const { session } = this.#parts
    const images = message.imageIds.length > 0 && { images: () => imagesOf(message, session) }
    this.#head = await session.deliver(message.id, { parentId: this.#head, with: { runId }, ...images })
  }

  repeated(call: ToolUse): string | undefined {
    this.#calls.set(call.id, call)
    return this.#repetition.refusal(call)
  }

  toolContext(call: ToolUse, signal: AbortSignal): ToolContext {
    const { session, cwd, redactor } = this.#parts
    const { runId, clock } = this
    const live = redactor?.stream()
    let off = 0
    return {
      sessionId: session.id,
      runId,
      callId: call.id,
      cwd,
      signal,
      clock,
      localFolder: session.localFolder,
      append: (record) => this.append(record),
      putBlob: (bytes) => session.putBlob(bytes),
      getBlob: (sha256) => session.getBlob(sha256),
      observe: (output) => {
        const text = live ? live.write(output) : output
        if (text === '') return
        this.observe({ type: 'delta', item: call.id, part: 0, kind: 'tool_output', off, text, run: runId })
        off += text.length
      },
      ask: (question) => this.#ask(call, question, signal),
    }
  }

  /** An accepted plan brings the tools to carry it out with: they are offered from the next turn on, and not only in the next run. */
  async #renewTools(): Promise<void> {
    const tools = byName(this.#parts.tools())
    if (tools.size === this.tools.size && [...tools.keys()].every((name) => this.tools.has(name))) return
    this.tools = tools
    await ensureSystem(this, this.#parts)
  }

  /** Compacts before the context is too large. Should that fail, the request may still fit: the provider will say. */
  async #compactInTime(): Promise<void> {
    try {
      await this.compact('threshold')
    } catch (error) {
      if (!(error instanceof ModelError) || this.signal.aborted) throw error
      this.#isCompactionFutile = true
    }
  }

  async #isTooLarge(): Promise<boolean> {
    const { session, settings } = this.#parts
    if (this.#isCompactionFutile || !settings.compaction.isEnabled) return false
    const tokens = await contextSize(session)
    return needsCompaction({ tokens, limits: this.model.limits, settings: settings.compaction })
  }

  #ask(call: ToolUse, question: Question, signal: AbortSignal): Promise<Answer> {
    const asker = { runId: this.runId, callId: call.id, tool: call.name, input: call.input }
    return askUser(question, asker, (request) => this.#askUnlessSteered(request, signal))
  }

  /** Whoever says something else need not answer first. Undefined: that was so, and the question is withdrawn. */
  async #askUnlessSteered(
    request: Omit<PermissionRequest, 'requestId'>,
    signal: AbortSignal,
  ): Promise<PermissionResult | undefined> {
    const steered = new AbortController()
    const stopWatching = this.onSteer(() => {
      if (this.steerPolicy !== 'after-batch') steered.abort()
    })
    try {
      return await this.#parts.requests.ask(request, AbortSignal.any([signal, steered.signal]))
    } catch (error) {
      if (signal.aborted || !steered.signal.aborted) throw error
      return undefined
    } finally {
      stopWatching()
    }
  }

  /** A call that is answered has nothing to ask any more: a question from before a crash may still wait. */
  async #withdrawQuestions(draft: EntryDraft & { type: 'message' }): Promise<void> {
    const { requests } = this.#parts
    for (const block of draft.message.content) {
      if (block.type !== 'tool_result') continue
      const asked = requests.pending.filter(({ callId }) => callId === block.toolResult.toolUseId)
      for (const { requestId } of asked) await requests.answer({ requestId, outcome: 'cancelled' })
    }
  }

  #count(draft: EntryDraft & { type: 'message' }): void {
    const { usage, content } = draft.message
    if (usage) this.#spending.addUsage(usage)
    for (const block of content) {
      if (block.type !== 'tool_result') continue
      const call = this.#calls.get(block.toolResult.toolUseId)
      if (call) this.#repetition.answered(call, block.toolResult)
      this.#calls.delete(block.toolResult.toolUseId)
    }
  }
}

function byName(tools: readonly Tool[]): Map<string, Tool> {
  return new Map(tools.map((tool) => [tool.name, tool]))
}

function thinkingLevelOf(level: string | null): ThinkingLevel {
  return thinkingLevels.find((known) => known === level) ?? 'off'
}
