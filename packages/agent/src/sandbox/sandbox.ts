import { createHash } from 'node:crypto'
import { realpath } from 'node:fs/promises'
import { join } from 'node:path'
import type { Blocked, CommandBox, CommandSandbox, SandboxDetails, TakenBack } from '../tools/commands/command.ts'
import type { CommandLimits } from '../tools/commands/exit-file.ts'
import type { BoxKind } from '../tools/tool.ts'
import { blockedIn } from './blocked.ts'
import { isInside } from '../util/is-inside.ts'
import { bwrapArguments, type BoxNetwork } from './bwrap-arguments.ts'
import { groupArguments, limitArguments } from './command-limits.ts'
import { linkedGit } from './git-folders.ts'
import { hasOverlays, homeMounts } from './home-mounts.ts'
import { KeptWrites } from './kept-writes.ts'
import type { NetworkKeeper, NetworkKeeperOptions } from './network-keeper.ts'
import { rememberControls, takeBackControls } from './new-controls.ts'
import { probeSandbox, type SandboxSupport } from './probe.ts'
import { sandboxPolicy, type Place, type PolicyOptions, type SandboxPolicy } from './sandbox-policy.ts'
import { surveyMachine, surveyFolders, type SurveyOptions } from './survey.ts'

export interface SandboxOptions
  extends SurveyOptions, Pick<PolicyOptions, 'showsOwnSecrets'>, Pick<NetworkKeeperOptions, 'hosts' | 'idleMs'> {
  /** Default: tries it. */
  support?: SandboxSupport
  /**
   * The network of commands that may write. Default: a session makes one, and without a session each command has a loopback of its own and
   * nothing else.
   */
  network?: NetworkKeeper
  /** Hosts that the commands of a session reach without a rule. It is called when a command asks for a host that no rule allows. */
  registryHosts?: () => Promise<readonly string[]>
  /** Limits of each command. Default: none. */
  limits?: CommandLimits
}

export interface BoxOptions extends Pick<PolicyOptions, 'isReadOnly'> {
  /** The call that the command belongs to. Questions about hosts name it. */
  callId?: string
  /** The spool folder of the command, for `takeBack`. Absent: new control files are not looked for. */
  spool?: string
  /** Folders whose secrets it may read: they are its own. */
  shown?: readonly string[]
  /** Gives it the network of the machine. */
  hasMachineNetwork?: boolean
}

/** The place of the sandboxes of an agent. */
export interface SandboxPlace {
  /** Keeps what commands write outside of the working folder, for each folder. */
  folder: string
  /** Our own data and settings, which no command may read. */
  own: readonly string[]
  /** Default: tries bubblewrap. */
  support?: SandboxSupport
}

/** Where the sandboxes of a working folder keep what commands wrote elsewhere. */
export function sandboxFolder(folder: string, workingFolder: string): string {
  return join(folder, createHash('sha256').update(workingFolder).digest('hex').slice(0, 24))
}

/** What a network of this sandbox needs. */
export interface NetworkPlace
  extends Pick<NetworkKeeperOptions, 'bwrap' | 'hosts' | 'idleMs'>, Pick<SandboxOptions, 'registryHosts'> {
  /** Hidden from all commands. */
  keep: string
}

/** A command that tries many hosts is told about the first ones. */
const maxRefused = 20
/** A question must stay short. */
const maxDescribed = 3

/** Runs commands where they can change the working folder and nothing else, and reach hosts only through the proxy of `network`. */
export class Sandbox implements CommandSandbox {
  readonly support: SandboxSupport
  readonly #options: SandboxOptions

  private constructor(support: SandboxSupport, options: SandboxOptions) {
    this.support = support
    this.#options = options
  }

  static async open(options: SandboxOptions): Promise<Sandbox> {
    return new Sandbox(options.support ?? (await probeSandbox()), options)
  }

