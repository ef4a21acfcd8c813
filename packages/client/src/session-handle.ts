import type { RunOutcome, ToolResult, ToolUse, Usage } from '@tapetree/session'
import type { PermissionRequest, Transcript } from '@tapetree/session/view'
import type { StandardSchema } from '@tapetree/session/util/structured-answer'
import type { Arguments, Operation } from './protocol/command.ts'
import type { Ack, ServerFrame } from './protocol/frames.ts'
import type { PromptResult } from './rest-values.ts'
import type { StateKey } from './protocol/state-values.ts'
import type { StateValues } from './state-values.ts'
import type { PendingCommand } from './unacknowledged.ts'
import type { FromWire } from './wire-names.ts'

/**
 * One session for screens and scripts, local or remote. A command resolves with the server's result once its
 * effect is durable, and rejects with a `ProblemError` if it is rejected.
 */
export interface SessionHandle extends AsyncDisposable {
  readonly sessionId: string
  /** Immutable: replaced by a new object on every change. */
  readonly transcript: Transcript
  readonly status: ConnectionStatus
  /** Commands without an answer, oldest first. Immutable: replaced by a new array on every change. */
  readonly pending: readonly PendingCommand[]
  /** The latest value of a key; undefined until the server has sent it. */
  state<Key extends StateKey>(key: Key): StateValues[Key] | undefined
  /** Calls the listener after each change; returns a function that unsubscribes. */
  subscribe(listener: (change: SessionChange) => void): () => void

  /**
   * Sends a prompt and resolves with the answer when its run has ended, also if it failed: see `outcome`. If the server restarts
   * meanwhile, it resolves when the resumed run ends. Rejects if no run starts, or the handle closes first.
   */
  ask<T = never>(text: string, options?: AskOptions<T>): Promise<Reply<T>>
  /**
   * Like `ask`, but yields what happens meanwhile; the last event is `end`, with the reply. Leaving the loop only stops listening:
   * other screens share the run, so it continues. To end it, abort the signal or call `abort`.
   */
  stream<T = never>(text: string, options?: AskOptions<T>): AsyncGenerator<ReplyEvent<T>, void>
  /** Resolves when no run is open and no queued message is about to start one. Rejects if the handle closes first. */
  untilIdle(): Promise<void>
  /** Starts a run. During a run the message is queued, unless `whenBusy` says otherwise. */
  prompt(text: string, options?: PromptCommandOptions): Promise<PromptResult | undefined>
  /** Adds a message to the current run. */
  steer(text: string, options?: MessageOptions): Promise<PromptResult | undefined>
  /** Queues a message until after the run. */
  followUp(text: string, options?: MessageOptions): Promise<PromptResult | undefined>
  /** Ends a run; by default the one in the transcript, so that a late click cannot end the next one. */
  abort(runId?: string): Promise<void>
  /**
   * Answers a permission request or a question. The first answer from any screen wins; later ones reject with
   * `already-resolved`.
   */
  answer(requestId: string, answer: RequestAnswer): Promise<void>
  changeQueue<Op extends QueueOperation>(op: Op, args: FromWire<Arguments<Op>>): Promise<unknown>
  set(choice: Choice): Promise<void>
  /** Moves the leaf to another entry; null is before the first. */
  navigate(entryId: string | null, options?: NavigateOptions): Promise<void>
  /** Runs any operation. Undefined if it took effect earlier and its result is no longer known. */
  run<Op extends Operation>(op: Op, args: Arguments<Op>, options?: RunOptions): Promise<unknown>

  /** Loads older entries into the transcript. Returns whether there are more. */
  loadOlder(count?: number): Promise<boolean>
  /** Keeps only this many of the newest entries in memory. `loadOlder` loads the others again. */
  forgetOlder(keep: number): void
  /** Tells other clients whether the user is looking, and typing. */
  present(presence: PresenceNews): void
  close(): Promise<void>
}

/** How a prompt was answered. */
export interface Reply<T = unknown> {
  /** The text of the last answer; empty if there is none. */
  text: string
  /** Only with a `schema`: the answer as a value that fits it. Absent if the run did not complete, or no answer fitted. */
  object?: T
  outcome: RunOutcome
  /** Why it did not complete: the kind of the error, `limit:turns` or another limit, or `invalid-object`. */
  reason?: string
  /** The error as a sentence. */
  message?: string
  /** All model calls of the run. Counts that are 0 are absent. */
  usage: Usage
  /** In US dollars, as far as prices are known. */
  cost: number
  /** Null if the prompt was a command and started no run. */
  runId: string | null
}

export interface AskOptions<T = unknown> extends Pick<MessageOptions, 'imageIds'> {
  /** The answer must be JSON that fits. The library of the schema must provide JSON Schema, as zod does since 4.2. */
  schema?: StandardSchema<T>
  /** Aborts the run. If it has not started yet, nothing is recorded and the outcome is `aborted`. */
  signal?: AbortSignal | undefined
  /** During another run: reject with `session-busy`, or wait for its end. Default: `reject`. */
  whenBusy?: 'reject' | 'wait'
}

/** What `stream` yields. `messageId` is the entry of the answer or result. The last event is `end`. */
export type ReplyEvent<T = unknown> =
  | { type: 'text_delta' | 'reasoning_delta'; messageId: string; text: string }
  | { type: 'tool_call'; messageId: string; call: ToolUse }
  | { type: 'tool_started'; callId: string; name: string }
  | { type: 'tool_result'; messageId: string; result: ToolResult }
  /** The run waits until a screen answers it. */
  | { type: 'permission_request'; request: PermissionRequest }
  | { type: 'end'; reply: Reply<T> }

export type ConnectionStatus =
  | { type: 'connecting' }
  | { type: 'attached' }
  | { type: 'waiting'; delayMs: number }
  /** Permanent. */
  | { type: 'closed'; reason: ClosedReason }

/** `closed`: this client closed it. For the others, open a new handle. */
export type ClosedReason = 'closed' | 'unauthorized' | 'forbidden' | 'gone' | 'replaced'

export type SessionChange =
  | { type: 'transcript' }
  | { type: 'state'; key: StateKey }
  | { type: 'status' }
  /** A command was added, sent or answered. */
  | { type: 'pending' }
  /** A change of the queue. Notices may be missed; the state `queue` may not. */
  | { type: 'notice'; notice: QueueNotice }
  /** The answer to a command from before a reload, which has no caller any more. */
  | { type: 'late_ack'; op: Operation; ack: Ack }

export type QueueNotice = Extract<
  ServerFrame,
  { type: 'queue_updated' | 'queue_message_sending' | 'queue_message_sent' }
>

export interface MessageOptions extends RunOptions {
  imageIds?: string[]
}

export interface PromptCommandOptions extends MessageOptions {
  whenBusy?: 'queue' | 'steer' | 'reject'
}

export interface RequestAnswer {
  optionId?: string
  text?: string
  outcome?: 'allowed' | 'rejected' | 'cancelled'
}

export type QueueOperation = Extract<Operation, `queue.${string}`>

export interface Choice {
  model?: { provider: string; modelId: string }
  thinkingLevel?: Arguments<'set_thinking_level'>['level']
  mode?: Arguments<'set_config'>['mode']
}

export interface NavigateOptions {
  /** Appends a summary of the abandoned branch. */
  summarize?: boolean
  instructions?: string
}

export interface RunOptions {
  /** Rejected if the log has lines after this one. */
  ifHead?: number
  /** The command id, which makes the command idempotent. Default: a new id. */
  id?: string
}

export interface PresenceNews {
  visibility: 'visible' | 'hidden'
  typing?: boolean
}
