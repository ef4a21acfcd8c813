import { newId, type Session, type InboxHold, type SessionTotals, type WaitingMessage } from '@tapetree/session'
import type { EntryDraft } from '@tapetree/session/format'
import { settledWithin } from '@tapetree/session/util/deadline'
import { homedir } from 'node:os'
import { systemClock, type Clock } from '@tapetree/session/util/wait'
import { noHooks, type Hooks, type HookSession } from '../run/hooks.ts'
import { diagnosticsTool } from '../language-servers/diagnostics-tool.ts'
import { EditDiagnostics } from '../language-servers/edit-diagnostics.ts'
import type { Model, ThinkingLevel } from '../models/model.ts'
import { exitPlanTool, toolsFor, type PermissionMode } from '../permissions/modes.ts'
import { PermissionGate, rulesInForce } from '../permissions/gate.ts'
import { askUser, type Requests, type PermissionRequest } from '../permissions/requests.ts'
import { SessionMode } from '../permissions/session-mode.ts'
import { defaultPolicy, createRedactor, type Redactor } from '@tapetree/redact'
import { allTools, needsFiles } from '../tools/builtin/all-tools.ts'
import { bashTool } from '../tools/builtin/bash.ts'
import { SessionSuspended, type Gate, type Answer, type Question, type Tool } from '../tools/tool.ts'
import type { Jobs } from '../tools/commands/jobs.ts'
import type { AgentEvent } from '../run/events.ts'
import type { RunDeps } from '../run/run-deps.ts'
import type { ResolvedOptions } from './agent-session-options.ts'
import { gateUntilLeaving, untilLeaving, RunningCalls } from './suspend.ts'
import type { ModelChoice, MissingModel } from './model-choice.ts'
import { KeptWriteError, type KeptWrites } from '../sandbox/kept-writes.ts'
import { SessionSandbox } from '../sandbox/session-sandbox.ts'
import { UserCommands } from './shell.ts'
import { redactingModel, redactionOf } from '../run/redaction.ts'
import type { ResumePlan } from '../run/resume.ts'
import { defaultRunSettings } from '../run/run-settings.ts'
import { RunSlot, SharedSession } from '../run/run-slot.ts'
import { KeptFiles } from '../tool-host/remote-files.ts'
import type { RemoteWorkspace } from '../tool-host/remote-workspace.ts'
import type { RewindPlace } from './rewind.ts'
import { WorkspaceSnapshots } from '../workspace/workspace-snapshots.ts'
import { Subagents, taskTool, type Subagent } from './subagents.ts'

interface OpenSessionDeps {
  /** Opens a subagent. */
  openChild: (options: ResolvedOptions) => Promise<Subagent>
  session: Session
  choice: ModelChoice
  options: ResolvedOptions
  cwd: string
  observe: (event: AgentEvent) => void
}

/** One open session, and everything that runs in it. */
export class OpenSession {
  readonly session: Session
  readonly requests: Requests
  readonly slot: RunSlot
  readonly jobs: Jobs
  readonly commands: UserCommands
  readonly choice: ModelChoice
  readonly subagents: Subagents
  /** The files of the folder in which the agent works. */
  readonly files: WorkspaceSnapshots | undefined
  /** Bound to this session. */
  readonly hooks: Hooks
  readonly permissionMode: SessionMode
  readonly #options: ResolvedOptions
  readonly #gate: Gate
  readonly #sandbox: SessionSandbox | undefined
  readonly #cwd: string
  readonly #shared: SharedSession
  readonly #redactor: Redactor
  readonly #stop: () => void
  readonly #leaving = new AbortController()
  readonly #runningCalls: RunningCalls
  readonly #keptFiles: KeptFiles | undefined
  #exitPlan: Tool | undefined
  #isRewinding = false
  #wantedSandbox = false

