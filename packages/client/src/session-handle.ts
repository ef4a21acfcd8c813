import type { Transcript } from '@tapetree/session/view'
import type { Arguments, Operation } from './protocol/command.ts'
import type { Ack, ServerFrame } from './protocol/frames.ts'
import type { PromptResult } from './protocol/rest.ts'
import type { StateKey } from './protocol/state-values.ts'
import type { StateValues } from './state-values.ts'

/**
 * One session for screens and scripts, local or remote. A command resolves with the server's result once its
 * effect is durable, and rejects with a `ProblemError` if it is rejected.
 */
export interface SessionHandle {
  readonly sessionId: string
  /** Immutable: replaced by a new object on every change. */
  readonly transcript: Transcript
  readonly status: ConnectionStatus
  /** The latest value of a key; undefined until the server has sent it. */
  state<Key extends StateKey>(key: Key): StateValues[Key] | undefined
  /** Calls the listener after each change; returns a function that unsubscribes. */
  subscribe(listener: (change: SessionChange) => void): () => void

  /** Starts a run. During a run the message is queued, unless `whenBusy` says otherwise. */
  prompt(text: string, options?: PromptCommandOptions): Promise<PromptResult | undefined>
  /** Adds a message to the current run. */
  steer(text: string, options?: MessageOptions): Promise<PromptResult | undefined>
  /** Queues a message until after the run. */
  followUp(text: string, options?: MessageOptions): Promise<PromptResult | undefined>
  /** Ends a run; by default the one in the transcript, so that a late click cannot end the next one. */
  cancel(runId?: string): Promise<void>
  /**
   * Answers a permission request or a question. The first answer from any screen wins; later ones reject with
   * `already-resolved`.
   */
  answer(requestId: string, answer: RequestAnswer): Promise<void>
  changeQueue<Op extends QueueOperation>(op: Op, args: Arguments<Op>): Promise<unknown>
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
  /** A change of the queue. Notices may be missed; the state `queue` may not. */
  | { type: 'notice'; notice: QueueNotice }
  /** The answer to a command from before a reload, which has no caller any more. */
  | { type: 'late_ack'; op: Operation; ack: Ack }

export type QueueNotice = Extract<
  ServerFrame,
  { type: 'queue_updated' | 'queue_message_sending' | 'queue_message_sent' }
>

export interface MessageOptions {
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

/** The commands of a `SessionHandle`, in terms of `run`. */
export abstract class SessionCommands {
  abstract readonly transcript: Transcript
  abstract run<Op extends Operation>(op: Op, args: Arguments<Op>, options?: RunOptions): Promise<unknown>

  async prompt(text: string, { whenBusy, ...message }: PromptCommandOptions = {}): Promise<PromptResult | undefined> {
    const args = { ...messageOf(text, message), ...(whenBusy && { when_busy: whenBusy }) }
    return (await this.run('prompt', args)) as PromptResult | undefined
  }

  async steer(text: string, options: MessageOptions = {}): Promise<PromptResult | undefined> {
    return (await this.run('steer', messageOf(text, options))) as PromptResult | undefined
  }

  async followUp(text: string, options: MessageOptions = {}): Promise<PromptResult | undefined> {
    return (await this.run('follow_up', messageOf(text, options))) as PromptResult | undefined
  }

  async cancel(runId = this.transcript.run?.runId): Promise<void> {
    await this.run('cancel', runId === undefined ? {} : { run_id: runId })
  }

  async answer(requestId: string, { optionId, text, outcome }: RequestAnswer): Promise<void> {
    await this.run('permission.answer', {
      request_id: requestId,
      ...(optionId !== undefined && { option_id: optionId }),
      ...(text !== undefined && { text }),
      ...(outcome && { outcome }),
    })
  }

  async changeQueue<Op extends QueueOperation>(op: Op, args: Arguments<Op>): Promise<unknown> {
    return this.run(op, args)
  }

  async set({ model, thinkingLevel, mode }: Choice): Promise<void> {
    if (model) await this.run('set_model', { provider: model.provider, model_id: model.modelId })
    if (thinkingLevel) await this.run('set_thinking_level', { level: thinkingLevel })
    if (mode) await this.run('set_config', { mode })
  }

  async navigate(entryId: string | null, { summarize, ...options }: NavigateOptions = {}): Promise<void> {
    await this.run('branch', {
      entry_id: entryId,
      ...(summarize !== undefined && { summarise: summarize }),
      ...options,
    })
  }
}

function messageOf(text: string, { imageIds }: MessageOptions): Arguments<'steer'> {
  return { text, ...(imageIds && { image_ids: imageIds }) }
}
