import { untilAborted } from '@tapetree/session/util/deadline'
import type { Clock } from '@tapetree/session/util/wait'
import type { BoxProgram } from '../tools/commands/program-box.ts'
import type { Tool } from '../tools/tool.ts'
import type { CallResult, McpConnection } from './connection.ts'
import { withoutHidden } from './foreign-text.ts'
import type { McpLimits } from './limits.ts'
import { mcpTools } from './mcp-tools.ts'
import { compareOrigin, compareTools, isSamePin, pinOf, type PinChange, type PinStore } from './pinned-tools.ts'
import type { RemoteTool } from './remote-tool.ts'
import { resolveServer, type ServerPlace } from './resolve-server.ts'
import { ServerProblem, SessionForgotten } from './server-problem.ts'
import type { McpServerSettings } from './server-settings.ts'
import type { SignInOptions } from './sign-in.ts'

export type McpServerState =
  | { type: 'starting' }
  /** It waits for the user to sign in, in a browser. */
  | { type: 'signing_in' }
  /** The problems are sentences about tools that were left out. */
  | { type: 'ready'; problems: string[] }
  /** It differs from its pin: its tools are withheld until the user accepts. */
  | { type: 'changed'; change: PinChange; tools: readonly { name: string; description: string }[] }
  /** After `isGivenUp`, only the user starts it again. */
  | { type: 'failed'; reason: string; isGivenUp: boolean }
  | { type: 'closed' }

export interface McpServerOptions extends ServerPlace {
  name: string
  settings: McpServerSettings
  pins: PinStore
  /** `pin`: an unknown server is pinned at first contact. `ask`: it is not even started until the user accepts. */
  firstContact: 'pin' | 'ask'
  signIn?: Pick<SignInOptions, 'store' | 'openUrl'>
  /** Called before each start: returns a sentence if it must not start. */
  mayStart?: (server: string) => Promise<string | undefined>
  /** The sandbox of a server that is a program. Absent: it runs outside. */
  box?: BoxProgram
  limits: McpLimits
  clock: Clock
  observe: (state: McpServerState) => void
}

/** A server that ran this long did not fail to start. */
const steadyMs = 60_000
const firstBackoffMs = 500
/** Minimum interval between two listings of its tools. */
const listIntervalMs = 1000
/** How often to check whether the user accepted a change elsewhere. */
const pinCheckMs = 5000

/** One configured server: started in the background, kept running, and offering only what is pinned. */
export class McpServer {
  readonly #options: McpServerOptions
  readonly #closing = new AbortController()
  #state: McpServerState = { type: 'starting' }
  #next = Promise.withResolvers<void>()
  /** Resolved when the server must be checked again: it has changed, or the user has acted. */
  #nudge = Promise.withResolvers<void>()
  #connection: McpConnection | undefined
  #remote = new Map<string, RemoteTool>()
  #tools: readonly Tool[] = []
  #hasAnswered = false
  #isRestarting = false
  #kept: Promise<void> | undefined

  constructor(options: McpServerOptions) {
    this.#options = options
  }

  get name(): string {
    return this.#options.name
  }

  get state(): McpServerState {
    return this.#state
  }

  get tools(): readonly Tool[] {
    return this.#tools
  }

  start(): void {
    this.#kept ??= this.#keep(this.#closing.signal)
  }

