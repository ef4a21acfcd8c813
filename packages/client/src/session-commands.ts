import type { Transcript } from '@tapetree/session/view'
import type { Arguments, Operation } from './protocol/command.ts'
import type { WirePromptResult } from './protocol/rest.ts'
import type { StateKey } from './protocol/state-values.ts'
import { ask, stream, untilIdle } from './reply.ts'
import type { PromptResult } from './rest-values.ts'
import type {
  AskOptions,
  Choice,
  ConnectionStatus,
  MessageOptions,
  NavigateOptions,
  PromptCommandOptions,
  QueueOperation,
  Reply,
  ReplyEvent,
  RequestAnswer,
  RunOptions,
  SessionChange,
} from './session-handle.ts'
import type { StateValues } from './state-values.ts'
import type { PendingCommand } from './unacknowledged.ts'
import { fromWire, toWire, type FromWire } from './wire-names.ts'

const noCommands: readonly PendingCommand[] = []

/** The commands of a `SessionHandle`, in terms of `run`, and replies, in terms of the transcript and the state. */
export abstract class SessionCommands {
  abstract readonly transcript: Transcript
  abstract readonly status: ConnectionStatus
  abstract state<Key extends StateKey>(key: Key): StateValues[Key] | undefined
  abstract subscribe(listener: (change: SessionChange) => void): () => void
  abstract close(): Promise<void>
  abstract run<Op extends Operation>(op: Op, args: Arguments<Op>, options?: RunOptions): Promise<unknown>

  ask<T = never>(text: string, options: AskOptions<T> = {}): Promise<Reply<T>> {
    return ask(this, text, options)
  }

  stream<T = never>(text: string, options: AskOptions<T> = {}): AsyncGenerator<ReplyEvent<T>, void> {
    return stream(this, text, options)
  }

  /** None: a session in the same process answers at once. */
  get pending(): readonly PendingCommand[] {
    return noCommands
  }

  untilIdle(): Promise<void> {
    return untilIdle(this)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close()
  }

  async prompt(text: string, { whenBusy, ...message }: PromptCommandOptions = {}): Promise<PromptResult | undefined> {
    const args = { ...messageOf(text, message), ...(whenBusy && { when_busy: whenBusy }) }
    return promptResult(await this.run('prompt', args, message))
  }

  async steer(text: string, options: MessageOptions = {}): Promise<PromptResult | undefined> {
    return promptResult(await this.run('steer', messageOf(text, options), options))
  }

  async followUp(text: string, options: MessageOptions = {}): Promise<PromptResult | undefined> {
    return promptResult(await this.run('follow_up', messageOf(text, options), options))
  }

  async abort(runId = this.transcript.run?.runId): Promise<void> {
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

  async changeQueue<Op extends QueueOperation>(op: Op, args: FromWire<Arguments<Op>>): Promise<unknown> {
    return this.run(op, toWire(args) as Arguments<Op>)
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

function promptResult(result: unknown): PromptResult | undefined {
  return fromWire(result as WirePromptResult | undefined)
}
