import {
  newId,
  SessionError,
  text,
  type BashExecution,
  type Cause,
  type ModelReference,
  type Session,
} from '@tapetree/session'
import { Listeners } from '@tapetree/session/util/listeners'
import { systemClock } from '@tapetree/session/util/wait'
import type { Hooks } from '../run/hooks.ts'
import { thinkingLevels, type Model, type ThinkingLevel } from '../models/model.ts'
import type { PermissionMode } from '../permissions/modes.ts'
import type { Answered, RequestAnswer } from '../permissions/requests.ts'
import { RegistryError } from '../models/registry/model-info.ts'
import { abandonRun, closeInterruptedRun } from '../run/abandon-run.ts'
import type { AgentEvent, AgentListener } from '../run/events.ts'
import {
  resolveOptions,
  type AgentSessionOptions,
  type PromptOptions,
  type PromptOutcome,
  type ResolvedOptions,
} from './agent-session-options.ts'
import { stateOf, OpenSession, type AgentState } from './open-session.ts'
import { summarizeBranch } from '../summary/branch-summary.ts'
import { compact, type CompactionOutcome } from '../summary/compaction.ts'
import { ModelChoice, type MissingModel, type ModelSource } from './model-choice.ts'
import { composeMessage } from '../prompt/compose-message.ts'
import { planResume, type ResumePlan } from '../run/resume.ts'
import type { RunStart } from '../run/run.ts'
import { defaultRunSettings, type RunSettings } from '../run/run-settings.ts'
import type { Run } from '../run/run-slot.ts'
import { endInterruptedCommands } from '../run/user-command.ts'
import { resumeRewind, rewind, type RewindOptions, type RewindOutcome } from './rewind.ts'
import { continueCommands, executeBash, type BashOptions, type ShellDeps } from './shell.ts'
import type { Subagent } from './subagents.ts'
import type { InputSchema, ToolInput } from '../tools/tool-input.ts'
import { ask, stream, type AskOptions, type Reply, type ReplyEvent } from './reply.ts'
import { nameSession } from '../summary/title.ts'
import type { BlockedWrites } from '../sandbox/kept-writes.ts'
import type { RemoteWorkspace } from '../tool-host/remote-workspace.ts'
import type { WorkspaceSnapshots } from '../workspace/workspace-snapshots.ts'

/** One agent that works on one session at a time. The log and the files of the jobs hold all state. */
export class AgentSession {
  readonly #options: ResolvedOptions
  /** An error of a listener must not stop the run. */
  readonly #listeners = new Listeners<AgentEvent>(() => undefined)
  readonly #closing = new AbortController()
  #open: OpenSession

  private constructor(options: ResolvedOptions, session: Session, choice: ModelChoice) {
    this.#options = options
    this.#open = this.#newOpenSession(session, choice)
  }

