import type { Session } from '@tapetree/session'
import { join } from 'node:path'
import type { Deletion } from '../permissions/deleted-paths.ts'
import type { GateSandbox } from '../permissions/gate.ts'
import { effectOf, matchHost, type Rule, type RuleLayers } from '../permissions/rules.ts'
import type { KeptWrites } from './kept-writes.ts'
import { allowedHosts, NetworkKeeper, type HostAnswer } from './network-keeper.ts'
import type { ProxyTarget } from './proxy.ts'
import type { NetworkPlace, Sandbox } from './sandbox.ts'
import type { Blocked, CommandBox, CommandSandbox, SandboxDetails, TakenBack } from '../tools/commands/command.ts'
import type { BoxKind, ToolContext } from '../tools/tool.ts'
import { findUnheld } from '../workspace/unheld-files.ts'
import type { WorkspaceSnapshots } from '../workspace/workspace-snapshots.ts'

interface SessionSandboxDeps {
  session: Pick<Session, 'id' | 'localFolder' | 'subscribe'>
  open: () => Promise<Sandbox>
  cwd: string
  files: () => WorkspaceSnapshots | undefined
  /** The rules in force, for the network. */
  rules: () => RuleLayers
}

type Reach = ToolContext['reach']

/**
 * The sandbox of a session, for its gate and its commands. It is opened when it is first needed, and its network is started with the first
 * command that may write.
 */
export class SessionSandbox implements GateSandbox, CommandSandbox {
  readonly #deps: SessionSandboxDeps
  readonly #calls = new Map<string, Reach>()
  readonly #stop: () => void
  #runOver = new AbortController()
  #opened: Promise<Sandbox> | undefined
  #network: NetworkKeeper | undefined
  #registryHosts: NetworkPlace['registryHosts']
  /** Of registries, as soon as a command has asked for a host. */
  #knownHosts: readonly string[] = []
  /** As JSON. */
  #rules = ''

  constructor(deps: SessionSandboxDeps) {
    this.#deps = deps
    this.#stop = deps.session.subscribe(({ line }) => {
      if (line.type === 'permission_result' && line.permissionResult.grant) void this.#updateRules()
      if (line.type === 'run_end') this.#endRun()
    })
  }

  async isUsable(): Promise<boolean> {
    return (await this.#sandbox()).support.type !== 'none'
  }

  /** Why it cannot be used: a sentence, with the repair. */
  async problem(): Promise<string | undefined> {
    const { support } = await this.#sandbox()
    if (support.type !== 'none') return undefined
    return `Commands cannot run in a sandbox, so they are asked about as in mode ask. ${support.reason} ${support.repair}`
  }

  async describe(): Promise<string> {
    const sandbox = await this.#sandbox()
    const registries = this.#registryHosts ? ['registry hosts'] : []
    return sandbox.describe([...registries, ...allowedHosts(this.#deps.rules())])
  }

  async findUnheld(deletions: readonly Deletion[]): Promise<string | undefined> {
    const { cwd, files } = this.#deps
    return findUnheld(deletions, { cwd, files: files() })
  }

  async details(kind: BoxKind): Promise<SandboxDetails> {
    return (await this.#sandbox()).details(kind)
  }

  async box(cwd: string, options: Parameters<CommandSandbox['box']>[1]): Promise<CommandBox> {
    const sandbox = await this.#sandbox()
    await this.#updateRules()
    return sandbox.box(cwd, options)
  }

  attend({ callId, reach }: { callId: string; reach: Reach }): void {
    this.#calls.set(callId, reach)
  }

  leave(callId: string): void {
    this.#calls.delete(callId)
  }

  async blockedIn(output: string, call: { cwd: string; callId?: string }): Promise<Blocked[]> {
    return (await this.#sandbox()).blockedIn(output, call)
  }

  async reachedBy(callId: string): Promise<readonly string[]> {
    return (await this.#sandbox()).reachedBy(callId)
  }

  async takeBack(place: { cwd: string; spool: string; callId?: string }): Promise<TakenBack | undefined> {
    return (await this.#sandbox()).takeBack(place)
  }

  /** The control files that commands made in the working folder, for the user. */
  async keptWrites(): Promise<KeptWrites> {
    return (await this.#sandbox()).keptWrites(this.#deps.cwd)
  }

  /** Commands that still run keep the network that they have. */
  async close(): Promise<void> {
    this.#stop()
    this.#endRun()
    await this.#network?.close()
  }

  #sandbox(): Promise<Sandbox> {
    return (this.#opened ??= this.#deps.open().then((sandbox) => sandbox.withNetwork((place) => this.#connect(place))))
  }

  #connect({ keep, registryHosts, ...place }: NetworkPlace): NetworkKeeper {
    const { session } = this.#deps
    const { localFolder } = session
    this.#registryHosts = registryHosts
    this.#network = new NetworkKeeper({
      ...place,
      folder: localFolder === undefined ? join(keep, 'network', session.id) : join(localFolder, 'network'),
      rules: this.#rulesInForce(),
      ask: (target, signal) => this.#ask(target, signal),
    })
    return this.#network
  }

  async #ask({ callId, ...target }: ProxyTarget, signal: AbortSignal): Promise<HostAnswer> {
    this.#knownHosts = (await this.#registryHosts?.()) ?? []
    await this.#updateRules()
    if (effectOf(this.#rulesInForce(), (rule) => matchHost(rule, target.host)) === 'allow') return true
    // Some programs do not name the call to the proxy. If only one runs, it is meant.
    const [only, ...others] = this.#calls.values()
    const reach = callId === undefined ? (others.length === 0 ? only : undefined) : this.#calls.get(callId)
    const verdict = await reach?.(target, AbortSignal.any([signal, this.#runOver.signal]))
    return verdict && (verdict.type === 'allowed' || { denied: verdict.reason })
  }

  /** The rules of the user, and one for each known registry. Rules that deny a host or ask about it come first, as always. */
  #rulesInForce(): RuleLayers {
    const rules = this.#deps.rules()
    const registries = this.#knownHosts.map((match): Rule => ({ effect: 'allow', type: 'fetch', match }))
    return { ...rules, user: [...rules.user, ...registries] }
  }

  async #updateRules(): Promise<void> {
    const rules = this.#rulesInForce()
    const text = JSON.stringify(rules)
    if (text === this.#rules) return
    this.#rules = text
    await this.#network?.setRules(rules)
  }

  /** Questions belong to a run: later, hosts that no rule allows are refused. */
  #endRun(): void {
    this.#runOver.abort()
    this.#runOver = new AbortController()
    this.#calls.clear()
  }
}
