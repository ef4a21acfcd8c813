import { randomBytes } from 'node:crypto'
import { existsSync, watch, type FSWatcher } from 'node:fs'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { defaultPolicy } from '@tapetree/redact'
import type { RecordDraft, ToolStartRecord } from '@tapetree/session/format'
import type { BoxKind, ToolContext } from '../tool.ts'
import { readClaim, takeClaim, type Claim } from './claim.ts'
import { readExit, type CommandExit, type CommandLimits } from './exit-file.ts'
import { prepareSupervisor, sendOrder, type Order } from './supervisor-process.ts'
import { isRunning } from './process-table.ts'
import { endTree, findTree } from './process-tree.ts'
import { readOutput, type OutputPiece, type ReadOutputOptions, type SpooledOutput } from './spooled-output.ts'

export interface CommandOptions extends Partial<Omit<Order, 'claim' | 'mark'>> {
  /** A folder for this command alone. */
  spool: string
  command: string
  cwd: string
  /** The complete environment of the command. */
  env: Record<string, string>
  deadlineMs: number
  /** Prevents the start; a started command is not stopped. */
  signal?: AbortSignal
}

/** A sandbox for one command. */
export interface CommandBox {
  /** The command line to which the command is appended. */
  argv: readonly string[]
  /** Variables that differ in the sandbox. */
  env: Readonly<Record<string, string>>
  /** What `argv` limits. */
  limits?: CommandLimits
}

/** Makes sandboxes for the commands of a session, and checks what a command did in one. */
export interface CommandSandbox {
  /** What a command may do: for the log, before the command starts. */
  details(kind: BoxKind): SandboxDetails | Promise<SandboxDetails>
  /** If it throws, the command does not run. Files in `spool` survive this process, for `takeBack`. */
  box(cwd: string, options: { isReadOnly: boolean; spool: string; callId: string }): Promise<CommandBox>
  /** From now on until `leave` or the end of the run, the user is asked about hosts that the commands of this call want to reach. */
  attend?(call: { callId: string; reach: ToolContext['reach'] }): void
  leave?(callId: string): void
  /** What the sandbox blocked: what the end of the output of a command shows, and hosts that were refused to the call. */
  blockedIn(output: string, call: { cwd: string; callId?: string }): Blocked[] | Promise<Blocked[]>
  /** The hosts that commands of the call have reached. */
  reachedBy?(callId: string): Promise<readonly string[]>
  /**
   * After a command: moves new control files out of the working folder. They make other programs run something, so the user decides
   * about them. Calling it again after a crash finds the same files.
   */
  takeBack(place: { cwd: string; spool: string; callId?: string }): Promise<TakenBack | undefined>
}

/** What a command in a sandbox may do. */
export type SandboxDetails = NonNullable<ToolStartRecord['toolStart']['sandbox']>

export type BlockedDraft = Extract<RecordDraft, { type: 'blocked' }>

/** Appends it to the log of a session. */
export type RecordBlocked = (draft: BlockedDraft) => Promise<unknown>

export interface Blocked extends Omit<BlockedDraft['blocked'], 'callId'> {
  /** A sentence, if the sandbox knows it. */
  reason?: string
}

/** Files that a command made, which control what other programs run. */
export interface TakenBack {
  /** Their ids, with which they can be applied later, and their paths relative to the working folder. */
  writes: readonly { id: string; path: string }[]
  /** Those that could not be moved and are still there, with the reasons. */
  unmoved: readonly { path: string; reason: string }[]
  /** Puts them back, because the user wants them. Each is recorded before. Resolves with a sentence for each that cannot be put back. */
  putBack(record: RecordBlocked): Promise<string[]>
  /** They stay there. Until then, each call of `takeBack` finds them. */
  leave(): Promise<void>
}

const outputDefaults = { outputCapBytes: 10 * 1024 ** 2, outputLimitBytes: 1024 ** 3 }
const endingDefaults = { graceMs: 2000, lingerMs: 500 }

