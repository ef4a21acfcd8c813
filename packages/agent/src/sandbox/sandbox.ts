import type { CommandBox } from '../tools/commands/command.ts'
import { bwrapArguments } from './bwrap-arguments.ts'
import { probeSandbox, type SandboxSupport } from './probe.ts'
import { sandboxPolicy, type PolicyOptions } from './sandbox-policy.ts'
import { surveyMachine, type SurveyOptions } from './survey.ts'

export interface SandboxOptions extends SurveyOptions, Pick<PolicyOptions, 'showsOwnSecrets'> {
  /** Default: tries it. */
  support?: SandboxSupport
}

/** Runs commands where they can change the working folder and nothing else, and reach no network. */
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
  async box(cwd: string, { isReadOnly = false }: Pick<PolicyOptions, 'isReadOnly'> = {}): Promise<CommandBox> {
    const { support } = this
    if (support.type === 'none') throw new Error(`There is no sandbox: ${support.reason}`)
    const { showsOwnSecrets = false, ...survey } = this.#options
    const facts = await surveyMachine(survey)
    const policy = sandboxPolicy(facts, { isReadOnly, showsOwnSecrets })
    return { argv: bwrapArguments(support.path, policy, cwd), env: { TMPDIR: '/tmp' } }
  }
}
