import type { HookName } from './extension.ts'
import type { BoxProgram } from '../tools/commands/program-box.ts'
import { ExtensionFailure } from './extension-failure.ts'
import { eventJson, resultOf } from './hook-json.ts'
import { runHookCommand } from './hook-command.ts'
import type { Invocation, InvocationCall, Offer, Runner } from './runner.ts'

/** As in the settings: the commands of each hook, in order. */
export type CommandHooks = { readonly [Name in HookName]?: readonly CommandHook[] }

export interface CommandHook {
  /** Tool names that it applies to, separated by `|`, with a trailing `*` for a prefix; absent for all. */
  matcher?: string
  command: string
  timeoutMs?: number
}

export interface CommandHooksOptions {
  cwd: string
  env: Readonly<Record<string, string>>
  mayStart: (command: string) => Promise<string | undefined>
  /** The sandbox of a command. Absent: commands run outside. */
  box?: BoxProgram
  /** Reports messages that do not count as failures. */
  report: (name: string, hook: string, message: string) => void
}

const defaultTimeoutMs = 60_000

/** Each command is a source of one handler, with its own failures. */
export function commandHooks(hooks: CommandHooks, options: CommandHooksOptions): Runner[] {
  return Object.entries(hooks).flatMap(([hook, commands]) =>
    (commands ?? []).map((command, index) => {
      const name = `hook ${hook} ${index + 1}`
      return new CommandHookRunner({ name, hook: hook as HookName, command, ...options })
    }),
  )
}

interface CommandHookRunnerOptions extends CommandHooksOptions {
  name: string
  hook: HookName
  command: CommandHook
}

class CommandHookRunner implements Runner {
  readonly name: string
  readonly #options: CommandHookRunnerOptions
  readonly #running = new Map<AbortController, Promise<unknown>>()

  constructor(options: CommandHookRunnerOptions) {
    this.name = options.name
    this.#options = options
  }

  async start(): Promise<Offer> {
    const { hook, command } = this.#options
    const handlers = [{ hook, index: 0, limitMs: command.timeoutMs ?? defaultTimeoutMs }]
    return { handlers, commands: [], tools: [], providers: [], skills: [], templates: [] }
  }

  async invoke(invocation: Invocation, call: InvocationCall): Promise<unknown> {
    if (invocation.type !== 'handler' || !this.#isFor(invocation.event)) return undefined
    const stop = new AbortController()
    const work = this.#run(invocation.event, { ...call, signal: AbortSignal.any([call.signal, stop.signal]) })
    this.#running.set(stop, work)
    try {
      return await work
    } finally {
      this.#running.delete(stop)
    }
  }

  /** Resolves when all their processes have ended. */
  async stop(failure: Error): Promise<void> {
    const running = [...this.#running]
    for (const [stop] of running) stop.abort(failure)
    await Promise.allSettled(running.map(([, work]) => work))
  }

  async #run(event: unknown, { sessionId, cwd, signal }: InvocationCall): Promise<unknown> {
    const { hook, env, command, mayStart, report } = this.#options
    const refusal = await mayStart(command.command)
    if (refusal !== undefined) throw new ExtensionFailure('threw', refusal)
    const input = JSON.stringify({ ...eventJson(hook, event), session_id: sessionId, cwd })
    const box = await this.#options.box?.({ type: 'hook', command: command.command, cwd })
    const ended = await runHookCommand({ command: command.command, input, cwd, env, box }, signal).catch(
      async (error: unknown) => {
        await box?.settle()
        throw error
      },
    )
    const taken = await box?.settle()
    if (taken !== undefined) report(this.name, hook, taken)
    if (signal.aborted) throw new ExtensionFailure('threw', 'It was stopped.', { cause: signal.reason })
    const { exitCode, stdout, stderr } = ended
    if (exitCode === 0) return resultOf(hook, stdout)
    if (exitCode === 2) return this.#blocked(stderr.trim())
    const said = stderr.trim() === '' ? '' : ` It said: ${stderr.trim()}`
    const hint = box
      ? ' It ran in the sandbox. To run it outside, add its command to sandbox.outsideHooks in your settings.'
      : ''
    report(this.name, hook, `It ended with ${ended.how} and was ignored.${said}${hint}`)
    return undefined
  }

  #blocked(reason: string): unknown {
    const { hook } = this.#options
    if (hook === 'toolCall') return { block: reason === '' ? 'A hook of the user blocked this call.' : reason }
    if (hook === 'beforeCompact') return { cancel: true }
    this.#options.report(this.name, hook, `It ended with exit code 2, but this event cannot be blocked.`)
    return undefined
  }

  #isFor(event: unknown): boolean {
    const { matcher } = this.#options.command
    const tool = (event as { call?: { name: string } }).call?.name
    if (matcher === undefined || tool === undefined) return true
    return matcher.split('|').some((each) => isMatch(each.trim(), tool))
  }
}

function isMatch(pattern: string, name: string): boolean {
  return pattern.endsWith('*') ? name.startsWith(pattern.slice(0, -1)) : name === pattern
}
