import { readFileSync, realpathSync, writeFileSync } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { Gate } from '@tapetree/agent'
import { planResume, type ResumePlan } from '@tapetree/agent/run'
import type { PermissionResult, Requests } from '@tapetree/agent/permissions'
import {
  FakeClock,
  goldenLog,
  ScriptedModel,
  TestAgent,
  type ScriptBuilder,
  type ScriptedModelOptions,
  type TestAgentOptions,
} from '@tapetree/agent/testing'
import type { Session, SessionStore } from '@tapetree/session'
import type { Line } from '@tapetree/session/format'
import { openFileStore } from '@tapetree/session/stores/file'
import { vi } from 'vitest'
import { PermissionGate, type GatePolicy } from '../../packages/agent/src/permissions/gate.ts'
import type { Rule } from '../../packages/agent/src/permissions/rules.ts'

export interface Cast extends Pick<TestAgentOptions<FakeClock>, 'tools' | 'settings' | 'gate'> {
  script: ScriptBuilder
  model?: ScriptedModelOptions
}

/** Where a scenario is played: real sessions in a folder, a folder to work in, and a clock that moves by hand. */
export class Stage {
  readonly clock = new FakeClock()
  readonly workFolder: string
  readonly #sessionsFolder: string
  #death = Promise.withResolvers<void>()
  readonly #burial = Promise.withResolvers<never>()
  readonly #dead: TestAgent[] = []
  readonly #deadRuns: Promise<unknown>[] = []
  #store: SessionStore | undefined
  #agent: TestAgent | undefined

  constructor(givenFolder: string) {
    const folder = realpathSync(givenFolder)
    this.workFolder = join(folder, 'work')
    this.#sessionsFolder = join(folder, 'sessions')
  }

  get agent(): TestAgent {
    if (!this.#agent) throw new Error('Nobody is on the stage.')
    return this.#agent
  }

  get session(): Session {
    return this.agent.session
  }

  /** An agent with a new session or, after the first time, with the same one again, as another process would have it. */
  async open({ script, model: modelOptions, ...options }: Cast): Promise<TestAgent> {
    const sessionId = this.#agent?.session.id
    await this.#leave()
    await mkdir(this.workFolder, { recursive: true })
    const onCancel = (): void => this.agent.abort()
    const model = new ScriptedModel(script, { clock: this.clock, onCancel, ...modelOptions })
    this.#store = this.#openStore()
    this.#agent = await TestAgent.open({
      ...options,
      model,
      clock: this.clock,
      cwd: this.workFolder,
      store: this.#store,
      ...(sessionId !== undefined && { sessionId }),
    })
    return this.#agent
  }

  /** Acts as soon as the first such line is in the log. */
  when(isIt: (line: Line) => boolean, act: () => unknown): void {
    const stop = this.session.subscribe(({ line }) => {
      if (!isIt(line)) return
      stop()
      void act()
    })
  }

  /** The gate that a user has who is asked about everything but reading, and has these rules. */
  gate(...user: Rule[]): (requests: Requests) => Gate {
    const policy: GatePolicy = { mode: 'ask', rules: { user }, cwd: this.workFolder, home: this.#sessionsFolder }
    return (requests) => new PermissionGate({ requests, policy: () => policy })
  }

  /** Gives the user's answer to the question that waits. */
  async answer(result: Omit<PermissionResult, 'requestId'>): Promise<void> {
    const [asked] = this.agent.requests.pending
    if (!asked) throw new Error('Nobody asks.')
    await this.agent.requests.answer({ requestId: asked.requestId, ...result })
  }

  /** Resolves when somebody has begun to wait for this long. */
  async waits(ms: number): Promise<void> {
    await vi.waitFor(() => {
      if (!this.clock.waits.includes(ms)) throw new Error(`Nobody waits for ${ms} ms.`)
    }, 10_000)
  }

  /** The process dies here: whatever it would have written is not written, and whoever waits for this waits until the end. */
  async die(): Promise<never> {
    this.#dead.push(this.agent)
    await this.session.close()
    this.#death.resolve()
    return this.dead
  }

  /** The process dies as soon as the first such line is in the log. */
  dieWhen(isIt: (line: Line) => boolean): void {
    this.when(isIt, () => this.die().catch(() => undefined))
  }

  /** The power fails too: of the last write, only the lines up to this one have reached the disk. */
  tearLastWrite(isLast: (line: string) => boolean): void {
    const path = join(this.#sessionsFolder, this.session.id, 'events.jsonl')
    const lines = readFileSync(path, 'utf8').split('\n')
    const kept = lines.slice(0, lines.findIndex((line) => isLast(line)) + 1)
    writeFileSync(path, `${kept.join('\n')}\n`)
  }

  /** What a process that is dead waits for. */
  get dead(): Promise<never> {
    return this.#burial.promise
  }

  /** Waits until the process that does this has died of it. */
  async crash(run: Promise<unknown>): Promise<void> {
    this.#deadRuns.push(run)
    const survived = run.then(
      () => Promise.reject(new Error('The run ended, and nobody died.')),
      () => this.#death.promise,
    )
    await Promise.race([this.#death.promise, survived])
    this.#death = Promise.withResolvers()
  }

  /** What was said so far is in the draft. It takes a quarter of a second, and nobody tells when. */
  async untilDrafted(words: string): Promise<void> {
    const path = join(this.session.localFolder as string, 'draft.jsonl')
    await vi.waitFor(() => {
      if (!readFileSync(path, 'utf8').includes(words)) throw new Error(`The draft does not say ${words}.`)
    }, 10_000)
  }

  /** Another process goes on where the one that died was. */
  async resume(cast: Cast): Promise<ResumePlan> {
    await this.open(cast)
    return this.resumeHere()
  }

  async resumeHere(): Promise<ResumePlan> {
    const plan = await planResume(this.session, this.agent.deps.tools())
    if (!plan) throw new Error('There is nothing to resume.')
    await this.agent.run({ type: 'resume', plan })
    return plan
  }

  async golden(): Promise<string[]> {
    const folders = { [this.workFolder]: '<folder>', [this.#sessionsFolder]: '<sessions>' }
    return goldenLog(this.session, { folders })
  }

  /** The session as somebody finds it who opens it later. */
  async reopened<T>(look: (session: Session) => Promise<T>): Promise<T> {
    const { id } = this.session
    await this.#leave()
    const store = this.#openStore()
    try {
      return await look(await store.open(id))
    } finally {
      await store.close()
    }
  }

  /** A real process takes its files and promises with it when it dies. */
  async clear(): Promise<void> {
    this.#burial.reject(new Error('This process is dead.'))
    for (const agent of this.#dead) agent.abort()
    await Promise.allSettled([this.dead, ...this.#deadRuns])
    await this.#leave()
  }

  async #leave(): Promise<void> {
    await this.#agent?.close()
    await this.#store?.close()
  }

  #openStore(): SessionStore {
    return openFileStore({ folder: this.#sessionsFolder, now: () => new Date(this.clock.now()) })
  }
}

export function isQuestion({ type }: Line): boolean {
  return type === 'permission_request'
}

export function isQuestionAbout(callId: string): (line: Line) => boolean {
  return (line) => line.type === 'permission_request' && line.permissionRequest.callId === callId
}

export function isResult(line: Line): boolean {
  return line.type === 'message' && line.message.role === 'tool'
}

export function isAnswer(line: Line): boolean {
  return line.type === 'message' && line.message.role === 'assistant'
}
