import type { Transcript } from '@tapetree/session'
import type { Arguments, Operation } from './protocol/command.ts'
import type { Ack, ServerFrame } from './protocol/frames.ts'
import type { PromptOutcome } from './protocol/rest.ts'
import type { StateKey } from './protocol/state-values.ts'
import type { StateValues } from './state-values.ts'

/**
 * One session, as every screen and every script sees it, wherever it runs. A command resolves with what the server says came of
 * it, once its effect is durable, and rejects with a `ProblemError` where it is refused.
 */
export interface SessionHandle {
  readonly sessionId: string
  /** Never changes: when there is news it is another one. */
  readonly transcript: Transcript
  readonly status: ConnectionStatus
  /** The latest value of a key that the server has told; undefined before it has. */
  state<Key extends StateKey>(key: Key): StateValues[Key] | undefined
  /** Calls back after each change, until the function it gives is called. */
  subscribe(listener: (change: SessionChange) => void): () => void

  /** Begins a run; while one goes on, the message waits its turn unless `whenBusy` says otherwise. */
  prompt(text: string, options?: PromptOptions): Promise<PromptOutcome | undefined>
  /** Puts a message into the run that goes on. */
  steer(text: string, options?: MessageOptions): Promise<PromptOutcome | undefined>
  /** Leaves a message for after the run. */
  followUp(text: string, options?: MessageOptions): Promise<PromptOutcome | undefined>
  /** Ends a run, by itself the one that the transcript shows: a late click cannot end the next one. */
  cancel(runId?: string): Promise<void>
  /** Answers a permission or a question. The first answer of all screens counts; another rejects with `already-resolved`. */
  answer(requestId: string, answer: Answer): Promise<void>
  changeQueue<Op extends QueueOperation>(op: Op, args: Arguments<Op>): Promise<unknown>
  set(choice: Choice): Promise<void>
  /** Goes on from another entry; null is before the first. */
  navigate(entryId: string | null, options?: NavigateOptions): Promise<void>
  /** Whatever else can be asked for. Undefined where it was done before and only that is remembered. */
  run<Op extends Operation>(op: Op, args: Arguments<Op>, options?: RunOptions): Promise<unknown>

  /** Takes older entries into the transcript. Says whether there are still more. */
  loadOlder(count?: number): Promise<boolean>
  /** Keeps only so many of the newest entries in memory. `loadOlder` brings the others back. */
  forgetOlder(keep: number): void
  /** Tells the others whether somebody is looking, and typing. */
  present(presence: PresenceNews): void
  close(): Promise<void>
}

export type ConnectionStatus =
  | { type: 'connecting' }
  | { type: 'attached' }
  | { type: 'waiting'; delayMs: number }
  /** For good. */
  | { type: 'closed'; reason: ClosedReason }

/** `closed` is our own doing; after the others only a new handle helps. */
export type ClosedReason = 'closed' | 'unauthorized' | 'forbidden' | 'gone' | 'replaced'

export type SessionChange =
  | { type: 'transcript' }
  | { type: 'state'; key: StateKey }
  | { type: 'status' }
  /** An edge of the queue. It may be missed; the value of `queue` is not. */
  | { type: 'notice'; notice: QueueNotice }
  /** Of a command that was kept from before a reload: nobody waits for its answer any more. */
  | { type: 'late_ack'; op: Operation; ack: Ack }

export type QueueNotice = Extract<
  ServerFrame,
  { type: 'queue_updated' | 'queue_message_sending' | 'queue_message_sent' }
>

export interface MessageOptions {
  imageIds?: string[]
}

export interface PromptOptions extends MessageOptions {
  whenBusy?: 'queue' | 'steer' | 'reject'
}

export interface Answer {
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
  /** Leaves a summary of what is abandoned. */
  summarise?: boolean
  instructions?: string
}

export interface RunOptions {
  /** Refused where the log has gone on from this line. */
  ifHead?: number
  /** The id of the command: however often it is given, it takes effect once. A new one, unless it was given before. */
  id?: string
}

export interface PresenceNews {
  visibility: 'visible' | 'hidden'
  typing?: boolean
}
