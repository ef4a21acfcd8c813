import type {
  AvailableCommand,
  ContentBlock,
  PromptResponse,
  SessionConfigOption,
  SessionModeState,
  SessionUpdate,
  StopReason,
} from '@agentclientprotocol/sdk/unstable'
import type { Choice, PromptResult, SessionHandle, StateValues } from '@tapetree/client'
import { newId } from '@tapetree/session'
import { settledWithin } from '@tapetree/session/util/deadline'
import type { PermissionRequest, Transcript, UserItem } from '@tapetree/session/view'
import { exitCodes } from '../command-line/exit-code.ts'
import { Failure } from '../command-line/failure.ts'
import { RunWatch, type WatchedEnd } from '../print/run-watch.ts'
import type { OfferedModel, OpenedSession } from '../session-source.ts'
import { modesOf, optionsOf } from './config-options.ts'
import type { Editor } from './editor.ts'
import { EditorRequests } from './editor-requests.ts'
import { readPrompt } from './prompt-content.ts'
import { SessionUpdates, withStoredContent, type StoredContent } from './session-updates.ts'

export interface EditorSessionOptions {
  editor: Editor
  opened: OpenedSession
  cwd: string
  models: readonly OfferedModel[]
  stored: StoredContent
  /** Sentences that the editor is told first. */
  notices?: readonly string[]
  keepImage: (image: { bytes: Uint8Array; mediaType: string }) => Promise<string>
}

/** Commands of ours beside those of the session's templates, skills and extensions. */
const ownCommands: readonly AvailableCommand[] = [
  { name: 'compact', description: 'Summarize the conversation', input: { hint: 'what to keep' } },
  { name: 'resume', description: 'Resume the interrupted run' },
  { name: 'retry', description: 'Run again from here' },
]

/** A prompt that the editor waits for. */
interface OpenPrompt {
  isCancelled: boolean
  result?: PromptResult
  /** Stops a command of ours that starts no run. */
  stop?: () => Promise<void>
  /** Resolves when it was answered. */
  readonly ended: PromiseWithResolvers<void>
  /** Resolves if it was taken out of the queue. */
  readonly removed: PromiseWithResolvers<PromptResponse>
}

/** One session in one editor. Other editors, terminals and browsers may have it open too. */
export class EditorSession {
  readonly #options: EditorSessionOptions
  readonly #updates: SessionUpdates
  readonly #requests: EditorRequests
  readonly #watch: RunWatch
  readonly #prompts = new Set<OpenPrompt>()
  /** Commands and queued messages of this editor. */
  readonly #ours = new Set<string>()
  readonly #stop: () => void
  readonly #remarks: string[] = []
  #isStarted = false
  #isClosed = false
  #isUsed = false
  #isDirty = false
  #pumping: Promise<void> | undefined
  #told: { config?: string; mode?: string; commands?: StateValues['commands']; usage?: string; notice?: unknown } = {}