/** The state of a command. `unclaimed`: it has not begun. `lost`: it is gone, and its outcome was not recorded. */
export type CommandState =
  | { type: 'unclaimed' }
  | { type: 'running' }
  | { type: 'ended'; exit: CommandExit }
  | { type: 'lost' }

/** How a started command ended. */
export type CommandOutcome = Extract<CommandState, { type: 'ended' | 'lost' }>

const maxAttempts = 3

/**
 * Starts a command under its own supervisor; resolves when the supervisor has claimed it. The command survives
 * this process. A spool folder serves one command once: if it was started already, returns that command.
 */
export async function startCommand(options: CommandOptions): Promise<Command> {
  const { signal, ...given } = options
  const { spool } = given
  await mkdir(spool, { recursive: true, mode: 0o700 })
  for (let attempt = 0; attempt < maxAttempts; attempt++) {
    signal?.throwIfAborted()
    const mark = randomBytes(8).toString('hex')
    const { claim, next } = readClaim(spool)
    if (claim?.by === 'supervisor') return attach(spool)
    const order = { redaction: defaultPolicy(), ...outputDefaults, ...endingDefaults, ...given, claim: next, mark }
    const answer = await sendOrder(order, signal)
    prepareSupervisor()
    if (answer === 'claimed') return attach(spool)
    if (takeClaim(spool, next, { by: 'nobody' })) continue
    if (readClaim(spool).claim?.by === 'supervisor') return attach(spool)
    throw new Error('The command was cancelled before it started.')
  }
  throw new Error('The command could not be started: its supervisor (a Node process) exited immediately.')
}

/** A command that any process started, at any time. */
export function attach(spool: string): Command {
  return new Command(spool)
}

export interface WaitOptions {
  /** Stops waiting, not the command. */
  signal?: AbortSignal
  /** Receives past and current output. A slow receiver misses some in between. */
  onOutput?: (piece: OutputPiece) => void
}

/** Who asked to stop a command, as the model is told. */
export type Stopper = (typeof stoppers)[number]
const stoppers = ['job_kill', 'the user'] as const
const stopperFile = 'stopped-by'

/** A command, as recorded in its spool folder. */
export class Command {
  readonly spool: string

  constructor(spool: string) {
    this.spool = spool
  }

  async state(): Promise<CommandState> {
    const { claim } = readClaim(this.spool)
    const isThere = claim?.by === 'supervisor' && isRunning(claim)
    // In this order: a supervisor writes the exit before it ends.
    const exit = await readExit(this.spool)
    if (exit) return { type: 'ended', exit }
    if (isThere) return { type: 'running' }
    const isLost = claim?.by === 'supervisor' || !existsSync(this.spool)
    return { type: isLost ? 'lost' : 'unclaimed' }
  }

  output(options?: ReadOutputOptions): Promise<SpooledOutput> {
    return readOutput(this.spool, options)
  }

  /** Claims a command that has not begun, so that it never does; returns false if it has begun. */
  forestall(): boolean {
    const { claim, next } = readClaim(this.spool)
    return claim?.by !== 'supervisor' && takeClaim(this.spool, next, { by: 'nobody' })
  }

  /** Resolves when the command has ended. */
  async wait({ signal, onOutput }: WaitOptions = {}): Promise<CommandOutcome> {
    using watcher = new SpoolWatcher(this.spool)
    let offset = 0
    for (;;) {
      const state = await this.state()
      if (onOutput) {
        const { pieces, end } = await readOutput(this.spool, { from: offset, limitBytes: followBytes })
        for (const piece of pieces) onOutput(piece)
        offset = end
      }
      if (state.type === 'ended' || state.type === 'lost') return state
      await watcher.changed(signal)
    }
  }