  static async open(given: AgentSessionOptions): Promise<AgentSession> {
    const options = resolveOptions(given)
    const { store, sessionId, cwd = process.cwd(), create = false } = options
    // A new session is created only when there is a model for it, so that a failed start leaves no empty session behind.
    const choice = sessionId === undefined ? await choiceFor(undefined, options) : undefined
    const session =
      sessionId === undefined
        ? await store.create({ cwd })
        : await store.open(sessionId, create ? { create: { cwd } } : {})
    let agent: AgentSession | undefined
    try {
      agent = new AgentSession(options, session, choice ?? (await choiceFor(session, options)))
      // Fails here, before the first run, if two tools have the same name.
      agent.#open.tools()
      await agent.#open.permissionMode.begin(options)
      await agent.#open.fallBack()
      await agent.#endInterruptedCommands()
      await agent.#hooks.sessionStart({ sessionId: session.id })
      return agent
    } catch (error) {
      // What it found running goes on.
      if (agent) await agent.#open.commands.leave()
      await (agent ? agent.#open.close() : session.close())
      if (choice) await store.delete(session.id).catch(() => undefined)
      throw error
    }
  }

  get session(): Session {
    return this.#open.session
  }

  /** The files of the folder in which the agent works, if they are recorded. */
  get files(): WorkspaceSnapshots | undefined {
    return this.#open.files
  }

  /** Where its tools work, if it is not this process. */
  get remote(): RemoteWorkspace | undefined {
    return this.#open.remote
  }

  // Prompting

  /** Sends a prompt to the agent. All checks happen before the prompt is appended to the log. */
  async prompt(typed: string, options: PromptOptions = {}): Promise<PromptOutcome> {
    const { whenBusy = 'queue', source } = options
    const cause = options.cause ?? (source === undefined ? undefined : { cmd: newId(), client: source })
    const { slot, session } = this.#open
    const composed = await composeMessage(typed, options, { session, expand: this.#options.expand })
    if ('say' in composed) return { type: 'handled', runId: null, say: composed.say }
    const { text: words, images } = composed
    const content = [text(words), ...images.map(({ block }) => block)]
    const { temperature, maxOutputTokens } = options
    const settings = {
      ...(temperature !== undefined && { temperature }),
      ...(maxOutputTokens !== undefined && { maxOutputTokens }),
    }
    const away = this.#open.remote?.problem
    const run =
      away === undefined
        ? await this.#startUnlessBusy({ type: 'prompt', content, ...(cause && { cause }) }, settings)
        : undefined
    if (run) {
      this.#nameInBackground(words)
      return { type: 'started', runId: run.id, run }
    }
    if (whenBusy === 'reject') throw away === undefined ? slot.busy() : new SessionError('session-busy', away)
    const delivery = whenBusy === 'steer' ? 'steer' : 'follow-up'
    const imageIds = images.map(({ id }) => id)
    const message = await session.submit(words, { delivery, imageIds, ...(cause && { cause }) })
    slot.wake()
    return { type: whenBusy === 'steer' ? 'steered' : 'queued', runId: session.openRun?.runId ?? null, message }
  }

  /**
   * Prompts, waits for the end of the run, and resolves with the answer. A run that fails or is aborted resolves, too: see `outcome`.
   * Rejects if no run starts: during another run with `session-busy`, unless `whenBusy` is `wait`.
   */
  ask<Schema extends InputSchema = InputSchema>(
    text: string,
    options: AskOptions<Schema> = {},
  ): Promise<Reply<ToolInput<Schema>>> {
    return ask(this, text, options)
  }

  /** Like `ask`, but yields what happens meanwhile; the last event is `end`, with the reply. Leaving the loop aborts the run. */
  stream<Schema extends InputSchema = InputSchema>(
    text: string,
    options: AskOptions<Schema> = {},
  ): AsyncGenerator<ReplyEvent<ToolInput<Schema>>, void> {
    return stream(this, text, options)
  }

  /** Resolves when nothing runs and no queued message is about to be delivered. */
  async untilIdle(): Promise<void> {
    await this.#open.slot.untilFree()
  }

  /** Delivers the prompt before the next model call. Calls that have not started are skipped. */
  steer(typed: string, options: Omit<PromptOptions, 'whenBusy'> = {}): Promise<PromptOutcome> {
    return this.prompt(typed, { ...options, whenBusy: 'steer' })
  }

  /** Delivers the prompt after the current run. */
  followUp(typed: string, options: Omit<PromptOptions, 'whenBusy'> = {}): Promise<PromptOutcome> {
    return this.prompt(typed, { ...options, whenBusy: 'queue' })
  }

  /**
   * Stops the current run or summary of any agent session, and resolves when it has ended. The partial answer is kept.
   */
  async abort(): Promise<void> {
    await this.#open.slot.abort()
  }

  /**
   * Closes an interrupted run that will not be resumed, and those of its subagents. Rejects with `session-busy` if the run is active in this
   * process.
   */
  async abandon(): Promise<void> {
    await abandonRun(this.session, this.#options)
  }

  /** Starts a run from the leaf: after a failure, or after a limit was raised. */
  async retry(cause?: Cause): Promise<Run> {
    const away = this.#open.remote?.problem
    if (away !== undefined) throw new SessionError('session-busy', away)
    const run = await this.#startUnlessBusy({ type: 'leaf', ...(cause && { cause }) })
    if (!run) throw this.#open.slot.busy()
    return run
  }

  /** The plan for a run whose process died. Undefined if there is none, or if the run is active. Changes nothing. */
  async planResume(): Promise<ResumePlan | undefined> {
    const { slot } = this.#open
    if (slot.isBusy) return undefined
    const plan = await planResume(this.session, this.#options.foreign ? [] : this.#open.tools())
    // A run may have begun meanwhile.
    return slot.isBusy ? undefined : plan
  }

  /**
   * Resumes a run whose process died. If a run is active in this process, returns that run and appends nothing. After
   * two resumes without progress it requires `byPerson`.
   */
  async resume(options: { byPerson?: boolean; cause?: Cause } = {}): Promise<Run | undefined> {
    const { slot } = this.#open
    for (;;) {
      const run = (await slot.liveRun()) ?? (await this.#resumeInterrupted(options))
      if (run !== 'busy') return run
    }
  }

  async #resumeInterrupted(options: { byPerson?: boolean; cause?: Cause }): Promise<Run | undefined | 'busy'> {
    const { slot } = this.#open
    return slot.alone(async () => {
      // Another agent session may have left them.
      continueCommands(this.#open.commands, this.#shell)
      const plan = await this.planResume()
      if (slot.isBusy) return 'busy'
      if (!plan) {
        await this.#endInterruptedCommands()
        slot.wake()
        return undefined
      }
      if (plan.needsPerson && !options.byPerson) {
        throw new SessionError(
          'session-busy',
          `Run ${plan.runId} was resumed twice without progress. Resume it with byPerson.`,
        )
      }
      const { cause } = options
      this.#open.reattach(plan)
      const run = slot.start({ type: 'resume', plan, ...(cause && { cause }) })
      if (this.#open.remote?.problem === undefined) return run
      // It waits for the tools. How it ends is in the log.
      run.catch(() => undefined)
      return { id: plan.runId, done: run.then(({ done }) => done) }
    })
  }

  /** Delivers queued messages unless the queue is held. Call it after adding a message to the queue. */
  wake(): void {
    this.#open.slot.wake()
  }

  /** Answers a request of the agent. The first answer wins. */
  answer(answer: RequestAnswer, cause?: Cause): Promise<Answered> {
    return this.#open.requests.answer(answer, cause)
  }

  /** Runs a command of the user and records it in the session. */
  executeBash(command: string, options: BashOptions = {}): Promise<BashExecution> {
    const work = (signal: AbortSignal): Promise<BashExecution> =>
      executeBash(command, { ...options, signal }, this.#shell)
    return this.#open.commands.run(work, options.signal)
  }

  /** Whether commands of the user run. */
  get runsCommands(): boolean {
    return this.#open.commands.areRunning
  }

  /** Stops the running commands of the user. Resolves when they are in the log, with whether there were any. */
  stopCommands(): Promise<boolean> {
    return this.#open.commands.stop()
  }

  // Model and mode

  /** Takes effect with the next run. Rejects if the model cannot be used, for example if its key is missing. */
  async setModel(provider: string, modelId: string, cause?: Cause): Promise<Model> {
    return this.#keepModel(await this.#open.choice.set(provider, modelId), cause)
  }

  async cycleModel(direction: 'forward' | 'backward' = 'forward'): Promise<Model> {
    return this.#keepModel(await this.#open.choice.cycle(direction))
  }

  async setThinkingLevel(level: ThinkingLevel, cause?: Cause): Promise<void> {
    if (!thinkingLevels.includes(level)) throw new TypeError(`There is no thinking level ${level}.`)
    const { choice, slot } = this.#open
    choice.thinkingLevel = level
    if (!slot.isBusy) await slot.append({ type: 'thinking_level', thinkingLevel: { thinkingLevel: level } }, cause)
  }

  /**
   * Recorded in the log. A wider mode takes effect with the next call after it is durable, a narrower one with the next
   * call.
   */
  async setMode(mode: PermissionMode, cause?: Cause): Promise<void> {
    await this.#open.permissionMode.set(mode, cause)
    const problem = mode === 'sandboxed' ? await this.#open.fallBack() : undefined
    if (problem !== undefined) throw new SessionError('mode-not-usable', problem)
  }

  /** Why commands cannot run in a sandbox, if the session was to use one: a sentence, with the repair. */
  async sandboxProblem(): Promise<string | undefined> {
    return this.#open.wantedSandbox ? this.#open.sandboxProblem() : undefined
  }

  // History

  /** Occupies the slot of the session like a run: prompts are queued until it ends, and `abort` stops it. */
  async compact(instructions?: string, cause?: Cause): Promise<CompactionOutcome> {
    const { session, slot, choice } = this.#open
    return slot.exclusively(async (signal) => {
      refuseOpenRun(session)
      const asked = { reason: 'manual' as const, ...(instructions !== undefined && { instructions }) }
      const before = await this.#hooks.beforeCompact(asked, signal)
      if (before.cancelledBy !== undefined) return { type: 'nothing-to-cut' }
      await this.#open.stopBackground()
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
   * Moves to any entry of the session, optionally with a summary of the abandoned branch. Closes an interrupted run.
   * Prompts are queued until it ends.
   */
  async navigate(
    entryId: string | null,
    options: { summarize?: boolean; instructions?: string; cause?: Cause } = {},
  ): Promise<void> {
    const { session, slot, choice } = this.#open
    const { instructions, cause, summarize = false } = options
    await slot.exclusively(async (signal) => {
      await closeInterruptedRun(session, this.#options)
      const target = { session, targetId: entryId, ...(cause && { cause }) }
      if (summarize) await summarizeBranch({ ...target, model: choice.model, instructions, signal })
      else await session.branch(entryId, cause && { cause })
    })
  }

  /**
   * Goes back to an entry: in the conversation, in the files, or in both. Nothing is lost, and it can be taken back: call it
   * without an entry. Prompts are queued until it ends. Rejects with a `RestoreProblem` if the files cannot go back.
   */
  async rewind(options: RewindOptions = {}): Promise<RewindOutcome> {
    return this.#open.rewinding((place) => rewind(options, place))
  }

  /** Finishes or undoes a restore of files that was interrupted: `session.openRestore`. */
  async resumeRewind(direction: 'finish' | 'undo', cause?: Cause): Promise<RewindOutcome> {
    return this.#open.rewinding((place) => resumeRewind(direction, { ...place, ...(cause && { cause }) }))
  }

  /** Control files that commands made and the sandbox took back, and what commands wrote to the home folder. */
  async blockedWrites(): Promise<BlockedWrites> {
    const kept = await this.#open.keptWrites()
    return { writes: (await kept?.list()) ?? [], ...(kept && { home: await kept.home() }) }
  }

  /** Moves a control file that the sandbox took back to its path. Only for the user. Rejects with a `KeptWriteError`. */
  async applyBlocked(id: string, cause?: Cause): Promise<void> {
    const kept = await this.#open.requireKeptWrites()
    await kept.apply(id, (draft) => this.session.append(draft, cause && { cause }))
  }

  /** Deletes a control file that the sandbox took back. */
  async discardBlocked(id: string, cause?: Cause): Promise<void> {
    const kept = await this.#open.requireKeptWrites()
    await kept.discard(id, (draft) => this.session.append(draft, cause && { cause }))
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

  /** Copies the path to this entry into a new session and switches to it. */
  async fork(entryId: string): Promise<string> {
    return this.switchSession(await this.session.createBranchedSession(entryId))
  }

  // Observing

  /** The running subagents, by session id. */
  get subagents(): ReadonlyMap<string, Subagent> {
    return this.#open.subagents.running
  }

  state(): AgentState {
    return stateOf(this.#open)
  }

  /** Calls the listener for every event from now on. A listener that throws does not affect the others. */
  subscribe(listener: AgentListener): () => void {
    return this.#listeners.add(listener)
  }

  /**
   * Stops the run that this agent session started, and closes it. A run of another agent session in this process
   * continues.
   */
  async close(): Promise<void> {
    if (this.#closing.signal.aborted) return
    this.#closing.abort()
    await this.#leave()
    this.#listeners.clear()
  }

  /** Closes the session and leaves its run open for `resume`, for example before a restart of the process. */
  async suspend(): Promise<void> {
    if (this.#closing.signal.aborted) return
    this.#closing.abort()
    await this.#hooks.sessionEnd({ sessionId: this.session.id })
    await this.#open.suspend()
    this.#listeners.clear()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close()
  }

  /** Undefined if a run is active. Closes an interrupted run first. */
  async #startUnlessBusy(start: RunStart, settings: Partial<RunSettings> = {}): Promise<Run | undefined> {
    const { slot, session } = this.#open
    if (slot.isBusy) return undefined
    return slot.alone(async () => {
      if (slot.isBusy) return undefined
      await closeInterruptedRun(session, this.#options)
      // A queued message may have started one.
      return slot.isBusy ? undefined : slot.start(start, settings)
    })
  }

  get #cwd(): string {
    return this.#options.cwd ?? process.cwd()
  }

  get #shell(): ShellDeps {
    const { session, slot, jobs, redactor, remote } = this.#open
    const { shellPrefix: prefix = '', clock = systemClock } = this.#options
    const observe = (event: AgentEvent): void => slot.tell(event)
    return { session, slot, jobs, cwd: this.#cwd, prefix, observe, redactor, clock, ...(remote && { remote }) }
  }

  get #hooks(): Hooks {
    return this.#open.hooks
  }

  readonly #tell = (event: AgentEvent): void => {
    this.#listeners.notify(event)
  }

  #newOpenSession(session: Session, choice: ModelChoice): OpenSession {
    const openChild = (options: ResolvedOptions): Promise<AgentSession> => AgentSession.open(options)
    const parts = { session, choice, options: this.#options, cwd: this.#cwd, observe: this.#tell }
    return new OpenSession({ ...parts, openChild })
  }

  async #keepModel(model: Model, cause?: Cause): Promise<Model> {
    const { slot } = this.#open
    const modelChange = { provider: model.provider, modelId: model.id }
    // A run keeps its model; the next one records its model in the log.
    if (!slot.isBusy) await slot.append({ type: 'model_change', modelChange }, cause)
    return model
  }

  async #switchTo(session: Session, choice: ModelChoice): Promise<string> {
    const previousId = this.session.id
    await this.#leave()
    this.#open = this.#newOpenSession(session, choice)
    await this.#beginOther()
    this.#tell({ type: 'session_switched', sessionId: session.id, previousId })
    await this.#hooks.sessionStart({ sessionId: session.id })
    return session.id
  }

  /** The mode option applies to the session that was opened with it. Another session keeps its own mode. */
  async #beginOther(): Promise<void> {
    const { mode, maxMode } = this.#options
    const { permissionMode, session } = this.#open
    const isFresh = session.permissionMode === undefined
    await permissionMode.begin({ ...(isFresh && mode && { mode }), ...(maxMode && { maxMode }) })
    await this.#open.fallBack()
    await this.#endInterruptedCommands()
  }

  /** If a run can be resumed, it does this, so that its position stays the same until then. */
  async #endInterruptedCommands(): Promise<void> {
    const { session, slot, commands } = this.#open
    continueCommands(commands, this.#shell)
    if (session.openCommands.length === 0 || (await this.planResume())) return
    // A session whose log cannot grow is still opened. The next one that opens it tries again.
    await endInterruptedCommands(session, (draft, cause) => slot.append(draft, cause)).catch(() => undefined)
  }

  async #leave(): Promise<void> {
    await this.#hooks.sessionEnd({ sessionId: this.session.id })
    await this.#open.close()
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

/** An interrupted run must be resumed or closed first: its calls have no results yet. */
function refuseOpenRun({ id, openRun }: Session): void {
  if (openRun) throw new SessionError('session-busy', `Session ${id} cannot compact: run ${openRun.runId} is open.`)
}

/**
 * A session continues with its last model and thinking level. A new one starts with the requested model or the first
 * choice. If the model of a session with messages is gone, the requested model or else the first usable choice replaces
 * it.
 */
async function choiceFor(session: Session | undefined, options: ResolvedOptions): Promise<ModelChoice> {
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
    // The session has no messages, so its model is the requested one: report the error.
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
  if (!first) throw new RegistryError('unknown-model', 'No model is available.')
  return first
}
