import { SessionStore, type Session, type Usage } from '@tapetree/session'
import type { LiveEvent } from '../../../packages/agent/src/run/events.ts'
import type { RunEnd } from '../../../packages/agent/src/run/run-settings.ts'
import type { ModelRequest } from '../../../packages/agent/src/models/model.ts'
import { Requests } from '../../../packages/agent/src/permissions/requests.ts'
import type { RunDeps } from '../../../packages/agent/src/run/run-deps.ts'
import { planResume, type ResumePlan } from '../../../packages/agent/src/run/resume.ts'
import { defaultRunSettings } from '../../../packages/agent/src/run/run-settings.ts'
import type { CurrentRun } from '../../../packages/agent/src/run/open-run.ts'
import { run, type RunStart } from '../../../packages/agent/src/run/run.ts'
import { BackgroundCompaction } from '../../../packages/agent/src/summary/background-compaction.ts'
import { FakeClock } from '../../../packages/agent/src/testing/fake-clock.ts'
import { allowAll, type Gate, type Tool } from '../../../packages/agent/src/tools/tool.ts'
import { DrivenModel, type RequestKind } from './driven-model.ts'
import type { DrivenTools, ToolName } from './driven-tools.ts'
import type { DyingDisk } from './dying-disk.ts'
import type { Setup } from './setup.ts'

/** What a process tells of itself while it lives. */
export interface Witness {
  requested(request: ModelRequest, kind: RequestKind): void
  used(usage: Usage, kind: RequestKind): void
  began(callId: string, name: ToolName): void
  observed(event: LiveEvent): void
  ended(end: RunEnd): void
  failed(error: unknown): void
}

export interface LifeOptions {
  disk: DyingDisk
  tools: DrivenTools
  setup: Setup
  witness: Witness
  /** Time goes on from one process to the next. */
  now?: number
  sessionId?: string
}

/** One process with an agent in it, from opening its session until it dies. */
export class Life {
  readonly session: Session
  readonly clock: FakeClock
  readonly model: DrivenModel
  readonly requests: Requests
  readonly background: BackgroundCompaction | undefined
  readonly #deps: RunDeps
  readonly #tools: readonly Tool[]
  readonly #options: LifeOptions
  /** Of the run that goes on. */
  controller: AbortController | undefined
  #current: CurrentRun = {}
  /** Notes that are not on the disk yet: the next run follows them. */
  readonly #notes = new Set<Promise<unknown>>()

  static async open(options: LifeOptions): Promise<Life> {
    const store = new SessionStore(options.disk)
    const session = options.sessionId === undefined ? await store.create() : await store.open(options.sessionId)
    return new Life(session, options)
  }

  private constructor(session: Session, options: LifeOptions) {
    const { disk, setup, now } = options
    const witness = whileAlive(options.witness, disk)
    this.session = session
    this.#options = { ...options, witness }
    this.clock = new FakeClock(now)
    this.model = new DrivenModel(witness)
    this.requests = new Requests(session)
    this.background = setup.hasBackground ? new BackgroundCompaction() : undefined
    this.#tools = options.tools.toolsFor({
      isDead: () => disk.isDead,
      began: (callId, name) => witness.began(callId, name),
    })
    this.#deps = {
      session,
      model: () => this.model,
      tools: () => this.#tools,
      systemPrompt: () => 'You are driven.',
      gate: setup.isAsking ? askingGate(this.requests) : allowAll,
      requests: this.requests,
      cwd: '/',
      clock: this.clock,
      settings: { ...defaultRunSettings, steerPolicy: setup.policy },
      observe: (event) => witness.observed(event),
      ...(this.background && { background: this.background }),
    }
  }

  get isRunning(): boolean {
    return this.controller !== undefined
  }

  start(how: RunStart): void {
    const controller = new AbortController()
    this.controller = controller
    const { witness } = this.#options
    this.#current = { appended: async () => void (await Promise.allSettled(this.#notes)) }
    run(how, this.#deps, controller.signal, this.#current).then(
      (end) => {
        this.controller = undefined
        witness.ended(end)
      },
      (error: unknown) => {
        this.controller = undefined
        witness.failed(error)
      },
    )
  }

  /** Keeps something on the path of the run, as extensions and commands of the user do, whatever the run is doing. */
  async note(): Promise<void> {
    const noted = this.#note()
    this.#notes.add(noted)
    await noted.finally(() => this.#notes.delete(noted))
  }

  /** As `RunSlot.append` does. */
  async #note(): Promise<void> {
    while (this.#current.open?.headMove) await this.#current.open.headMove
    await this.#current.open?.append({ type: 'custom', custom: { customType: 'note', data: {} } })
  }

  /** The process is gone, and nobody hears what it still does. Nothing of it may go on waiting: Node would not forget it. */
  async bury(): Promise<void> {
    this.controller?.abort()
    void this.background?.stop()
    await new Promise((resolve) => setImmediate(resolve))
    this.clock.advance(Infinity)
  }

  planResume(): Promise<ResumePlan | undefined> {
    return planResume(this.session, this.#tools)
  }
}

/** What a dead process does was never done. */
function whileAlive(witness: Witness, disk: DyingDisk): Witness {
  const alive =
    <T extends unknown[]>(tell: (...what: T) => void) =>
    (...what: T): void => {
      if (!disk.isDead) tell(...what)
    }
  return {
    requested: alive((request, kind) => witness.requested(request, kind)),
    used: alive((usage, kind) => witness.used(usage, kind)),
    began: alive((callId, name) => witness.began(callId, name)),
    observed: alive((event) => witness.observed(event)),
    ended: alive((end) => witness.ended(end)),
    failed: alive((error) => witness.failed(error)),
  }
}

function askingGate(requests: Requests): Gate {
  return {
    admit: async ({ runId, callId, tool, input }, signal) => {
      const question = { runId, callId, tool, input, title: `May ${tool} run?`, options: [] }
      const { outcome } = await requests.ask(question, signal)
      return outcome === 'allowed' ? { type: 'allowed' } : { type: 'denied', reason: 'The user said no.' }
    },
  }
}
