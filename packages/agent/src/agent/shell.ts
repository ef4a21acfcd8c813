import { hostname } from 'node:os'
import { newId, SessionError, type BashExecution, type Cause, type Session } from '@tapetree/session'
import { settledWithin } from '@tapetree/session/util/deadline'
import type { Clock } from '@tapetree/session/util/wait'
import { attach, startCommand, type Command } from '../tools/commands/command.ts'
import { commandEnvironment } from '../tools/commands/environment.ts'
import { LiveOutput } from '../tools/commands/shown-output.ts'
import { newJobId, type Jobs } from '../tools/commands/jobs.ts'
import { currentBootId } from '../tools/commands/process-table.ts'
import { SessionSuspended, type ToolContext } from '../tools/tool.ts'
import { sha256Of } from '../util/request-hash.ts'
import type { LiveEvent } from '../run/events.ts'
import type { Redactor } from '@tapetree/redact'
import type { RunSlot } from '../run/run-slot.ts'
import { asOwner, runWithDeadline } from '../run/tool-calls.ts'
import {
  bashMessage,
  bashTexts,
  holdCommand,
  isHeld,
  outcomeOf,
  type BashOutcome,
  type BashStart,
} from '../run/user-command.ts'
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
  clock: Clock
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
  const { session, slot, jobs, remote } = deps
  const { excludeFromContext, cause, signal = new AbortController().signal } = options
  signal.throwIfAborted()
  if (remote?.problem !== undefined) throw new SessionError('session-busy', remote.problem)
  const place = remote ? { host: remote.reference.hostId } : await placeHere(deps)
  const start: BashStart = { messageId: newId(), command, ...(excludeFromContext && { excludeFromContext }), ...place }
  const release = holdCommand(session, start.messageId)
  try {
    await session.append({ type: 'bash_start', bashStart: start }, cause && { cause })
    const work = { start, signal, deps, ...(cause && { cause }) }
    const outcome = await asOwner(session, () => (remote ? runThere(work, remote) : runHere(work)))
    const message = bashMessage(start, outcome)
    await slot.append(message, cause)
    if (remote) remote.settle(callIdOf(work), { sessionId: session.id })
    else await jobs.removeSpool(start, session.localFolder)
    return message.message.bashExecution
  } finally {
    release()
  }
}

/** Waits for the commands of the user that an earlier process has sent to the tool host, and records their outcomes. */
export function continueCommands(commands: UserCommands, deps: ShellDeps): void {
  const { session, remote } = deps
  for (const { cause, ...start } of session.openCommands) {
    if (!remote || start.host !== remote.reference.hostId || isHeld(session, start.messageId)) continue
    const release = holdCommand(session, start.messageId)
    // If its outcome cannot be recorded, the next process tries again.
    void commands
      .run((signal, ended) => continueThere({ start, signal, deps, ...(cause && { cause }) }, remote, ended))
      .catch(() => undefined)
      .finally(release)
  }
}

async function continueThere(work: StartedCommand, remote: RemoteWorkspace, ended: () => void): Promise<void> {
  const { start, signal, cause, deps } = work
  const { session, slot } = deps
  const outcome = await runThere(work, remote, { onlyAttach: true })
  // The position of an interrupted run stays the same until it is resumed or ended.
  const isUndecided = (): boolean => session.openRun !== null && !slot.isBusy
  if (!signal.aborted && isUndecided()) ended()
  while (!signal.aborted && isUndecided()) await nextLine(session, signal)
  throwIfSuspended(signal)
  await slot.append(bashMessage(start, outcome), cause)
  remote.settle(callIdOf(work), { sessionId: session.id })
}

async function nextLine(session: Session, signal: AbortSignal): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  const stop = session.subscribe(() => resolve())
  await settledWithin(promise, { signal })
  stop()
}

async function placeHere({ session, jobs }: ShellDeps): Promise<Pick<BashStart, 'host' | 'bootId' | 'spool'>> {
  const spool = await jobs.create(newJobId(), session.localFolder)
  return { host: hostname(), bootId: currentBootId(), spool }
}

interface StartedCommand {
  start: BashStart
  signal: AbortSignal
  cause?: Cause
  deps: ShellDeps
}

async function runHere(work: StartedCommand): Promise<BashOutcome> {
  const { start, signal, deps } = work
  const { cwd, prefix, redactor } = deps
  const { spool = '' } = start
  const env = commandEnvironment(process.env)
  const whole = prefix === '' ? start.command : `${prefix}\n${start.command}`
  const order = { spool, command: whole, cwd, env, deadlineMs: dayMs, redaction: redactor.policy }
  try {
    return await untilEnd(await startCommand({ ...order, signal }), work)
  } catch (error) {
    throwIfSuspended(signal)
    return attach(spool).forestall() ? notStarted(error, signal) : { output: bashTexts.failed(error) }
  }
}

function notStarted(error: unknown, { aborted }: AbortSignal): BashOutcome {
  return aborted ? { output: '', cancelled: true } : { output: bashTexts.notStarted(error) }
}

