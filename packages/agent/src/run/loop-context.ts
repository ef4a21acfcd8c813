import type { EntryDraft, RecordDraft, RequestReference, RunOutcome, ToolUse, WaitingMessage } from '@tapetree/session'
import type { Clock } from '../util/clock.ts'
import type { Model, ModelRequest } from '../models/model.ts'
import type { Gate, Tool, ToolContext, ToolOutput } from '../tools/tool.ts'
import type { Draft } from './draft.ts'
import type { LiveEvent } from './events.ts'

/** Everything the loop knows of the world. Two verbs: `append` keeps a fact, `observe` tells who is watching. */
export interface LoopContext {
  readonly runId: string
  readonly signal: AbortSignal
  readonly clock: Clock
  readonly model: Model
  /** What the model is offered now; it may be offered more later. */
  readonly tools: ReadonlyMap<string, Tool>
  readonly gate: Gate
  readonly draft: Draft
  readonly steerPolicy: SteerPolicy
  /** Durable; an entry hangs on the one that this run appended before it. */
  append(draft: EntryDraft | RecordDraft, request?: RequestReference): Promise<void>
  observe(event: LiveEvent): void
  /** What the model is to be sent from here. May compact before it answers. */
  request(): Promise<LoopRequest>
  /** Counts a request or a call; throws `RunStopped` where there is no room for it. */
  spend(next: 'request' | 'call'): void
  /** A message that wants to be heard now. */
  nextSteer(): WaitingMessage | undefined
  /** Calls back when one comes in. */
  onSteer(listener: () => void): () => void
  deliver(message: WaitingMessage): Promise<void>
  toolContext(call: ToolUse, signal: AbortSignal): ToolContext
  /** A turn begins: the model is about to be asked. */
  turnStarts(): Promise<void>
  /** A turn has ended: what it asked for is done. */
  turnEnds(): Promise<void>
  /** The call as it is to be carried out, or a sentence on why it is not. */
  beforeCall(call: ToolUse): Promise<ToolUse | string>
  /** The result as it is to be kept. */
  afterCall(call: ToolUse, output: ToolOutput): Promise<ToolOutput>
  /** Says why this call is not to be run once more, if it only repeats what was done before it. */
  repeated(call: ToolUse): string | undefined
}

export interface LoopRequest extends ModelRequest {
  leafId: string | null
  /** Who changed what the model sees, beside what the log says; the request cannot be made again from the log alone. */
  changedBy?: string[]
}

/**
 * What a steer does to the calls of an answer: those not started are skipped (`skip-remaining`), all are run first
 * (`after-batch`), or the running ones are stopped as well (`interrupt`).
 */
export type SteerPolicy = 'skip-remaining' | 'after-batch' | 'interrupt'

/** Where a run stands: what its last answer still asks for. */
export interface Position {
  openCalls: readonly ToolUse[]
  /** The last word is the model's, and it asked for nothing. */
  isSettled: boolean
}

export interface RunEnd {
  runId: string
  outcome: RunOutcome
  /** Why it did not complete: the kind of the error, or `limit:turns` and the like. */
  reason?: string
  message?: string
}