  constructor({ session, choice, options, cwd, observe, openChild }: OpenSessionDeps) {
    this.session = session
    this.choice = choice
    this.commands = new UserCommands(session)
    this.permissionMode = new SessionMode({ session, defaultMode: options.defaultMode ?? 'ask' })
    this.#options = options
    this.#cwd = cwd
    this.#redactor = options.redactor ?? createRedactor(defaultPolicy())
    session.redactWith(redactionOf(this.#redactor))
    this.#shared = SharedSession.of(session)
    this.slot = new RunSlot({ session, deps: () => this.deps(), observe })
    this.requests = this.#shared.requestsFor(session)
    this.jobs = this.#shared.jobs
    this.files = options.parentFiles ? undefined : this.#openSnapshots()
    const sandbox = options.remote ? undefined : options.sandbox
    this.#sandbox =
      sandbox &&
      new SessionSandbox({
        session,
        open: sandbox,
        cwd,
        files: () => options.parentFiles ?? this.files,
        rules: () => rulesInForce(options.policy?.().rules, this.requests.grants),
      })
    this.#gate = gateUntilLeaving(options.gate?.(this.requests) ?? this.#permissionGate(), this.#leaving.signal)
    this.#runningCalls = new RunningCalls(session)
    this.subagents = new Subagents({
      store: options.store,
      parent: session,
      cwd,
      tools: () => this.tools(),
      gate: this.#gate,
      open: ({ sessionId, tools, gate }) => openChild(this.#childOptions({ sessionId, tools, gate: () => gate })),
    })
    this.hooks = this.#hooksHere(options.hooks ?? noHooks)
    this.#stop = session.subscribe((committed) => observe({ type: 'line', committed }))
    const { remote, owner } = options
    // A subagent works in the folder of its parent.
    this.#keptFiles = remote && owner !== 'subagent' ? new KeptFiles(session, remote) : undefined
    // Nothing after this line can fail.
    this.#shared.join(this.slot)
  }

  /** Where its tools work, if it is not this process. */
  get remote(): RemoteWorkspace | undefined {
    return this.#options.remote
  }

  get mode(): PermissionMode {
    return this.permissionMode.current
  }

  get redactor(): Redactor {
    return this.#redactor
  }

  /** The dependencies of the next run. */
  deps(): RunDeps {
    const {
      systemPrompt = () => '',
      settings,
      clock = systemClock,
      environmentChanges,
      diagnostics,
      models,
      fallbackModel,
      owner,
      parentFiles,
      whenUnanswered,
      remote,
      foreign,
    } = this.#options
    const files = parentFiles?.forSubagent(this.session.id) ?? this.files
    return {
      session: this.session,
      ...(owner !== undefined && { owner }),
      model: () => this.#guarded(this.choice.model),
      redactor: this.#redactor,
      thinkingLevel: () => this.choice.thinkingLevel,
      tools: () => this.tools(),
      systemPrompt,
      gate: this.#gate,
      requests: this.requests,
      ...(whenUnanswered === 'deny' && { isUnattended: true }),
      ...(remote && { ready: (signal: AbortSignal) => remote.ready(signal) }),
      cwd: this.#cwd,
      clock,
      settings: { ...defaultRunSettings, ...settings?.() },
      observe: (event) => this.slot.tell(event),
      hooks: this.hooks,
      background: this.#shared.background,
      ...(files && { files }),
      ...(environmentChanges && { environmentChanges }),
      ...(diagnostics && { diagnostics }),
      ...(foreign && { foreign: { agent: foreign, leaving: this.#leaving.signal, terminal: this.#terminal() } }),
      ...(fallbackModel && {
        fallbackModel: async () => {
          return this.#guarded(await models.open(fallbackModel.provider, fallbackModel.modelId))
        },
      }),
    }
  }

  /** A foreign agent waits for its commands itself, so they do not move to the background. */
  #terminal(): Tool {
    const time = { moveAfterMs: dayMs, deadlineMs: dayMs }
    return bashTool({
      ...{ jobs: this.jobs, redaction: this.#redactor.policy, ...time },
      ...(this.#sandbox && { sandbox: this.#sandbox }),
    })
  }

  /** The tools that the model is offered in the current mode. */
  tools(): readonly Tool[] {
    const {
      tools = ({ jobs, redaction, sandbox }) => allTools({ jobs, redaction, ...(sandbox && { bash: { sandbox } }) }),
      hasSubagents = true,
      remote,
    } = this.#options
    // Its schema is converted once: the tools are requested in every turn.
    this.#exitPlan ??= exitPlanTool({ onAccepted: () => this.permissionMode.set('ask') })
    const given = tools({
      session: this.session,
      jobs: this.jobs,
      redaction: this.#redactor.policy,
      ...(this.#sandbox && { sandbox: this.#sandbox }),
    })
    const placed = remote ? [...remote.tools(), ...given.filter(({ name }) => !needsFiles(name))] : given
    return toolsFor(
      this.mode,
      distinct([...placed, ...(hasSubagents ? [taskTool(this.subagents)] : []), this.#exitPlan]),
    )
  }

  /** Why commands cannot run in a sandbox: a sentence, with the repair. */
  async sandboxProblem(): Promise<string | undefined> {
    const { remote } = this.#options
    // A host that cannot be reached may have one.
    if (remote && (remote.problem !== undefined || (await remote.sandbox.isUsable()))) return undefined
    return this.#sandbox
      ? this.#sandbox.problem()
      : 'Commands cannot run in a sandbox, so they are asked about as in mode ask. This program offers no sandbox.'
  }

  /** Undefined if the session has no sandbox. */
  async keptWrites(): Promise<KeptWrites | undefined> {
    return this.#sandbox?.keptWrites()
  }

  async requireKeptWrites(): Promise<KeptWrites> {
    const kept = await this.keptWrites()
    if (!kept) throw new KeptWriteError('write-not-found', 'This session has no sandbox, so it has blocked nothing.')
    return kept
  }

  /** Whether mode `sandboxed` was to be used when the session was opened. */
  get wantedSandbox(): boolean {
    return this.#wantedSandbox
  }

  /** If the sandbox does not work, mode `sandboxed` becomes `ask`, and the log says why. */
  async fallBack(): Promise<string | undefined> {
    this.#wantedSandbox = this.mode === 'sandboxed'
    const problem = this.#wantedSandbox ? await this.sandboxProblem() : undefined
    if (problem !== undefined) await this.permissionMode.set('ask', undefined, problem)
    return problem
  }

  /** Occupies the slot, so that no run works on the files meanwhile. */
  rewinding<T>(work: (place: RewindPlace) => Promise<T>): Promise<T> {
    return this.slot.exclusively(async () => {
      this.#isRewinding = true
      try {
        return await work({ session: this.session, files: this.files, store: this.#options.store })
      } finally {
        this.#isRewinding = false
      }
    })
  }

  /** Stops what this agent session runs. Runs of other agent sessions continue. */
  async close(): Promise<void> {
    await Promise.all([this.slot.leave(), this.commands.stop(), this.commands.leave()])
    await this.stopBackground()
    const { isLast } = this.#leave()
    if (isLast) await this.#shared.closeJobs()
    await this.#sandbox?.close()
    await this.files?.close()
    await this.session.close()
  }

  /** Discards the summary that is being made in the background. The next run makes it again. */
  stopBackground(): Promise<void> {
    return this.#shared.background.stop()
  }

  /** Counts the commands that a resumed run reattaches to among those that run here. */
  reattach({ matters }: ResumePlan): void {
    for (const matter of matters) {
      if (matter.type === 'call' && matter.action === 'reattach') {
        this.#runningCalls.reattach(matter.call.id, matter.call.name)
      }
    }
  }

  /**
   * Closes the session and leaves its run open, like a process that dies, but in order: the model call ends, no call
   * starts, and running calls that cannot be resumed get time to finish. Then the log is closed, so that work which is
   * still running cannot record that it was stopped.
   */
  async suspend(): Promise<void> {
    const { clock = systemClock } = this.#options
    const left = new SessionSuspended()
    this.#leaving.abort(left)
    const run = Promise.race([this.slot.suspend(), this.#onlyRepeatableRun()])
    const { remote } = this.#options
    // A command of the user continues on a tool host. Here it would become a job, so it is stopped.
    const commands = Promise.all([this.commands.stop(remote && left), this.commands.leave()])
    await within(finishMs, clock, Promise.all([run, commands, this.stopBackground()]))
    // Only a process on this machine can reattach to a command that is running here.
    const isContinuedHere = !remote && this.#runningCalls.tools.some((tool) => this.#replays().get(tool) === 'reattach')
    const { isLast } = this.#leave()
    // Otherwise the next process takes the changes of the last call for those of someone else.
    if (this.files) await within(stopMs, clock, this.files.close())
    await this.session.close({ handOver: !isContinuedHere })
    await Promise.all([...this.subagents.running.values()].map((child) => child.suspend()))
    // A tool that ignores its signal is not waited for: the process is about to end.
    await within(stopMs, clock, this.slot.stop(left))
    if (isLast) await this.#shared.closeJobs()
    await this.#sandbox?.close()
  }

  #leave(): { isLast: boolean } {
    this.#stop()
    this.#runningCalls.close()
    this.#keptFiles?.close()
    return this.#shared.leave(this.slot)
  }

  /** Resolves when the next process can resume everything that is running. */
  async #onlyRepeatableRun(): Promise<void> {
    const replays = this.#replays()
    const isRepeatable = (tool: string): boolean => (replays.get(tool) ?? 'never') !== 'never'
    await this.#runningCalls.until((tools) => tools.length > 0 && tools.every(isRepeatable))
  }

  #replays(): ReadonlyMap<string, Tool['replay']> {
    return new Map(this.tools().map(({ name, replay }) => [name, replay]))
  }

  #guarded(model: Model): Model {
    return redactingModel(untilLeaving(model, this.#leaving.signal), this.#redactor)
  }

  /** A subagent has the model and settings of its parent, and gets no messages of its parent. */
  #childOptions(
    child: Required<Pick<ResolvedOptions, 'sessionId' | 'gate'>> & { tools: () => readonly Tool[] },
  ): ResolvedOptions {
    const { environmentChanges: _, expand: __, mode: ___, ...inherited } = this.#options
    const { provider, id: modelId } = this.choice.model
    // Only its parent resumes it.
    const owner = 'subagent'
    return {
      ...inherited,
      ...child,
      ...ownDiagnostics(inherited.diagnostics, child.tools),
      ...(this.files && { parentFiles: this.files }),
      owner,
      model: { provider, modelId },
      defaultMode: this.mode,
      hasSubagents: false,
    }
  }

  #hooksHere(hooks: Hooks): Hooks {
    const { session, slot, requests } = this
    const ask = (tool: string, question: Question, signal: AbortSignal): Promise<Answer> =>
      askUser(question, { tool }, (request) => requests.ask(request, signal))
    const here: HookSession = {
      id: session.id,
      cwd: this.#cwd,
      get leafId() {
        return slot.head
      },
      append: (draft: EntryDraft) => slot.append(draft),
      setLabel: async (entryId, label) => void (await session.setLabel(entryId, label)),
      labels: () => session.getLabels(),
      setName: async (name) => void (await session.appendSessionInfo(name)),
      send: async ({ text, delivery, sender }) => {
        await session.submit(text, { delivery, cause: { cmd: newId(), client: sender } })
        slot.wake()
      },
      ask,
    }
    return hooks.forSession?.(here) ?? hooks
  }

  #openSnapshots(): WorkspaceSnapshots | undefined {
    const { snapshotsFolder, remote, clock = systemClock } = this.#options
    if (snapshotsFolder === undefined || remote) return undefined
    const { workingCopy: copy } = this.session
    return new WorkspaceSnapshots({
      session: this.session,
      folder: this.#cwd,
      ...(copy && copy.outcome === undefined && { copyOf: { folder: copy.copyOf, root: copy.root } }),
      storesFolder: snapshotsFolder,
      clock,
      hasJobs: () => this.jobs.hasRunning(this.session.localFolder),
      isBusy: () => this.slot.isBusy && !this.#isRewinding,
    })
  }

  #permissionGate(): Gate {
    const { policy, whenUnanswered, keepRules, remote } = this.#options
    const sandbox = remote?.sandbox ?? this.#sandbox
    return new PermissionGate({
      requests: this.requests,
      policy: () => ({ cwd: this.#cwd, home: homedir(), ...policy?.(), mode: this.mode }),
      ...(whenUnanswered && { whenUnanswered }),
      ...(keepRules && { keepRules }),
      ...(sandbox && { sandbox }),
    })
  }
}

/** Of a subagent. With those of its parent it would be told of the edits of others. */
function ownDiagnostics(
  ofParent: ResolvedOptions['diagnostics'],
  tools: () => readonly Tool[],
): Pick<ResolvedOptions, 'diagnostics' | 'tools'> {
  if (!(ofParent instanceof EditDiagnostics)) return {}
  const diagnostics = ofParent.forSubagent()
  const tool = diagnosticsTool(diagnostics)
  return { diagnostics, tools: () => tools().map((each) => (each.name === tool.name ? tool : each)) }
}

/** A model calls a tool by name, so a duplicate name would hide one of the two. */
function distinct(tools: readonly Tool[]): readonly Tool[] {
  const names = new Set<string>()
  for (const { name } of tools) {
    if (names.has(name)) throw new TypeError(`Two tools are named ${name}. Give each tool a unique name.`)
    names.add(name)
  }
  return tools
}

const dayMs = 24 * 60 * 60_000

/** Together they fit into the 5 seconds that a server has to shut down. */
const finishMs = 2500
const stopMs = 1000

/** Waits for the work, up to this limit. Rejects if the work does. */
async function within(ms: number, clock: Clock, work: Promise<unknown>): Promise<void> {
  if ((await settledWithin(work, { ms, clock })) === 'settled') await work
}

/** The current state of a session. */
export interface AgentState {
  sessionId: string
  name: string
  leafId: string | null
  model: { provider: string; modelId: string }
  /** The model that the session used last, if it is gone. `model` replaces it until another one is chosen. */
  missingModel: MissingModel | null
  thinkingLevel: ThinkingLevel
  mode: PermissionMode
  isBusy: boolean
  /** The open run. If `isBusy` is false, its process has died: `resume` continues it. */
  openRun: string | null
  waiting: readonly WaitingMessage[]
  hold: InboxHold | null
  questions: PermissionRequest[]
  totals: SessionTotals
}

export function stateOf({ session, choice, mode, slot, requests }: OpenSession): AgentState {
  const { provider, id: modelId } = choice.model
  const { messages: waiting, hold } = session.inbox
  return {
    sessionId: session.id,
    name: session.name,
    leafId: session.leafId,
    model: { provider, modelId },
    missingModel: choice.missing ?? null,
    thinkingLevel: choice.thinkingLevel ?? 'off',
    mode,
    isBusy: slot.isBusy,
    openRun: session.openRun?.runId ?? null,
    waiting,
    hold,
    questions: requests.pending,
    totals: session.totals,
  }
}
