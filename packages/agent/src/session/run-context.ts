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
import type { Clock } from '../clock.ts'
import type { CompactionReason, LiveEvent } from '../loop/live-event.ts'
import type { Spent } from '../loop/limits.ts'
import type { LoopContext, LoopRequest, SteerPolicy } from '../loop/loop-context.ts'
import type { Draft } from '../loop/draft.ts'
import { Repetition } from '../loop/repetition.ts'
import type { Model } from '../models/model.ts'
import { ModelError } from '../models/model-error.ts'
import { thinkingLevels, type ThinkingLevel } from '../models/model.ts'
import type { PermissionRequest, PermissionResult } from '../permissions/requests.ts'
import type { Gate } from '../tools/gate.ts'
import type { Answer, Question, Tool, ToolContext } from '../tools/tool.ts'
import type { AgentParts } from './agent-parts.ts'
import { compact, needsCompaction } from './compaction.ts'
import { contextSize } from './context-size.ts'
import { inlineImages } from './inline-images.ts'
import { Spending } from './spending.ts'
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
  readonly model: Model
  tools: ReadonlyMap<string, Tool>
  readonly gate: Gate
  readonly draft: Draft
  readonly steerPolicy: SteerPolicy
  readonly #parts: AgentParts
  readonly #spending: Spending
  readonly #repetition = new Repetition()
  readonly #calls = new Map<string, ToolUse>()
  #head: string | null
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
    this.#head = session.leafId
    const limits = { run: settings.runLimits, session: settings.sessionLimits }
    this.#spending = new Spending({ session, clock, limits, spent, callsToRun })
  }

  get head(): string | null {
    return this.#head
  }

  async append(draft: EntryDraft | RecordDraft, request?: RequestReference): Promise<void> {
    const context = request ? { request } : {}
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
    const messages = context.messages.map(({ message }) => message)
    const { maxOutputTokens, temperature } = settings
    return {
      leafId,
      system: context.system?.prompt ?? '',
      tools: context.system?.tools ?? [],
      messages: await inlineImages(messages, (sha256) => session.getBlob(sha256)),
      thinkingLevel: thinkingLevelOf(context.thinkingLevel),
      ...(maxOutputTokens !== undefined && { maxOutputTokens }),
      ...(temperature !== undefined && { temperature }),
    }
  }

  /** Makes the context smaller; false where that freed nothing worth the name. */
  async compact(reason: CompactionReason, instructions?: string): Promise<boolean> {
    const { session, settings } = this.#parts
    const { runId, model, signal } = this
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
        ...(instructions !== undefined && { instructions }),
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
    this.#head = await this.#parts.session.deliver(message.id, { parentId: this.#head, with: { runId } })
  }

  repeated(call: ToolUse): string | undefined {
    this.#calls.set(call.id, call)
    return this.#repetition.refusal(call)
  }

  toolContext(call: ToolUse, signal: AbortSignal): ToolContext {
    const { session, cwd } = this.#parts
    const { runId, clock } = this
    let off = 0
    return {
      runId,
      callId: call.id,
      cwd,
      signal,
      clock,
      localFolder: session.localFolder,
      append: (record) => this.append(record),
      putBlob: (bytes) => session.putBlob(bytes),
      getBlob: (sha256) => session.getBlob(sha256),
      observe: (text) => {
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

  async #ask(call: ToolUse, { question, options }: Question, signal: AbortSignal): Promise<Answer> {
    const asked = options.map(({ label }, index) => ({ optionId: String(index + 1), label, kind: 'answer' as const }))
    const { runId } = this
    const request = { runId, callId: call.id, tool: call.name, title: question, input: call.input, options: asked }
    const result = await this.#askUnlessSteered(request, signal)
    if (!result) return { text: '', isCancelled: true }
    const chosen = asked.find(({ optionId }) => optionId === result.optionId)?.label
    return { text: result.text ?? chosen ?? '', isCancelled: result.outcome !== 'allowed' }
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