  /** The same sandbox with a network. One that has a network already keeps it. */
  withNetwork(make: (place: NetworkPlace) => NetworkKeeper): Sandbox {
    const { support } = this
    const { network, keep, hosts, idleMs, registryHosts } = this.#options
    if (network || support.type === 'none') return this
    const place = {
      ...{ bwrap: support.path, keep },
      ...(hosts && { hosts }),
      ...(idleMs !== undefined && { idleMs }),
      ...(registryHosts && { registryHosts }),
    }
    return new Sandbox(support, { ...this.#options, network: make(place) })
  }

  async details(kind: BoxKind): Promise<SandboxDetails> {
    const { support } = this
    const linked = await Promise.all(this.#options.folders.map((folder) => linkedGit(folder)))
    const writable =
      kind === 'read-only' ? [] : [...this.#options.folders, ...linked.flatMap((git) => git?.writable ?? [])]
    const home = support.type !== 'none' && hasOverlays(support.version) ? 'overlay' : 'read-only'
    const network = kind === 'read-only' ? undefined : await this.#startedNetwork()
    return { backend: support.type, writable, hosts: network?.allowedHosts ?? [], home }
  }

  /** What a command may do, for permission requests. `hosts` are those that it reaches without a question. */
  describe(hosts: readonly string[] = []): string {
    const { folders, network, showsOwnSecrets = false } = this.#options
    const shown = hosts.length > maxDescribed ? [...hosts.slice(0, maxDescribed), 'other allowed hosts'] : hosts
    return [
      `may write in ${folders.join(', ')}`,
      ...(showsOwnSecrets ? ['may read secrets such as .env'] : []),
      network ? (shown.length > 0 ? `may reach ${shown.join(', ')}` : 'asks about hosts') : 'has no network',
    ].join(', ')
  }

  /** The box for one command. It looks at the folders anew, because the last command may have made a repository. */
  async box(
    cwd: string,
    { isReadOnly = false, callId, spool, shown = [], hasMachineNetwork = false }: BoxOptions = {},
  ): Promise<CommandBox> {
    const { support } = this
    if (support.type === 'none') throw new Error(`There is no sandbox: ${support.reason}`)
    const { showsOwnSecrets = false, limits = {}, own = [], ...survey } = this.#options
    // First, because a keeper takes long to start: what a box hides must not go between the survey and the mount.
    const network = isReadOnly || hasMachineNetwork ? undefined : await this.#startedNetwork()
    const boxNetwork = hasMachineNetwork ? await machineNetwork() : ({ type: network ? 'entered' : 'own' } as const)
    const hidden = this.#options.network ? [...own, this.#options.network.folder] : own
    const facts = await surveyMachine({ ...survey, own: hidden })
    if (spool !== undefined && !isReadOnly) await rememberControls(spool, facts)
    const policy = showing(shown, sandboxPolicy(facts, { isReadOnly, showsOwnSecrets }))
    const home = await homeMounts({ ...survey, version: support.version })
    const boxed = bwrapArguments(support.path, { ...policy, ...home }, { cwd, network: boxNetwork })
    const argv = [...boxed, ...limitArguments(limits)]
    const box = network ? await network.join(argv, callId) : { argv, env: {} }
    const limited = Object.keys(limits).length > 0 && { limits }
    return { argv: [...groupArguments(limits), ...box.argv], env: { TMPDIR: '/tmp', ...box.env }, ...limited }
  }

  async blockedIn(output: string, { cwd, callId }: { cwd: string; callId?: string }): Promise<Blocked[]> {
    const { network } = this.#options
    const { refused } = (callId !== undefined && (await network?.trafficOf(callId))) || { refused: [] }
    const hosts = refused.map(({ host, count, reason }): Blocked => ({ kind: 'network', what: host, count, reason }))
    const shown = blockedIn(output, { cwd }).filter(
      ({ kind, what }) => kind !== 'network' || !hosts.some((host) => host.what === what),
    )
    return [...hosts.slice(0, maxRefused), ...shown]
  }

  async reachedBy(callId: string): Promise<readonly string[]> {
    return (await this.#options.network?.trafficOf(callId))?.reached ?? []
  }

  /** Undefined if there is none, or if it cannot be started: then a command reaches nothing. */
  async #startedNetwork(): Promise<NetworkKeeper | undefined> {
    const { network } = this.#options
    try {
      await network?.start()
      return network
    } catch {
      return undefined
    }
  }

  takeBack({ cwd, ...call }: { cwd: string; spool: string; callId?: string }): Promise<TakenBack | undefined> {
    const { folders } = this.#options
    return takeBackControls({ ...call, kept: this.keptWrites(cwd), survey: () => surveyFolders(folders) })
  }

  keptWrites(cwd: string): KeptWrites {
    return new KeptWrites({ keep: this.#options.keep, cwd })
  }
}

function showing(folders: readonly string[], policy: SandboxPolicy): SandboxPolicy {
  const isShown = ({ path }: Place): boolean => folders.some((folder) => isInside(path, folder))
  const stays = (place: Place): boolean => !isShown(place)
  return { ...policy, hidden: policy.hidden.filter(stays), hiddenInside: policy.hiddenInside.filter(stays) }
}

/** The file with the name servers may be in `/run`, which is empty in a box. */
async function machineNetwork(): Promise<BoxNetwork> {
  const nameServers = await realpath('/etc/resolv.conf').catch(() => '')
  return { type: 'machine', ...(nameServers.startsWith('/run/') && { nameServers }) }
}