  constructor(options: EditorSessionOptions) {
    const { opened, cwd, editor } = options
    const { handle } = opened
    this.#options = options
    this.#updates = new SessionUpdates({ cwd, features: editor.features, isOurs: (item) => this.#isOurs(item) })
    this.#requests = new EditorRequests({
      handle,
      cwd,
      editor,
      updates: this.#updates,
      stored: options.stored,
      isOwn: (request) => this.#isOwnRequest(request),
    })
    this.#watch = new RunWatch(handle, { isOwner: () => opened.access.type === 'owner' })
    this.#stop = handle.subscribe(() => this.#wake())
    handle.present({ visibility: 'visible' })
  }

  get handle(): SessionHandle {
    return this.#options.opened.handle
  }

  /** Whether the editor has sent a prompt. */
  get isUsed(): boolean {
    return this.#isUsed
  }

  /** What the editor offers to choose from. The editor knows these choices from here on. */
  choices(): { modes: SessionModeState; configOptions: SessionConfigOption[] } {
    const config = this.#config
    const configOptions = optionsOf(config, this.#options.models)
    this.#told = { ...this.#told, config: JSON.stringify(configOptions), mode: config.mode ?? '' }
    return { modes: modesOf(config), configOptions }
  }

  /** Tells the editor the whole conversation. */
  async replay(): Promise<void> {
    while (await this.handle.loadOlder(500));
    this.#start()
    await this.#settled()
    this.handle.forgetOlder(keptEntries)
  }

  /** From now on the editor is told what happens. */
  begin(): void {
    if (this.#isStarted) return
    this.#updates.begin(this.handle.transcript)
    this.#start()
  }

  /** Resolves when the run of the prompt has ended and the editor has been told all of it. */
  async prompt(blocks: readonly ContentBlock[], signal: AbortSignal): Promise<PromptResponse> {
    this.begin()
    this.#isUsed = true
    const prompt: OpenPrompt = {
      isCancelled: false,
      ended: Promise.withResolvers(),
      removed: Promise.withResolvers(),
    }
    const cancel = (): void => this.#cancel(prompt)
    signal.addEventListener('abort', cancel, { once: true })
    this.#prompts.add(prompt)
    try {
      const end = await this.#answer(prompt, blocks)
      await this.#settled()
      return end
    } finally {
      this.#prompts.delete(prompt)
      prompt.ended.resolve()
      signal.removeEventListener('abort', cancel)
    }
  }

  /** Ends the runs of this editor's prompts; without one, the run that it sees. */
  async cancel(): Promise<void> {
    if (this.#prompts.size > 0) for (const prompt of this.#prompts) this.#cancel(prompt)
    else if (this.handle.transcript.run) await this.handle.abort()
  }

  /** Cancels the prompts of this editor, and resolves when they are answered. Runs of other screens go on. */
  async endPrompts(): Promise<void> {
    const prompts = [...this.#prompts]
    for (const prompt of prompts) this.#cancel(prompt)
    await settledWithin(Promise.all(prompts.map(({ ended }) => ended.promise)), { ms: endMs })
  }

  async set(choice: Choice): Promise<SessionConfigOption[]> {
    await this.handle.set(choice)
    return this.choices().configOptions
  }

  async close(): Promise<void> {
    if (this.#isClosed) return
    this.#isClosed = true
    this.#stop()
    this.#watch.close()
    this.#requests.close()
    await this.handle.close()
  }

  async #answer(prompt: OpenPrompt, blocks: readonly ContentBlock[]): Promise<PromptResponse> {
    const { text, images } = readPrompt(blocks, this.#options.cwd)
    const [, command, words = ''] = /^\/([a-z]+)(?:\s+([\s\S]*))?$/.exec(text.trim()) ?? []
    if (command !== undefined && this.#isOwnCommand(command)) return this.#runCommand(command, words.trim(), prompt)
    const imageIds = await Promise.all(images.map((image) => this.#options.keepImage(image)))
    if (prompt.isCancelled) return { stopReason: 'cancelled' }
    const id = newId()
    this.#ours.add(id)
    const result = await this.handle.prompt(text, { id, ...(imageIds.length > 0 && { imageIds }) })
    if (!result) throw runFailure('The session accepted the prompt, but its outcome is unknown.', 'outcome-unknown')
    if ('messageId' in result) this.#ours.add(result.messageId)
    prompt.result = result
    if (prompt.isCancelled) this.#cancel(prompt)
    const ended = this.#watch.end(result).then((end) => this.#responseTo(end, prompt))
    return Promise.race([ended, prompt.removed.promise])
  }

  /** The session may have a template or skill of the same name, which then is meant. */
  #isOwnCommand(name: string): boolean {
    const isTheirs = this.handle.state('commands')?.some((command) => command.name === name) ?? false
    return !isTheirs && ownCommands.some((command) => command.name === name)
  }

  async #runCommand(name: string, words: string, prompt: OpenPrompt): Promise<PromptResponse> {
    if (name === 'compact') {
      prompt.stop = () => this.handle.abort()
      const compacted = this.handle.run('compact', words === '' ? {} : { instructions: words })
      const isDone = await compacted.then(
        () => true,
        (error: unknown) => {
          if (!prompt.isCancelled) throw error
          return false
        },
      )
      return { stopReason: isDone ? 'end_turn' : 'cancelled' }
    }
    const started = name === 'retry' ? this.handle.run('retry', {}) : this.handle.run('resume', { by_person: true })
    const { run_id: runId } = (await started) as { run_id: string | null }
    if (runId === null) throw runFailure('There is no interrupted run to resume.', 'nothing-to-resume')
    prompt.result = { outcome: 'started', runId }
    if (prompt.isCancelled) this.#cancel(prompt)
    return this.#responseTo(await this.#watch.endOf(runId))
  }

  async #responseTo(end: WatchedEnd, prompt?: OpenPrompt): Promise<PromptResponse> {
    const usage = usageOf(end.account.usage)
    switch (end.type) {
      case 'handled':
        if (end.say !== '') await this.#say(end.say)
        return { stopReason: 'end_turn' }
      case 'held':
        if (prompt?.isCancelled) return { stopReason: 'cancelled' }
        // The editor has no queue from which its user could send it, or take it back.
        if (prompt?.result && 'messageId' in prompt.result)
          await this.handle.changeQueue('queue.remove', { id: prompt.result.messageId }).catch(() => undefined)
        throw runFailure(`The prompt was not sent. ${end.reason}`, 'held')
      case 'run': {
        const { outcome, reason } = end.end
        if (outcome === 'aborted' || outcome === 'abandoned') return { stopReason: 'cancelled', usage }
        if (outcome === 'completed') return { stopReason: this.#reasonToStop(), usage }
        const message = end.account.error?.message ?? 'The run failed.'
        if (!reason?.startsWith('limit:')) throw runFailure(message, reason ?? 'run-failed')
        await this.#tell(this.#updates.notice(message, 'warning'))
        return { stopReason: 'max_turn_requests', usage }
      }
      default:
        return end satisfies never
    }
  }

  #reasonToStop(): StopReason {
    const last = this.handle.transcript.path.items.slice(-20).findLast(({ type }) => type === 'assistant')
    const reason = last?.type === 'assistant' ? last.stopReason : undefined
    if (reason === 'length') return 'max_tokens'
    return reason === 'content-filter' ? 'refusal' : 'end_turn'
  }

  async #say(text: string): Promise<void> {
    await this.#tell([{ sessionUpdate: 'agent_message_chunk', content: { type: 'text', text } }])
  }

  #cancel(prompt: OpenPrompt): void {
    prompt.isCancelled = true
    // It may be over already, and then there is nothing left to cancel.
    const stopped = prompt.result ? this.#end(prompt, prompt.result) : prompt.stop?.()
    stopped?.catch(() => undefined)
  }

  /** Takes the message out of the queue; if it was delivered meanwhile, ends its run. */
  async #end({ removed }: OpenPrompt, result: PromptResult): Promise<void> {
    const { handle } = this
    if ('messageId' in result && this.#watch.runBegunBy(result) === undefined) {
      const isRemoved = await handle.changeQueue('queue.remove', { id: result.messageId }).then(
        () => true,
        () => false,
      )
      if (isRemoved) return removed.resolve({ stopReason: 'cancelled' })
    }
    const runId = this.#watch.runBegunBy(result)
    if (runId !== undefined) await handle.abort(runId)
  }

  #isOurs({ cause, submissionId }: UserItem): boolean {
    return this.#ours.has(cause?.cmd ?? '') || this.#ours.has(submissionId ?? '')
  }

  /**
   * Compares the run of the session: a subagent asks with the id of its own. A prompt without a result may be an
   * extension command, which asks without a run.
   */
  #isOwnRequest({ runId }: PermissionRequest): boolean {
    const { run } = this.handle.transcript
    return [...this.#prompts].some(({ result }) =>
      result ? run !== null && this.#watch.runBegunBy(result) === run.runId : runId === undefined,
    )
  }

  #start(): void {
    if (!this.#isStarted) this.#remarks.push(...(this.#options.notices ?? []))
    this.#isStarted = true
    this.#wake()
  }

  /** Updates are computed when the editor has taken the ones before: a slow editor gets larger ones, and none is stored. */
  #wake(): void {
    this.#isDirty = true
    if (!this.#isStarted || this.#pumping) return
    this.#pumping = this.#pump().finally(() => {
      this.#pumping = undefined
      if (this.#isDirty && !this.#isClosed) this.#wake()
    })
  }

  async #pump(): Promise<void> {
    while (this.#isDirty && !this.#isClosed) {
      this.#isDirty = false
      // A closed connection ends the process; until then there is no one to tell.
      await this.#tell(this.#news()).catch(() => this.close())
      this.#requests.look()
    }
  }

  async #tell(updates: readonly SessionUpdate[]): Promise<void> {
    const { editor, stored } = this.#options
    for (const update of updates) await editor.update(this.handle.sessionId, await withStoredContent(update, stored))
  }

  async #settled(): Promise<void> {
    this.#wake()
    while (this.#pumping) await this.#pumping
  }

  #news(): SessionUpdate[] {
    const { transcript } = this.handle
    return [
      ...this.#remarks.splice(0).flatMap((text) => this.#updates.notice(text, 'warning')),
      ...this.#updates.take(transcript),
      ...this.#configNews(),
      ...this.#commandNews(),
      ...this.#usageNews(transcript),
      ...this.#troubleNews(transcript),
    ]
  }

  #configNews(): SessionUpdate[] {
    const { config, mode } = this.#told
    const { modes, configOptions } = this.choices()
    if (this.#told.config === config) return []
    return [
      ...(this.#told.mode === mode
        ? []
        : [{ sessionUpdate: 'current_mode_update' as const, currentModeId: modes.currentModeId }]),
      { sessionUpdate: 'config_option_update', configOptions },
    ]
  }

  #commandNews(): SessionUpdate[] {
    const commands = this.handle.state('commands')
    if (!commands || commands === this.#told.commands) return []
    this.#told.commands = commands
    const own = ownCommands.filter(({ name }) => this.#isOwnCommand(name))
    const theirs = commands.map(({ name, description }) => ({ name, description, input: { hint: 'text' } }))
    return [{ sessionUpdate: 'available_commands_update', availableCommands: [...theirs, ...own] }]
  }

  #usageNews({ path, usage }: Transcript): SessionUpdate[] {
    const last = path.items.slice(-50).findLast((item) => item.type === 'assistant' && item.usage !== undefined)
    const size = this.#contextTokens
    if (last?.type !== 'assistant' || size === undefined) return []
    const { inputTokens = 0, outputTokens = 0, totalTokens = inputTokens + outputTokens } = last.usage ?? {}
    const cost = usage.cost > 0 ? { cost: { amount: usage.cost, currency: 'USD' } } : {}
    const update: SessionUpdate = { sessionUpdate: 'usage_update', used: totalTokens, size, ...cost }
    const text = JSON.stringify(update)
    if (text === this.#told.usage) return []
    this.#told.usage = text
    return [update]
  }

  /** Retries, errors of runs that others started, and interrupted runs. The editor's own prompts report their errors themselves. */
  #troubleNews({ lastError }: Transcript): SessionUpdate[] {
    const { waitingFor } = this.handle.state('run') ?? {}
    const isOthers = this.#prompts.size === 0
    const cause = waitingFor?.type === 'auto_retry_start' ? `${waitingFor.attempt}` : (lastError ?? waitingFor?.type)
    if (cause === this.#told.notice) return []
    this.#told.notice = cause
    if (waitingFor?.type === 'auto_retry_start') {
      const seconds = Math.ceil(waitingFor.delayMs / 1000)
      return this.#updates.notice(`${waitingFor.error.message} Retrying in ${seconds} s.`, 'warning')
    }
    if (waitingFor?.type === 'resume')
      return this.#updates.notice('A run was interrupted. /resume continues it; a new prompt abandons it.', 'warning')
    return lastError && isOthers ? this.#updates.notice(lastError.message, 'error') : []
  }

  get #contextTokens(): number | undefined {
    const { model } = this.#config
    const reference = model && `${model.provider}/${model.modelId}`
    return this.#options.models.find((each) => each.reference === reference)?.contextTokens
  }

  get #config(): StateValues['config'] {
    return this.handle.state('config') ?? { model: null, thinkingLevel: null, mode: null }
  }
}

/** How long a run may take to end when its session is closed. */
const endMs = 10_000

/** How many entries stay in memory. */
export const keptEntries = 200

function runFailure(message: string, type: string): Failure {
  return new Failure(type === 'auth' ? exitCodes.noModel : exitCodes.runFailed, message, { type })
}

function usageOf(usage: WatchedEnd['account']['usage']): NonNullable<PromptResponse['usage']> {
  return {
    inputTokens: usage.inputTokens,
    outputTokens: usage.outputTokens,
    totalTokens: usage.totalTokens > 0 ? usage.totalTokens : usage.inputTokens + usage.outputTokens,
    thoughtTokens: usage.reasoningTokens,
    cachedReadTokens: usage.cacheReadTokens,
    cachedWriteTokens: usage.cacheWriteTokens,
  }
}
