import { ProblemError } from './problem-error.ts'
import type { Operation } from './protocol/command.ts'
import type { Ack } from './protocol/frames.ts'

/** A command as it is sent and resent. */
export interface SentCommand {
  id: string
  op: Operation
  args: Record<string, unknown>
  if_head?: number
}

/**
 * Stores commands until they are acknowledged. Screens of one session may share it: the server handles each id
 * once.
 */
export interface CommandStorage {
  /** In the order they were added. */
  load(sessionId: string): Promise<SentCommand[]>
  add(sessionId: string, command: SentCommand): Promise<void>
  remove(sessionId: string, commandId: string): Promise<void>
}

/** Stores for the lifetime of the process. */
export function memoryStorage(): CommandStorage {
  const kept = new Map<string, SentCommand[]>()
  return {
    load: async (sessionId) => kept.get(sessionId) ?? [],
    add: async (sessionId, command) => void kept.set(sessionId, [...(kept.get(sessionId) ?? []), command]),
    remove: async (sessionId, commandId) => {
      const rest = (kept.get(sessionId) ?? []).filter(({ id }) => id !== commandId)
      if (rest.length > 0) kept.set(sessionId, rest)
      else kept.delete(sessionId)
    },
  }
}

/** A command without an answer, as screens show it. */
export interface PendingCommand {
  readonly id: string
  readonly op: Operation
  readonly args: Readonly<Record<string, unknown>>
  /**
   * `unsent`: waits for a connection. `sent`: on its way on this connection. `unconfirmed`: it was sent before the
   * connection ended, or before a reload; it will be sent again and takes effect once.
   */
  readonly state: 'unsent' | 'sent' | 'unconfirmed'
}

interface Waiting {
  readonly command: SentCommand
  /** Absent for a command restored from the storage, which has no caller. */
  readonly answer?: PromiseWithResolvers<unknown>
  /** From before a reload. */
  readonly isRestored?: true
  isStored: boolean
  /** The connection on which it was last sent. */
  sentOn: unknown
}

/** The unacknowledged commands of one session, in order. */
export class Unacknowledged {
  readonly #waiting = new Map<string, Waiting>()
  readonly #sessionId: string
  readonly #storage: CommandStorage
  #stored: Promise<unknown> = Promise.resolve()

  constructor(sessionId: string, storage: CommandStorage) {
    this.#sessionId = sessionId
    this.#storage = storage
  }

  get size(): number {
    return this.#waiting.size
  }

  /** Restores commands from before a reload. */
  async restore(): Promise<void> {
    const left = await this.#storage.load(this.#sessionId)
    for (const command of left)
      this.#waiting.set(command.id, { command, isRestored: true, isStored: true, sentOn: undefined })
  }

  /** Resolves with the result of the ack. Calls `stored` when the command may be sent: commands are stored first. */
  async add(command: SentCommand, stored: () => void): Promise<unknown> {
    const answer = Promise.withResolvers<unknown>()
    const waiting: Waiting = { command, answer, isStored: false, sentOn: undefined }
    this.#waiting.set(command.id, waiting)
    await this.#store(() => this.#storage.add(this.#sessionId, command))
    waiting.isStored = true
    if (this.#waiting.has(command.id)) stored()
    return answer.promise
  }

  /**
   * Commands not yet sent on this connection. With `cautious` one at a time, each after the previous one is
   * answered.
   */
  *unsent(connection: unknown, { cautious }: { cautious: boolean }): Generator<SentCommand> {
    for (const waiting of this.#waiting.values()) {
      // Later commands wait too, to keep the order.
      if (!waiting.isStored) return
      if (waiting.sentOn !== connection) {
        waiting.sentOn = connection
        yield waiting.command
      }
      if (cautious) return
    }
  }

  /** All commands without an answer, as seen on this connection. */
  list(connection: unknown): PendingCommand[] {
    return [...this.#waiting.values()].map(({ command: { id, op, args }, sentOn, isRestored }) => {
      const isSent = sentOn !== undefined && sentOn === connection
      const wasSent = sentOn !== undefined || isRestored === true
      return { id, op, args, state: isSent ? 'sent' : wasSent ? 'unconfirmed' : 'unsent' }
    })
  }

  /** Commands sent on a connection that have no answer. */
  sentOn(connection: unknown): SentCommand[] {
    return [...this.#waiting.values()].filter(({ sentOn }) => sentOn === connection).map(({ command }) => command)
  }

  /** Returns the command if it has no caller; undefined if it has one, or was settled before. */
  settle(ack: Ack): SentCommand | undefined {
    const waiting = this.#waiting.get(ack.id)
    if (!waiting) return undefined
    this.#waiting.delete(ack.id)
    void this.#store(() => this.#storage.remove(this.#sessionId, ack.id))
    const { answer, command } = waiting
    if (!answer) return command
    if (ack.ok) answer.resolve(ack.result)
    else answer.reject(new ProblemError(ack.error ?? { type: 'refused', title: 'Refused', status: 400 }))
    return undefined
  }

  /** Rejects all commands. They stay in the storage for the next handle, unless `forget` is set. */
  abandon(error: ProblemError, { forget }: { forget: boolean }): void {
    const all = [...this.#waiting.values()]
    this.#waiting.clear()
    for (const { answer, command } of all) {
      answer?.reject(error)
      if (forget) void this.#store(() => this.#storage.remove(this.#sessionId, command.id))
    }
  }

  /** Resolves when all pending changes to the storage are done. */
  async stored(): Promise<void> {
    await this.#stored
  }

  /** Changes run one after another, in order. */
  async #store(change: () => Promise<void>): Promise<void> {
    // If nothing can be stored, as in a private window, a command is still sent, but a reload loses it.
    const done = this.#stored.then(change).catch(() => undefined)
    this.#stored = done
    await done
  }
}
