import {
  newId,
  SessionError,
  text,
  type BashExecution,
  type Cause,
  type ModelReference,
  type Session,
  type WaitingMessage,
} from '@tapetree/session'
import { Listeners } from '@tapetree/session/util/listeners'
import type { Hooks } from '../run/hooks.ts'
import { thinkingLevels, type Model, type ThinkingLevel } from '../models/model.ts'
import type { PermissionMode } from '../permissions/modes.ts'
import type { Answered, RequestAnswer } from '../permissions/requests.ts'
import { RegistryError } from '../models/registry/model-info.ts'
import { closeInterruptedRun } from '../run/abandon-run.ts'
import type { AgentEvent, AgentListener } from '../run/events.ts'
import type { AgentSessionOptions } from './agent-session-options.ts'
import { stateOf, Conversation, type AgentState } from './conversation.ts'
import { summariseBranch } from '../summary/branch-summary.ts'
import { compact, type CompactionOutcome } from '../summary/compaction.ts'
import { ModelChoice, type MissingModel, type ModelSource } from './model-choice.ts'
import { composeMessage, type PromptImage } from '../prompt/compose-message.ts'
import { planResume, type ResumePlan } from '../run/resume.ts'
import type { RunStart } from '../run/run.ts'
import { defaultRunSettings } from '../run/run-settings.ts'
import type { Run } from '../run/run-slot.ts'
import { executeBash, type BashOptions } from './shell.ts'
import type { Subagent } from './subagents.ts'
import { nameSession } from '../summary/title.ts'

export interface PromptOptions {
  /** False: what was typed is sent as it is. */
  expandTemplates?: boolean
  images?: readonly PromptImage[]
  /** Images that are blobs of the session already, by their hashes. */
  imageIds?: readonly string[]
  /** What is done while a run goes on. Default: `queue`. */
  whenBusy?: 'queue' | 'steer' | 'reject'
  /** Where it comes from, such as `interactive` or the name of an extension: the client of its cause, where that is not given. */
  source?: string
  cause?: Cause
}

/** What became of a prompt. `runId` is the run that it started, or the one it waits for. */
export type PromptOutcome =
  | { type: 'started'; runId: string; run: Run }
  | { type: 'steered' | 'queued'; runId: string | null; message: WaitingMessage }
  /** It was a command of an extension: nothing was sent. */
  | { type: 'handled'; runId: null; say: string | undefined }

/** One agent at work on one session at a time. It holds nothing itself: the log does, and each job has a file of its own. */
export class AgentSession {
  readonly #options: AgentSessionOptions
  /** An error of a listener must not stop the run. */
  readonly #listeners = new Listeners<AgentEvent>(() => undefined)
  readonly #closing = new AbortController()
  #conversation: Conversation

  private constructor(options: AgentSessionOptions, session: Session, choice: ModelChoice) {
    this.#options = options
    this.#conversation = this.#converse(session, choice)
  }

