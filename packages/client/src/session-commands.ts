import type { Transcript } from '@tapetree/session'
import type { Arguments, Operation } from './protocol/command.ts'
import type { PromptResult } from './protocol/rest.ts'
import type {
  RequestAnswer,
  Choice,
  MessageOptions,
  NavigateOptions,
  PromptCommandOptions,
  QueueOperation,
  RunOptions,
} from './session-handle.ts'

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

  async navigate(entryId: string | null, options: NavigateOptions = {}): Promise<void> {
    await this.run('branch', { entry_id: entryId, ...options })
  }
}

function messageOf(text: string, { imageIds }: MessageOptions): Arguments<'steer'> {
  return { text, ...(imageIds && { image_ids: imageIds }) }
}
