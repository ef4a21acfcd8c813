import { ProblemError } from './problem-error.ts'
import type { Operation } from './protocol/command.ts'
import type { Ack } from './protocol/frames.ts'

/** A command as it is sent, and sent again. */
export interface SentCommand {
  id: string
  op: Operation
  args: Record<string, unknown>
  if_head?: number
}

/** Where commands are kept until they are acknowledged. Screens of one session may share it: the server takes each id once. */
export interface CommandStorage {
  /** In the order they were added. */
  load(sessionId: string): Promise<SentCommand[]>
  add(sessionId: string, command: SentCommand): Promise<void>
  remove(sessionId: string, commandId: string): Promise<void>
}

/** Kept as long as the process lives. */
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

interface Waiting {
  readonly command: SentCommand
  /** Absent where it was kept from before: nobody waits for the answer. */
  readonly answer?: PromiseWithResolvers<unknown>
  isStored: boolean
  /** The connection it was last sent on. */
  sentOn: unknown
}

/** The commands of one session that have no answer yet, in the order they were given. */
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

  /** Takes up what was left behind by a reload. */
  async restore(): Promise<void> {
    const left = await this.#storage.load(this.#sessionId)
    for (const command of left) this.#waiting.set(command.id, { command, isStored: true, sentOn: undefined })
  }

  /** Resolves with the result of its ack. Calls `stored` when it may be sent: what was sent is also kept. */
  async add(command: SentCommand, stored: () => void): Promise<unknown> {
    const answer = Promise.withResolvers<unknown>()
    const waiting: Waiting = { command, answer, isStored: false, sentOn: undefined }
    this.#waiting.set(command.id, waiting)
    await this.#store(() => this.#storage.add(this.#sessionId, command))
    waiting.isStored = true
    if (this.#waiting.has(command.id)) stored()
    return answer.promise
  }

  /** What has not been sent on this connection yet. With `cautious` one at a time, each when the one before has its answer. */
  *unsent(connection: unknown, { cautious }: { cautious: boolean }): Generator<SentCommand> {
    for (const waiting of this.#waiting.values()) {
      // What comes behind it waits as well, so that the order stays.
      if (!waiting.isStored) return
      if (waiting.sentOn !== connection) {
        waiting.sentOn = connection
        yield waiting.command
      }
      if (cautious) return
    }
  }

  /** What was sent on a connection and has no answer. */
  sentOn(connection: unknown): SentCommand[] {
    return [...this.#waiting.values()].filter(({ sentOn }) => sentOn === connection).map(({ command }) => command)
  }

  /** Gives the command where nobody waits for this answer; undefined also where it has been answered before. */
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

  /** Nobody will be told any more; what is stored stays so for the next time, unless there will be none. */
  abandon(error: ProblemError, { forget }: { forget: boolean }): void {
    const all = [...this.#waiting.values()]
    this.#waiting.clear()
    for (const { answer, command } of all) {
      answer?.reject(error)
      if (forget) void this.#store(() => this.#storage.remove(this.#sessionId, command.id))
    }
  }

  /** Resolves when all that was to be stored or removed is. */
  async stored(): Promise<void> {
    await this.#stored
  }

  /** One after the other, in order. */
  async #store(change: () => Promise<void>): Promise<void> {
    // Where nothing can be stored, such as in a private window, a command is still sent; only a reload loses it.
    const done = this.#stored.then(change).catch(() => undefined)
    this.#stored = done
    await done
  }
}