  static async open(options: AgentSessionOptions): Promise<AgentSession> {
    const { store, sessionId, cwd = process.cwd() } = options
    // A new session is created only when there is a model for it, so that a failed start leaves no empty session behind.
    const choice = sessionId === undefined ? await choiceFor(undefined, options) : undefined
    const session = sessionId === undefined ? await store.create({ cwd }) : await store.open(sessionId)
    let agent: AgentSession | undefined
    try {
      agent = new AgentSession(options, session, choice ?? (await choiceFor(session, options)))
      // Fails here, before the first run, if two tools have the same name.
      agent.#conversation.tools()
      await agent.#conversation.permissionMode.begin(options)
      await agent.#hooks.sessionStart({ sessionId: session.id })
      return agent
    } catch (error) {
      await (agent ? agent.#conversation.close() : session.close())
      if (choice) await store.delete(session.id).catch(() => undefined)
      throw error
    }
  }

  get session(): Session {
    return this.#conversation.session
  }

  // Prompting

  /** Says something to the agent. What can refuse it does so before it is in the log; after that it is history. */
  async prompt(typed: string, options: PromptOptions = {}): Promise<PromptOutcome> {
    const { whenBusy = 'queue', source } = options
    const cause = options.cause ?? (source === undefined ? undefined : { cmd: newId(), client: source })
    const { slot, session } = this.#conversation
    const composed = await composeMessage(typed, options, { session, expand: this.#options.expand })
    if ('say' in composed) return { type: 'handled', runId: null, say: composed.say }
    const { text: words, images } = composed
    const content = [text(words), ...images.map(({ block }) => block)]
    const run = await this.#startUnlessBusy({ type: 'prompt', content, ...(cause && { cause }) })
    if (run) {
      this.#nameInBackground(words)
      return { type: 'started', runId: run.id, run }
    }
    if (whenBusy === 'reject') throw slot.busy()
    const delivery = whenBusy === 'steer' ? 'steer' : 'follow-up'
    const imageIds = images.map(({ id }) => id)
    const message = await session.submit(words, { delivery, imageIds, ...(cause && { cause }) })
    slot.wake()
    return { type: whenBusy === 'steer' ? 'steered' : 'queued', runId: session.openRun?.runId ?? null, message }
  }

  /** Interrupts: it is heard before the next model call, and calls not started are skipped. */
  steer(typed: string, options: Omit<PromptOptions, 'whenBusy'> = {}): Promise<PromptOutcome> {
    return this.prompt(typed, { ...options, whenBusy: 'steer' })
  }

  /** Waits until the agent is done with what it does. */
  followUp(typed: string, options: Omit<PromptOptions, 'whenBusy'> = {}): Promise<PromptOutcome> {
    return this.prompt(typed, { ...options, whenBusy: 'queue' })
  }

  /** Stops what goes on, whoever started it, and resolves when it has ended. What was said so far stays. */
  async abort(): Promise<void> {
    await this.#conversation.slot.abort()
  }

  /** Runs once more from where the session stands: after a failure, or when a limit was raised. */
  async retry(cause?: Cause): Promise<Run> {
    const run = await this.#startUnlessBusy({ type: 'leaf', ...(cause && { cause }) })
    if (!run) throw this.#conversation.slot.busy()
    return run
  }

  /** What there is to do about a run whose process died; undefined if there is nothing, or the run goes on. Changes nothing. */
  async planResume(): Promise<ResumePlan | undefined> {
    const { slot } = this.#conversation
    if (slot.isBusy) return undefined
    const plan = await planResume(this.session, this.#conversation.tools())
    // A run may have begun meanwhile.
    return slot.isBusy ? undefined : plan
  }

  /**
   * Resumes a run whose process died. If a run goes on in this process, whoever started it, this is that run and nothing is written.
   * After two resumes without progress it requires `byPerson`.
   */
  async resume(options: { byPerson?: boolean; cause?: Cause } = {}): Promise<Run | undefined> {
    const { slot } = this.#conversation
    for (;;) {
      const run = (await slot.liveRun()) ?? (await this.#resumeInterrupted(options))
      if (run !== 'busy') return run
    }
  }

  async #resumeInterrupted(options: { byPerson?: boolean; cause?: Cause }): Promise<Run | undefined | 'busy'> {
    const { slot } = this.#conversation
    return slot.alone(async () => {
      const plan = await this.planResume()
      if (slot.isBusy) return 'busy'
      if (!plan) {
        slot.wake()
        return undefined
      }
      if (plan.needsPerson && !options.byPerson) {
        throw new SessionError('session-busy', `Run ${plan.runId} was resumed twice in vain and waits for a person.`)
      }
      const { cause } = options
      return slot.start({ type: 'resume', plan, ...(cause && { cause }) })
    })
  }

  /** Goes on with messages that wait, where nothing keeps them: for whoever has put one there. */
  wake(): void {
    this.#conversation.slot.wake()
  }

  /** Answers a question of the agent's; the first answer counts. */
  answer(answer: RequestAnswer, cause?: Cause): Promise<Answered> {
    return this.#conversation.requests.answer(answer, cause)
  }

  /** Runs a command of the user's own, and keeps it in the session. */
  executeBash(command: string, options: BashOptions = {}): Promise<BashExecution> {
    const { session, slot, jobs, redactor, commands } = this.#conversation
    const { shellPrefix: prefix = '' } = this.#options
    const parts = {
      session,
      slot,
      jobs,
      cwd: this.#cwd,
      prefix,
      observe: (event: AgentEvent) => slot.tell(event),
      redactor,
    }
    return commands.run((signal) => executeBash(command, { ...options, signal }, parts), options.signal)
  }

  /** Ends the commands of the user's own that run. Resolves when they are in the log, and says whether there were any. */
  stopCommands(): Promise<boolean> {
    return this.#conversation.commands.stop()
  }

  // Model and mode

  /** Counts from the next run on. Rejects where the model cannot be used, such as for want of a key. */
  async setModel(provider: string, modelId: string, cause?: Cause): Promise<Model> {
    return this.#keepModel(await this.#conversation.choice.set(provider, modelId), cause)
  }

  async cycleModel(direction: 'forward' | 'backward' = 'forward'): Promise<Model> {
    return this.#keepModel(await this.#conversation.choice.cycle(direction))
  }

  async setThinkingLevel(level: ThinkingLevel, cause?: Cause): Promise<void> {
    if (!thinkingLevels.includes(level)) throw new TypeError(`There is no thinking level ${level}.`)
    const { choice, slot } = this.#conversation
    choice.thinkingLevel = level
    if (!slot.isBusy) await slot.append({ type: 'thinking_level', thinkingLevel: { thinkingLevel: level } }, cause)
  }

  /** Recorded in the log. A wider mode counts from the next call after it is durable, a narrower one from the next call on. */
  async setMode(mode: PermissionMode, cause?: Cause): Promise<void> {
    await this.#conversation.permissionMode.set(mode, cause)
  }

  // History

  /** Occupies the slot of the session like a run: prompts wait until it is over, and `abort` stops it. */
  async compact(instructions?: string, cause?: Cause): Promise<CompactionOutcome> {
    const { session, slot, choice } = this.#conversation
    return slot.exclusively(async (signal) => {
      refuseOpenRun(session)
      const asked = { reason: 'manual' as const, ...(instructions !== undefined && { instructions }) }
      const before = await this.#hooks.beforeCompact(asked, signal)
      if (before.cancelledBy !== undefined) return { type: 'nothing-to-cut' }
      return compact({
        session,
        model: choice.model,
        headId: session.leafId,
        settings: { ...defaultRunSettings, ...this.#options.settings?.() }.compaction,
        reason: 'manual',
        ...(cause && { cause }),
        instructions: before.instructions,
        signal,
      })
    })
  }

  /**
   * Goes to any moment of the session, with or without a summary of what is left behind. Closes an interrupted run. Prompts wait until it
   * is over.
   */
  async navigate(
    entryId: string | null,
    options: { summarise?: boolean; instructions?: string; cause?: Cause } = {},
  ): Promise<void> {
    const { session, slot, choice } = this.#conversation
    const { instructions, cause, summarise = false } = options
    await slot.exclusively(async (signal) => {
      await closeInterruptedRun(session)
      const target = { session, targetId: entryId, ...(cause && { cause }) }
      if (summarise) await summariseBranch({ ...target, model: choice.model, instructions, signal })
      else await session.branch(entryId, cause && { cause })
    })
  }

  async setLabel(entryId: string, label: string, cause?: Cause): Promise<void> {
    await this.session.setLabel(entryId, label, cause && { cause })
  }

  async setName(name: string, cause?: Cause): Promise<void> {
    await this.session.appendSessionInfo(name, cause && { cause })
  }

  // Which session

  async newSession(parentSession?: string): Promise<string> {
    const choice = await choiceFor(undefined, this.#options)
    const header = { cwd: this.#cwd, ...(parentSession !== undefined && { parentSession }) }
    return this.#switchTo(await this.#options.store.create(header), choice)
  }

  async switchSession(sessionId: string): Promise<string> {
    if (sessionId === this.session.id) return sessionId
    const session = await this.#options.store.open(sessionId)
    try {
      return await this.#switchTo(session, await choiceFor(session, this.#options))
    } catch (error) {
      if (session !== this.session) await session.close()
      throw error
    }
  }

  /** A new session with the path to this entry, in which the conversation goes on. */
  async fork(entryId: string): Promise<string> {
    return this.switchSession(await this.session.createBranchedSession(entryId))
  }

  // Looking on

  /** Subagents at work, by the id of their session. */
  get subagents(): ReadonlyMap<string, Subagent> {
    return this.#conversation.subagents.running
  }

  state(): AgentState {
    return stateOf(this.#conversation)
  }

  /** Every event from now on. One that throws is no harm to the others. */
  subscribe(listener: AgentListener): () => void {
    return this.#listeners.add(listener)
  }

  /** Stops what this agent session runs, and closes it. A run that another one has started in this process goes on. */
  async close(): Promise<void> {
    if (this.#closing.signal.aborted) return
    this.#closing.abort()
    await this.#leave()
    this.#listeners.clear()
  }

  /** Closes the session and leaves its run open, as for a process that is started again: `resume` goes on with it. */
  async suspend(): Promise<void> {
    if (this.#closing.signal.aborted) return
    this.#closing.abort()
    await this.#hooks.sessionEnd({ sessionId: this.session.id })
    await this.#conversation.suspend()
    this.#listeners.clear()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close()
  }

  /** Undefined where a run goes on. One that was left behind is ended first. */
  async #startUnlessBusy(start: RunStart): Promise<Run | undefined> {
    const { slot, session } = this.#conversation
    if (slot.isBusy) return undefined
    return slot.alone(async () => {
      if (slot.isBusy) return undefined
      await closeInterruptedRun(session)
      // A message that waited may have begun one.
      return slot.isBusy ? undefined : slot.start(start)
    })
  }

  get #cwd(): string {
    return this.#options.cwd ?? process.cwd()
  }

  get #hooks(): Hooks {
    return this.#conversation.hooks
  }

  readonly #tell = (event: AgentEvent): void => {
    this.#listeners.notify(event)
  }

  #converse(session: Session, choice: ModelChoice): Conversation {
    const openChild = (options: AgentSessionOptions): Promise<AgentSession> => AgentSession.open(options)
    const parts = { session, choice, options: this.#options, cwd: this.#cwd, observe: this.#tell }
    return new Conversation({ ...parts, openChild })
  }

  async #keepModel(model: Model, cause?: Cause): Promise<Model> {
    const { slot } = this.#conversation
    const modelChange = { provider: model.provider, modelId: model.id }
    // A run keeps its model; the next one says in the log which it uses.
    if (!slot.isBusy) await slot.append({ type: 'model_change', modelChange }, cause)
    return model
  }

  async #switchTo(session: Session, choice: ModelChoice): Promise<string> {
    const previousId = this.session.id
    await this.#leave()
    this.#conversation = this.#converse(session, choice)
    await this.#beginOther()
    this.#tell({ type: 'session_switched', sessionId: session.id, previousId })
    await this.#hooks.sessionStart({ sessionId: session.id })
    return session.id
  }

  /** The mode option is for the session that was opened with it; another one keeps the mode it has. */
  async #beginOther(): Promise<void> {
    const { mode, maxMode } = this.#options
    const { permissionMode, session } = this.#conversation
    const isFresh = session.permissionMode === undefined
    await permissionMode.begin({ ...(isFresh && mode && { mode }), ...(maxMode && { maxMode }) })
  }

  async #leave(): Promise<void> {
    await this.#hooks.sessionEnd({ sessionId: this.session.id })
    await this.#conversation.close()
  }

  #nameInBackground(prompt: string): void {
    const { session } = this
    if (session.name !== '') return
    const { signal } = this.#closing
    const { smallModel, models } = this.#options
    const opened = smallModel ? models.open(smallModel.provider, smallModel.modelId) : Promise.resolve(undefined)
    void opened.catch(() => undefined).then((model) => nameSession({ session, prompt, model, signal }))
  }
}

/** An interrupted run is resumed or closed first: its calls have no results yet. */
function refuseOpenRun({ id, openRun }: Session): void {
  if (openRun) throw new SessionError('session-busy', `Session ${id} cannot compact: run ${openRun.runId} is open.`)
}

/**
 * A session goes on with the model and level that it had, and a new one starts with the requested model or the first choice. If the
 * model of a session with messages is gone, the requested model or else the first usable choice takes its place.
 */
async function choiceFor(session: Session | undefined, options: AgentSessionOptions): Promise<ModelChoice> {
  const { models: source, model: wanted } = options
  const inForce = await session?.getContext()
  const level = thinkingLevels.find((known) => known === inForce?.thinkingLevel) ?? options.thinkingLevel
  const choose = async ({ provider, modelId }: ModelReference, missing?: MissingModel): Promise<ModelChoice> =>
    new ModelChoice({ source, model: await source.open(provider, modelId), thinkingLevel: level, missing })
  const used = inForce?.model
  if (!used) return choose(wanted ?? (await firstOf(source)))
  try {
    return await choose(used)
  } catch (error) {
    // Nobody has talked to this session yet, so its model is the one that somebody asked for.
    if (session?.info.messageCount === 0) throw error
    const missing = { ...used, reason: error instanceof Error ? error.message : String(error) }
    const others = await source.choices().catch(() => [])
    for (const other of wanted ? [wanted, ...others] : others) {
      const choice = await choose(other, missing).catch(() => undefined)
      if (choice) return choice
    }
    throw error
  }
}

async function firstOf(models: ModelSource): Promise<ModelReference> {
  const [first] = await models.choices()
  if (!first) throw new RegistryError('unknown-model', 'There is no model to use.')
  return first
}
