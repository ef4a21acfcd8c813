import type { Deletion } from '../permissions/deleted-paths.ts'
import type { GateSandbox } from '../permissions/gate.ts'
import type { Sandbox } from '../sandbox/sandbox.ts'
import type { Blocked, CommandBox, CommandSandbox, SandboxDetails, TakenBack } from '../tools/commands/command.ts'
import type { BoxKind } from '../tools/tool.ts'
import { findUnheld } from '../workspace/unheld-files.ts'
import type { WorkspaceSnapshots } from '../workspace/workspace-snapshots.ts'

interface SessionSandboxDeps {
  open: () => Promise<Sandbox>
  cwd: string
  files: () => WorkspaceSnapshots | undefined
}

/** The sandbox of a session, for its gate and its commands. It is opened when it is first needed. */
export class SessionSandbox implements GateSandbox, CommandSandbox {
  readonly #deps: SessionSandboxDeps
  #opened: Promise<Sandbox> | undefined

  constructor(deps: SessionSandboxDeps) {
    this.#deps = deps
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
    return (await this.#sandbox()).describe()
  }

  async findUnheld(deletions: readonly Deletion[]): Promise<string | undefined> {
    const { cwd, files } = this.#deps
    return findUnheld(deletions, { cwd, files: files() })
  }

  async details(kind: BoxKind): Promise<SandboxDetails> {
    return (await this.#sandbox()).details(kind)
  }

  async box(cwd: string, options: Parameters<CommandSandbox['box']>[1]): Promise<CommandBox> {
    return (await this.#sandbox()).box(cwd, options)
  }

  async blockedIn(output: string, place: { cwd: string }): Promise<Blocked[]> {
    return (await this.#sandbox()).blockedIn(output, place)
  }

  async takeBack(place: { cwd: string; spool: string }): Promise<TakenBack | undefined> {
    return (await this.#sandbox()).takeBack(place)
  }

  #sandbox(): Promise<Sandbox> {
    return (this.#opened ??= this.#deps.open())
  }
}
