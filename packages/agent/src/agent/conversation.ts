import type { EntryDraft, Session, InboxHold, SessionTotals, WaitingMessage } from '@tapetree/session'
import { settledWithin } from '@tapetree/session/util/deadline'
import { homedir } from 'node:os'
import { systemClock, type Clock } from '@tapetree/session/util/wait'
import { noHooks, type Hooks } from '../run/hooks.ts'
import type { Model, ThinkingLevel } from '../models/model.ts'
import { exitPlanTool, toolsFor, type PermissionMode } from '../permissions/modes.ts'
import { PermissionGate } from '../permissions/gate.ts'
import { askUser, type Requests, type PermissionRequest } from '../permissions/requests.ts'
import { SessionMode } from '../permissions/session-mode.ts'
import { defaultPolicy, createRedactor, type Redactor } from '@tapetree/redact'
import { allTools } from '../tools/builtin/all-tools.ts'
import { LeftBehind, type Gate, type Answer, type Question, type Tool } from '../tools/tool.ts'
import type { Jobs } from '../tools/commands/jobs.ts'
import type { AgentEvent } from '../run/events.ts'
import type { RunDeps } from '../run/run-deps.ts'
import type { AgentSessionOptions } from './agent-session-options.ts'
import { gateUntilLeaving, untilLeaving, RunningCalls } from './suspend.ts'
import type { ModelChoice, MissingModel } from './model-choice.ts'
import { OwnCommands } from './shell.ts'
import { redactingModel, redactionOf } from './redaction.ts'
import { defaultRunSettings } from '../run/run-settings.ts'
import { RunSlot, SharedSession } from '../run/run-slot.ts'
import { Subagents, taskTool, type Subagent } from './subagents.ts'

interface ConversationParts {
  /** Opens a subagent. */
  openChild: (options: AgentSessionOptions) => Promise<Subagent>
  session: Session
  choice: ModelChoice
  options: AgentSessionOptions
  cwd: string
  observe: (event: AgentEvent) => void
}

/** One open session, and all that runs in it. */
export class Conversation {
  readonly session: Session
  readonly requests: Requests
  readonly slot: RunSlot
  readonly jobs: Jobs
  readonly commands = new OwnCommands()
  readonly choice: ModelChoice
  readonly subagents: Subagents
  /** As they are for this session. */
  readonly hooks: Hooks
  readonly permissionMode: SessionMode
  readonly #options: AgentSessionOptions
  readonly #gate: Gate
  readonly #cwd: string
  readonly #shared: SharedSession
  readonly #redactor: Redactor
  readonly #stop: () => void
  readonly #leaving = new AbortController()
  readonly #runningCalls: RunningCalls
  #exitPlan: Tool | undefined

