import type { CommandBox } from '../tools/commands/command.ts'
import { bwrapArguments } from './bwrap-arguments.ts'
import type { NetworkKeeper } from './network-keeper.ts'
import { probeSandbox, type SandboxSupport } from './probe.ts'
import { sandboxPolicy, type PolicyOptions } from './sandbox-policy.ts'
import { surveyMachine, type SurveyOptions } from './survey.ts'

export interface SandboxOptions extends SurveyOptions, Pick<PolicyOptions, 'showsOwnSecrets'> {
  /** Default: tries it. */
  support?: SandboxSupport
  /** The network that commands share. Default: each command has a loopback of its own and nothing else. */
  network?: NetworkKeeper
}

export interface BoxOptions extends Pick<PolicyOptions, 'isReadOnly'> {
  /** The call that the command belongs to. Questions about hosts name it. */
  callId?: string
}

/** Runs commands where they can change the working folder and nothing else, and reach hosts only through the proxy of `network`. */
export class Sandbox {
  readonly support: SandboxSupport
  readonly #options: SandboxOptions

  private constructor(support: SandboxSupport, options: SandboxOptions) {
    this.support = support
    this.#options = options
  }

  static async open(options: SandboxOptions): Promise<Sandbox> {
    return new Sandbox(options.support ?? (await probeSandbox()), options)
  }

  /** The box for one command. It looks at the folders anew, because the last command may have made a repository. */
  async box(cwd: string, { isReadOnly = false, callId }: BoxOptions = {}): Promise<CommandBox> {
    const { support } = this
    if (support.type === 'none') throw new Error(`There is no sandbox: ${support.reason}`)
    const { showsOwnSecrets = false, network, ...survey } = this.#options
    const facts = await surveyMachine(survey)
    const policy = sandboxPolicy(facts, { isReadOnly, showsOwnSecrets })
    const argv = bwrapArguments(support.path, policy, cwd)
    const box = network ? await network.join(argv, callId) : { argv, env: {} }
    return { argv: box.argv, env: { TMPDIR: '/tmp', ...box.env } }
  }
}
