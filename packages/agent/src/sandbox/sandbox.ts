import { basename, join } from 'node:path'
import type { Blocked, CommandBox, CommandSandbox, SandboxDetails, TakenBack } from '../tools/commands/command.ts'
import type { BoxKind } from '../tools/tool.ts'
import { blockedIn } from './blocked.ts'
import { bwrapArguments } from './bwrap-arguments.ts'
import { limitArguments, type CommandLimits } from './command-limits.ts'
import { hasOverlays, homeMounts } from './home-mounts.ts'
import type { NetworkKeeper } from './network-keeper.ts'
import { rememberControls, takeBackControls } from './new-controls.ts'
import { probeSandbox, type SandboxSupport } from './probe.ts'
import { sandboxPolicy, type PolicyOptions } from './sandbox-policy.ts'
import { surveyMachine, surveyFolders, type SurveyOptions } from './survey.ts'

export interface SandboxOptions extends SurveyOptions, Pick<PolicyOptions, 'showsOwnSecrets'> {
  /** Default: tries it. */
  support?: SandboxSupport
  /** The network that commands share. Default: each command has a loopback of its own and nothing else. */
  network?: NetworkKeeper
  /** Limits of each command. Default: none. */
  limits?: CommandLimits
}

export interface BoxOptions extends Pick<PolicyOptions, 'isReadOnly'> {
  /** The call that the command belongs to. Questions about hosts name it. */
  callId?: string
  /** The spool folder of the command, for `takeBack`. Absent: new control files are not looked for. */
  spool?: string
}

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

  details(kind: BoxKind): SandboxDetails {
    const { support } = this
    const writable = kind === 'read-only' ? [] : [...this.#options.folders]
    const home = support.type !== 'none' && hasOverlays(support.version) ? 'overlay' : 'read-only'
    return { backend: support.type, writable, hosts: [], home }
  }

  /** What a command may do, for permission requests. */
  describe(): string {
    const { folders, network, showsOwnSecrets = false } = this.#options
    const secrets = showsOwnSecrets ? 'may read .env files' : 'may not read secrets such as .env'
    const hosts = network ? 'may reach hosts that rules allow' : 'may not use the network'
    return `may write in ${folders.join(', ')}, ${secrets}, ${hosts}`
  }

  /** The box for one command. It looks at the folders anew, because the last command may have made a repository. */
  async box(cwd: string, { isReadOnly = false, callId, spool }: BoxOptions = {}): Promise<CommandBox> {
    const { support } = this
    if (support.type === 'none') throw new Error(`There is no sandbox: ${support.reason}`)
    const { showsOwnSecrets = false, network, limits = {}, ...survey } = this.#options
    // First, because a keeper takes long to start: what a box hides must not go between the survey and the mount.
    await network?.join([])
    const facts = await surveyMachine(survey)
    if (spool !== undefined && !isReadOnly) await rememberControls(spool, facts)
    const policy = sandboxPolicy(facts, { isReadOnly, showsOwnSecrets })
    const home = await homeMounts({ ...survey, version: support.version })
    const argv = [...bwrapArguments(support.path, { ...policy, ...home }, cwd), ...limitArguments(limits)]
    const box = network ? await network.join(argv, callId) : { argv, env: {} }
    return { argv: box.argv, env: { TMPDIR: '/tmp', ...box.env } }
  }

  blockedIn(output: string, place: { cwd: string }): Blocked[] {
    return blockedIn(output, place)
  }

  takeBack({ cwd, spool }: { cwd: string; spool: string }): Promise<TakenBack | undefined> {
    const { folders, keep } = this.#options
    const folder = join(keep, 'taken-back', basename(spool))
    return takeBackControls({ cwd, spool, folder, survey: () => surveyFolders(folders) })
  }
}