  constructor({ session, choice, options, cwd, observe, openChild }: ConversationParts) {
    this.session = session
    this.choice = choice
    this.permissionMode = new SessionMode({ session, defaultMode: options.defaultMode ?? 'ask' })
    this.#options = options
    this.#cwd = cwd
    this.#redactor = options.redactor ?? createRedactor(defaultPolicy())
    session.redactWith(redactionOf(this.#redactor))
    this.#shared = SharedSession.of(session)
    this.slot = new RunSlot({ session, deps: () => this.deps(), observe })
    this.requests = this.#shared.requestsFor(session)
    this.jobs = this.#shared.jobs
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
    // Nothing can fail behind this.
    this.#shared.join(this.slot)
  }

  get mode(): PermissionMode {
    return this.permissionMode.current
  }

  get redactor(): Redactor {
    return this.#redactor
  }

  /** The dependencies of the next run. */
  deps(): RunDeps {
    const { systemPrompt = () => '', settings, clock = systemClock, news, models, fallbackModel, owner } = this.#options
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
      cwd: this.#cwd,
      clock,
      settings: { ...defaultRunSettings, ...settings?.() },
      observe: (event) => this.slot.tell(event),
      hooks: this.hooks,
      ...(news && { news }),
      ...(fallbackModel && {
        fallbackModel: async () => {
          return this.#guarded(await models.open(fallbackModel.provider, fallbackModel.modelId))
        },
      }),
    }
  }

  /** All that the model is offered in the mode of now. */
  tools(): readonly Tool[] {
    const { tools = ({ jobs, redaction }) => allTools({ jobs, redaction }), hasSubagents = true } = this.#options
    // Its schema is converted once: tools are asked for in every turn.
    this.#exitPlan ??= exitPlanTool({ onAccepted: () => this.permissionMode.set('ask') })
    const given = tools({ session: this.session, jobs: this.jobs, redaction: this.#redactor.policy })
    return toolsFor(
      this.mode,
      distinct([...given, ...(hasSubagents ? [taskTool(this.subagents)] : []), this.#exitPlan]),
    )
  }

  /** Stops what this one runs, and leaves alone what other agent sessions run. */
  async close(): Promise<void> {
    await Promise.all([this.slot.leave(), this.commands.stop()])
    const { isLast } = this.#leave()
    if (isLast) await this.#shared.closeJobs()
    await this.session.close()
  }

  /**
   * Closes it and leaves its run open, as a process does that dies, but in order: the model is not heard any further, no call is begun,
   * and calls that nobody could take up again get their time to finish. From then on the log is shut, so whatever is still going on
   * cannot say in it that it was stopped.
   */
  async suspend(): Promise<void> {
    const { clock = systemClock } = this.#options
    const left = new LeftBehind()
    this.#leaving.abort(left)
    const run = Promise.race([this.slot.suspend(), this.#onlyRepeatableRun()])
    await within(finishMs, clock, Promise.all([run, this.commands.stop()]))
    const { isLast } = this.#leave()
    await this.session.close()
    await Promise.all([...this.subagents.running.values()].map((child) => child.suspend()))
    // A tool that does not heed its signal is left to itself: it is the end of the process that it is told of.
    await within(stopMs, clock, this.slot.stop(left))
    if (isLast) await this.#shared.closeJobs()
  }

  #leave(): { isLast: boolean } {
    this.#stop()
    this.#runningCalls.close()
    return this.#shared.leave(this.slot)
  }

  /** Resolves when whatever runs can be taken up by the next process. */
  async #onlyRepeatableRun(): Promise<void> {
    const replays = new Map(this.tools().map(({ name, replay }) => [name, replay]))
    const isRepeatable = (tool: string): boolean => (replays.get(tool) ?? 'never') !== 'never'
    await this.#runningCalls.until((tools) => tools.length > 0 && tools.every(isRepeatable))
  }

  #guarded(model: Model): Model {
    return redactingModel(untilLeaving(model, this.#leaving.signal), this.#redactor)
  }

  /** A subagent has its parent's model and settings, and hears nothing of what is told to its parent. */
  #childOptions(
    child: Required<Pick<AgentSessionOptions, 'sessionId' | 'gate'>> & { tools: () => readonly Tool[] },
  ): AgentSessionOptions {
    const { news: _, expand: __, mode: ___, ...inherited } = this.#options
    const { provider, id: modelId } = this.choice.model
    // It is taken up again by its parent, and by nobody else.
    const owner = 'subagent'
    return { ...inherited, ...child, owner, model: { provider, modelId }, defaultMode: this.mode, hasSubagents: false }
  }

  #hooksHere(hooks: Hooks): Hooks {
    const { session, slot, requests } = this
    const ask = (tool: string, question: Question, signal: AbortSignal): Promise<Answer> =>
      askUser(question, { tool }, (request) => requests.ask(request, signal))
    const here = { id: session.id, cwd: this.#cwd, append: (draft: EntryDraft) => slot.append(draft), ask }
    return hooks.forSession?.(here) ?? hooks
  }

  #permissionGate(): Gate {
    const { policy, whenNobodyAnswers } = this.#options
    return new PermissionGate({
      requests: this.requests,
      policy: () => ({ cwd: this.#cwd, home: homedir(), ...policy?.(), mode: this.mode }),
      ...(whenNobodyAnswers && { whenNobodyAnswers }),
    })
  }
}

/** A model calls a tool by its name, so a name that is used twice would hide one of the two. */
function distinct(tools: readonly Tool[]): readonly Tool[] {
  const names = new Set<string>()
  for (const { name } of tools) {
    if (names.has(name)) throw new TypeError(`Two tools are named ${name}. Give each tool a name of its own.`)
    names.add(name)
  }
  return tools
}

/** Both within the 5 seconds in which a server goes down. */
const finishMs = 2500
const stopMs = 1000

/** Waits for the work, and no longer than this. Rejects if the work does. */
async function within(ms: number, clock: Clock, work: Promise<unknown>): Promise<void> {
  if ((await settledWithin(work, { ms, clock })) === 'settled') await work
}

/** How a session stands just now. */
export interface AgentState {
  sessionId: string
  name: string
  leafId: string | null
  model: { provider: string; modelId: string }
  /** The session used this model last and it is gone; `model` takes its place until another one is chosen. */
  missingModel: MissingModel | null
  thinkingLevel: ThinkingLevel
  mode: PermissionMode
  isBusy: boolean
  /** The run that is open. With `isBusy` false, its process has died: `resume` goes on with it. */
  openRun: string | null
  waiting: readonly WaitingMessage[]
  hold: InboxHold | null
  questions: PermissionRequest[]
  totals: SessionTotals
}

export function stateOf({ session, choice, mode, slot, requests }: Conversation): AgentState {
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