  /**
   * Ends it with all of its processes and resolves when they are gone, or prevents its start. `by` is recorded; the first
   * one counts.
   */
  async stop(by?: Stopper): Promise<CommandOutcome | { type: 'unclaimed' }> {
    if (this.forestall()) return { type: 'unclaimed' }
    const { claim } = readClaim(this.spool)
    if (claim && isRunning(claim)) {
      // A supervisor outlives its command for a moment.
      if (by !== undefined && (await this.state()).type === 'running') await this.#recordStopper(by)
      tell(claim, 'SIGTERM')
    }
    try {
      return await this.wait({ signal: AbortSignal.timeout(stopMs) })
    } catch {
      return this.#stopBluntly()
    }
  }

  /** Undefined if it was not recorded. */
  async stopper(): Promise<Stopper | undefined> {
    const recorded = await readFile(join(this.spool, stopperFile), 'utf8').catch(() => '')
    return stoppers.find((each) => each === recorded)
  }

  async #recordStopper(by: Stopper): Promise<void> {
    // Who stopped it is only told to the model: a full disk must not keep a command running.
    await writeFile(join(this.spool, stopperFile), by, { flag: 'wx', mode: 0o600 }).catch(() => undefined)
  }

  /** Ends processes left by a supervisor that was killed. */
  async endStrays(): Promise<void> {
    const { claim } = readClaim(this.spool)
    if (claim?.by !== 'supervisor' || claim.mark === '') return
    await endTree(() => findTree({ mark: claim.mark, since: claim.startTime }), endingDefaults.graceMs)
  }

  /** For a supervisor that does not respond. */
  async #stopBluntly(): Promise<CommandOutcome> {
    const { claim } = readClaim(this.spool)
    if (claim && isRunning(claim)) tell(claim, 'SIGKILL')
    await this.endStrays()
    const exit = await readExit(this.spool)
    return exit ? { type: 'ended', exit } : { type: 'lost' }
  }
}

/** Maximum lag of a follower; older output is skipped. */
const followBytes = 256 * 1024
/** A supervisor needs at most two grace periods. */
const stopMs = 10_000

function tell({ pid }: Claim, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal)
    process.kill(pid, 'SIGCONT')
  } catch {
    // it has ended meanwhile
  }
}

/** Output that arrives within this time is read together. */
const quietMs = 25
/** Interval for changes without a notification, such as the death of a supervisor. */
const pollMs = 500
/** Interval if folders cannot be watched, for example because no watches are left. */
const blindPollMs = 50

/** Reports possible changes in a spool folder. */
class SpoolWatcher implements Disposable {
  #watcher: FSWatcher | undefined
  #timer: NodeJS.Timeout | undefined
  #wake: () => void = () => undefined
  #isChanged = false

  constructor(folder: string) {
    try {
      this.#watcher = watch(folder, (_, name) => this.#changed(name === 'exit' ? 0 : quietMs))
      this.#watcher.on('error', () => this.#goBlind())
    } catch {
      this.#goBlind()
    }
  }

  /** Resolves at the next change since the last call, or after a while. */
  async changed(signal?: AbortSignal): Promise<void> {
    signal?.throwIfAborted()
    if (!this.#isChanged) {
      await new Promise<void>((resolve) => {
        const poll = setTimeout(resolve, this.#watcher ? pollMs : blindPollMs)
        this.#wake = () => {
          clearTimeout(poll)
          resolve()
        }
        signal?.addEventListener('abort', this.#wake, { once: true })
      })
      signal?.removeEventListener('abort', this.#wake)
    }
    this.#isChanged = false
    signal?.throwIfAborted()
  }

  [Symbol.dispose](): void {
    clearTimeout(this.#timer)
    this.#watcher?.close()
    this.#wake()
  }

  #changed(delayMs: number): void {
    if (delayMs > 0 && this.#timer) return
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => {
      this.#timer = undefined
      this.#isChanged = true
      this.#wake()
    }, delayMs)
  }

  #goBlind(): void {
    this.#watcher?.close()
    this.#watcher = undefined
    this.#wake()
  }
}
