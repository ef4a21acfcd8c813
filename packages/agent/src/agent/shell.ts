import { hostname } from 'node:os'
import { newId, SessionError, type BashExecution, type Cause, type Session } from '@tapetree/session'
import { systemClock } from '@tapetree/session/util/wait'
import { startCommand } from '../tools/commands/command.ts'
import { commandEnvironment } from '../tools/commands/environment.ts'
import { LiveOutput, showOutput } from '../tools/commands/shown-output.ts'
import { newJobId, type Jobs } from '../tools/commands/jobs.ts'
import type { LiveEvent } from '../run/events.ts'
import type { Redactor } from '@tapetree/redact'
import type { RunSlot } from '../run/run-slot.ts'
import type { RemoteWorkspace } from '../tool-host/remote-workspace.ts'

export interface ShellDeps {
  session: Session
  slot: RunSlot
  jobs: Jobs
  cwd: string
  /** Prepended to every command, for example to load aliases. */
  prefix: string
  observe: (event: LiveEvent) => void
  redactor: Redactor
  /** Where the tools work, if it is not this process. */
  remote?: RemoteWorkspace
}

export interface BashOptions {
  /** Hides the command and its output from the model. */
  excludeFromContext?: boolean
  signal?: AbortSignal
  cause?: Cause
}

export interface ShellInput {
  command: string
  excludeFromContext: boolean
}

const dayMs = 24 * 60 * 60 * 1000

/** Parses the input of the user: `!command` runs and is shown to the model, `!!command` runs and is hidden from it. */
export function parseShellInput(typed: string): ShellInput | undefined {
  const [, marks, command = ''] = /^(!!?)([^]*)$/.exec(typed.trim()) ?? []
  if (marks === undefined || command.trim() === '') return undefined
  return { command: command.trim(), excludeFromContext: marks === '!!' }
}

/** Runs a command of the user, without a permission request, and records it with its output in the session. */
export async function executeBash(command: string, options: BashOptions, deps: ShellDeps): Promise<BashExecution> {
  if (deps.remote) return executeThere(command, options, { ...deps, remote: deps.remote })
  const { session, jobs, cwd, prefix } = deps
  const item = newId()
  const jobId = newJobId()
  const spool = await jobs.create(jobId, session.localFolder)
  const env = commandEnvironment(process.env)
  const whole = prefix === '' ? command : `${prefix}\n${command}`
  const { signal } = options
  const order = { spool, command: whole, cwd, env, deadlineMs: dayMs, redaction: deps.redactor.policy }
  const running = await startCommand({ ...order, ...(signal && { signal }) })
  const stop = (): void => void running.stop().catch(() => undefined)
  signal?.addEventListener('abort', stop, { once: true })
  if (signal?.aborted) stop()
  try {
    let off = 0
    const stream = deps.redactor.stream()
    const live = new LiveOutput((printed) => {
      const text = stream.write(printed)
      if (text === '') return
      deps.observe({ type: 'delta', item, part: 0, kind: 'tool_output', off, text, run: '' })
      off += text.length
    })
    const outcome = await running.wait({ onOutput: (piece) => live.take(piece) })
    const spooled = await running.output()
    const output = await showOutput(spooled, 0, session)
    const exit = outcome.type === 'ended' ? outcome.exit : undefined
    const bashExecution: BashExecution = {
      command,
      output,
      ...(typeof exit?.code === 'number' && { exitCode: exit.code }),
      ...(exit?.cause === 'stopped' && { cancelled: true }),
      ...(options.excludeFromContext && { excludeFromContext: true }),
    }
    const message = { role: 'bashExecution' as const, content: [], bashExecution }
    await deps.slot.append({ type: 'message', id: item, message }, options.cause)
    await jobs.removeSpool({ spool, host: hostname() }, session.localFolder)
    return bashExecution
  } finally {
    signal?.removeEventListener('abort', stop)
  }
}

/** The same on the machine where the tools of the session work. Its owner decides what may run there. */
async function executeThere(
  command: string,
  { excludeFromContext, signal = new AbortController().signal, cause }: BashOptions,
  { session, slot, cwd, observe, redactor, remote }: ShellDeps & { remote: RemoteWorkspace },
): Promise<BashExecution> {
  if (remote.problem !== undefined) throw new SessionError('session-busy', remote.problem)
  const item = newId()
  const stream = redactor.stream()
  let off = 0
  const { content, exitCode } = await remote.runForUser(command, {
    sessionId: session.id,
    runId: '',
    callId: item,
    cwd,
    signal,
    clock: systemClock,
    localFolder: undefined,
    // What a sandbox has blocked is in the output too.
    append: async () => undefined,
    putBlob: (bytes) => session.putBlob(bytes),
    getBlob: (sha256) => session.getBlob(sha256),
    observe: (printed) => {
      const text = stream.write(printed)
      if (text === '') return
      observe({ type: 'delta', item, part: 0, kind: 'tool_output', off, text, run: '' })
      off += text.length
    },
    ask: async () => ({ text: '', isCancelled: true }),
    reach: async () => undefined,
    readmit: async () => ({ type: 'denied', reason: 'The command cannot run there.' }),
  })
  const bashExecution: BashExecution = {
    command,
    output: typeof content === 'string' ? content : '',
    ...(exitCode !== undefined && { exitCode }),
    ...(signal.aborted && { cancelled: true }),
    ...(excludeFromContext && { excludeFromContext: true }),
  }
  const message = { role: 'bashExecution' as const, content: [], bashExecution }
  await slot.append({ type: 'message', id: item, message }, cause)
  return bashExecution
}

/** The running commands of the user. They end with their session at the latest, and their outcome is in its log. */
export class UserCommands {
  readonly #running = new Map<AbortController, Promise<unknown>>()

  async run<T>(work: (signal: AbortSignal) => Promise<T>, signal?: AbortSignal): Promise<T> {
    const controller = new AbortController()
    const done = work(signal ? AbortSignal.any([signal, controller.signal]) : controller.signal)
    this.#running.set(controller, done)
    try {
      return await done
    } finally {
      this.#running.delete(controller)
    }
  }

  /** Resolves when all of them are in the log, with whether there were any. */
  async stop(): Promise<boolean> {
    const running = [...this.#running]
    for (const [controller] of running) controller.abort()
    await Promise.allSettled(running.map(([, done]) => done))
    return running.length > 0
  }
}