  /** Resolves when it is ready, waits for the user, or has failed. */
  async settled(): Promise<void> {
    while (this.#state.type === 'starting') await this.#next.promise
  }

  /** Accepts the change that the user was shown; returns whether it is still current. */
  async accept(sha256: string): Promise<boolean> {
    const shown = this.#state
    if (shown.type !== 'changed' || shown.change.sha256 !== sha256) return false
    await this.#options.pins.set(this.name, shown.change.pin)
    if (this.#state === shown) this.#become({ type: 'starting' })
    this.#nudge.resolve()
    return true
  }

  /** Starts over, in any state. */
  async restart(): Promise<void> {
    this.#isRestarting = true
    await this.#connection?.close()
    this.#nudge.resolve()
  }

  async close(): Promise<void> {
    this.#closing.abort(new ServerProblem(`${this.name} was closed.`))
    await this.#kept
    this.#tools = []
    this.#become({ type: 'closed' })
  }

  async #keep(signal: AbortSignal): Promise<void> {
    const { clock, limits } = this.#options
    let failures = 0
    while (!signal.aborted) {
      const startedAt = clock.now()
      if (this.#isRestarting) failures = 0
      this.#hasAnswered = false
      this.#isRestarting = false
      const end = await this.#runOnce(signal)
      if (signal.aborted) return
      if (this.#hasAnswered || clock.now() - startedAt >= steadyMs) failures = 0
      if (!this.#isRestarting) {
        failures += 1
        const isGivenUp = end.isFinal || failures > limits.maxRestarts
        this.#become({ type: 'failed', reason: end.reason, isGivenUp })
        await this.#backOff(isGivenUp ? Infinity : firstBackoffMs * 2 ** (failures - 1), signal)
      }
      if (!signal.aborted) this.#become({ type: 'starting' })
    }
  }

  /** Ends early when the server is closed or restarted by the user. */
  async #backOff(ms: number, signal: AbortSignal): Promise<void> {
    this.#nudge = Promise.withResolvers()
    const woken = new AbortController()
    const given = AbortSignal.any([signal, woken.signal])
    void this.#nudge.promise.then(() => woken.abort())
    const pause = ms === Infinity ? new Promise<void>(() => undefined) : this.#options.clock.wait(ms, given)
    await untilAborted(pause, given).catch(() => undefined)
    if (this.#isRestarting) this.#nudge = Promise.withResolvers()
  }

  /** From start to end; never throws. */
  async #runOnce(signal: AbortSignal): Promise<{ reason: string; isFinal: boolean }> {
    try {
      const server = await resolveServer(this.#options.settings, this.#options)
      await this.#permitOrigin(server.origin, signal)
      const refusal = await this.#options.mayStart?.(this.name)
      if (refusal !== undefined) throw new ServerProblem(refusal, { isFinal: true })
      // Loaded on demand: the client is large.
      const { McpConnection } = await import('./connection.ts')
      this.#connection = await McpConnection.open(
        {
          ...this.#options,
          server,
          onToolsChanged: () => this.#nudge.resolve(),
          onSigningIn: () => this.#become({ type: 'signing_in' }),
        },
        signal,
      )
      const reason = await this.#attend(this.#connection, { origin: server.origin, signal })
      return { reason, isFinal: false }
    } catch (error) {
      if (error instanceof ServerProblem) return { reason: error.message, isFinal: error.isFinal }
      return { reason: `${this.name} failed: ${String(error)}`, isFinal: true }
    } finally {
      await this.#connection?.close()
      this.#connection = undefined
    }
  }

  /** Starts only what is pinned; otherwise waits until the user accepts it. */
  async #permitOrigin(origin: string, signal: AbortSignal): Promise<void> {
    const { pins, firstContact } = this.#options
    for (;;) {
      const pin = await pins.get(this.name)
      if (!pin && firstContact === 'pin') return pins.set(this.name, { origin })
      const change = compareOrigin(pin, origin)
      if (!change) return
      this.#withhold(change, [])
      await untilAborted(this.#nudged(), signal)
    }
  }

  /** Offers the tools of the server, again after every change, until the connection ends; returns the reason. */
  async #attend(
    connection: McpConnection,
    { origin, signal }: { origin: string; signal: AbortSignal },
  ): Promise<string> {
    const lost = connection.lost.then((reason) => ({ type: 'lost', reason }) as const)
    for (;;) {
      const pause = this.#options.clock.wait(listIntervalMs, signal)
      void pause.catch(() => undefined)
      await this.#offer(connection, { origin, signal })
      const nudged = this.#nudged().then(() => ({ type: 'nudged' }) as const)
      const event = await untilAborted(Promise.race([lost, nudged]), signal)
      if (event.type === 'lost') return event.reason
      if (this.#state.type !== 'starting') await untilAborted(Promise.race([lost, pause]), signal)
    }
  }

  async #offer(connection: McpConnection, { origin, signal }: { origin: string; signal: AbortSignal }): Promise<void> {
    const { name, pins, limits } = this.#options
    const { readTools } = await import('./remote-tool.ts')
    const { tools: remote, problems } = readTools(await connection.listTools(signal), limits)
    const pin = (await pins.get(name)) ?? { origin }
    const change = compareOrigin(pin, origin) ?? compareTools(pin, remote)
    if (change) return this.#withhold(change, remote)
    if (!pin.tools) await pins.set(name, pinOf(origin, remote))
    this.#remote = new Map(remote.map((tool) => [tool.name, tool]))
    this.#tools = mcpTools(remote, {
      server: name,
      limits,
      call: (tool, input, callSignal) => this.#call(tool, input, callSignal),
    })
    this.#become({ type: 'ready', problems })
  }

  #withhold(change: PinChange, remote: readonly RemoteTool[]): void {
    this.#remote = new Map()
    this.#tools = []
    const tools = remote.map(({ name, description }) => ({ name, description }))
    const shown = { type: 'changed' as const, change, tools }
    this.#become(shown)
    void this.#watchPin(shown)
  }

  /** The user may accept the change in another process. */
  async #watchPin(shown: McpServerState & { type: 'changed' }): Promise<void> {
    const { clock, pins } = this.#options
    const { signal } = this.#closing
    while (this.#state === shown && !signal.aborted) {
      const isOver = await clock.wait(pinCheckMs, signal).then(
        () => false,
        () => true,
      )
      if (isOver || this.#state !== shown) return
      const pin = await pins.get(this.name).catch(() => undefined)
      if (!isSamePin(pin, shown.change.pin)) continue
      this.#become({ type: 'starting' })
      this.#nudge.resolve()
    }
  }

  async #call(tool: RemoteTool, input: Record<string, unknown>, signal: AbortSignal): Promise<CallResult> {
    for (let attempt = 1; ; attempt += 1) {
      const connection = await this.#connected(signal)
      if (this.#remote.get(tool.name)?.sha256 !== tool.sha256) {
        throw new ServerProblem(`The tool ${withoutHidden(tool.name)} of ${this.name} has changed.`)
      }
      try {
        const result = await connection.callTool({ name: tool.name, input }, signal)
        this.#hasAnswered = true
        return result
      } catch (error) {
        if (!(error instanceof SessionForgotten) || attempt > 1) throw error
      }
    }
  }

  /** Waits while the server is starting; throws if it may never start. */
  async #connected(signal: AbortSignal): Promise<McpConnection> {
    for (;;) {
      const state = this.#state
      if (state.type === 'ready' && this.#connection?.isOpen) return this.#connection
      if (state.type === 'closed') throw new ServerProblem(`${this.name} was closed.`)
      if (state.type === 'failed' && state.isGivenUp) throw new ServerProblem(state.reason)
      if (state.type === 'changed') {
        throw new ServerProblem(`${this.name} has changed; its tools are withheld until the user accepts them.`)
      }
      await untilAborted(this.#next.promise, signal)
    }
  }

  #become(state: McpServerState): void {
    this.#state = state
    const { resolve } = this.#next
    this.#next = Promise.withResolvers()
    resolve()
    this.#options.observe(state)
  }

  async #nudged(): Promise<void> {
    await this.#nudge.promise
    this.#nudge = Promise.withResolvers()
  }
}