async function untilEnd(running: Command, { start, signal, deps }: StartedCommand): Promise<BashOutcome> {
  const left = new AbortController()
  const stop = (): void => {
    // The next process finds it, and makes it a job.
    if (signal.reason instanceof SessionSuspended) left.abort(signal.reason)
    else void running.stop().catch(() => undefined)
  }
  signal.addEventListener('abort', stop, { once: true })
  if (signal.aborted) stop()
  try {
    const live = new LiveOutput(outputListener(start, deps))
    const outcome = await running.wait({ signal: left.signal, onOutput: (piece) => live.take(piece) })
    return await outcomeOf(running, outcome.type === 'ended' ? outcome.exit : undefined, deps.session)
  } finally {
    signal.removeEventListener('abort', stop)
  }
}

/** Shows what the command prints, without secrets. */
function outputListener({ messageId: item }: BashStart, { redactor, observe }: ShellDeps): (printed: string) => void {
  const stream = redactor.stream()
  let off = 0
  return (printed) => {
    const text = stream.write(printed)
    if (text === '') return
    observe({ type: 'delta', item, part: 0, kind: 'tool_output', off, text, run: '' })
    off += text.length
  }
}

/** Runs it on the machine where the tools of the session work. Its owner decides what may run there. */
async function runThere(
  work: StartedCommand,
  remote: RemoteWorkspace,
  { onlyAttach = false } = {},
): Promise<BashOutcome> {
  const { start, signal, deps } = work
  const { session, cwd, clock } = deps
  const context: Omit<ToolContext, 'signal'> = {
    sessionId: session.id,
    runId: '',
    callId: callIdOf(work),
    cwd,
    clock,
    localFolder: undefined,
    // What a sandbox has blocked is in the output too.
    append: async () => undefined,
    putBlob: (bytes) => session.putBlob(bytes),
    getBlob: (sha256) => session.getBlob(sha256),
    observe: outputListener(start, deps),
    ask: async () => ({ text: '', isCancelled: true }),
    reach: async () => undefined,
    readmit: async () => ({ type: 'denied', reason: 'The command cannot run there.' }),
  }
  // A host that is away is not waited for when the user stops the command.
  const limits = { deadlineMs: Infinity, clock, signal, stopped: () => bashTexts.unknown }
  const { content, exitCode } = await runWithDeadline(limits, (inner) =>
    remote
      .runForUser(start.command, { ...context, signal: inner }, { onlyAttach })
      .catch((error: unknown) => ({ content: bashTexts.failed(error) })),
  )
  throwIfSuspended(signal)
  return {
    output: typeof content === 'string' ? content : '',
    ...(exitCode !== undefined && { exitCode }),
    ...(signal.aborted && { cancelled: true }),
  }
}

/** The next process waits for the command. */
function throwIfSuspended({ reason }: AbortSignal): void {
  if (reason instanceof SessionSuspended) throw reason
}

/** The same for every attempt to run a client command, so that the tool host runs it once. */
function callIdOf({ start, cause, deps }: StartedCommand): string {
  return cause ? `user-${sha256Of(JSON.stringify([deps.session.id, cause.cmd])).slice(0, 32)}` : start.messageId
}

/** A command of the user that has not been recorded. */
interface UserCommand {
  controller: AbortController
  done: Promise<unknown>
  /** Its outcome waits until it can be recorded. */
  hasEnded: boolean
}

/** The running commands of the user. Those on this machine end with their session at the latest. */
export class UserCommands {
  readonly #session: Session
  readonly #all = new Set<UserCommand>()

  constructor(session: Session) {
    this.#session = session
  }

  get areRunning(): boolean {
    return [...this.#all].some(({ hasEnded }) => !hasEnded)
  }

  /** The work calls `ended` when only its outcome is missing in the log. */
  async run<T>(work: (signal: AbortSignal, ended: () => void) => Promise<T>, signal?: AbortSignal): Promise<T> {
    const controller = new AbortController()
    const unwatch = this.#session.onStorageChange(({ type }) => {
      // The process that has taken the session over finds the command.
      if (type === 'lost') controller.abort(new SessionSuspended())
    })
    const stopped = signal ? AbortSignal.any([signal, controller.signal]) : controller.signal
    const done = work(stopped, () => (command.hasEnded = true))
    const command: UserCommand = { controller, done, hasEnded: false }
    this.#all.add(command)
    try {
      return await done
    } finally {
      this.#all.delete(command)
      unwatch()
    }
  }

  /**
   * Resolves when all of them are in the log, with whether there were any. If the reason is `SessionSuspended`, they
   * continue without this process.
   */
  async stop(reason?: SessionSuspended): Promise<boolean> {
    const running = [...this.#all].filter(({ hasEnded }) => !hasEnded)
    for (const { controller } of running) controller.abort(reason)
    await Promise.allSettled(running.map(({ done }) => done))
    return running.length > 0
  }

  /** The session is closed: what is neither stopped nor recorded is left to the next process. */
  async leave(): Promise<void> {
    const all = [...this.#all]
    for (const { controller } of all) controller.abort(new SessionSuspended())
    await Promise.allSettled(all.map(({ done }) => done))
  }
}
