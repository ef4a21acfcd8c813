import { isObject } from '../line/codec.ts'

/** A permission that was asked and not answered yet, as its record on disk. */
export interface PendingPermission {
  payload: Record<string, unknown>
  seq: number
  timestamp: string
}

/** Permissions folded from the log: what still waits for an answer, and what stays granted for the session. */
export class Permissions {
  #pending = new Map<string, PendingPermission>()
  #grants: Record<string, unknown>[] = []
  #mode: string | undefined

  get pending(): PendingPermission[] {
    return [...this.#pending.values()]
  }

  get grants(): readonly Record<string, unknown>[] {
    return this.#grants
  }

  /** The recorded mode; undefined if none was ever recorded, `unknown` if the record of it may be lost. */
  get mode(): string | undefined {
    return this.#mode
  }

  modeSet(mode: unknown): void {
    this.#mode = typeof mode === 'string' ? mode : unknownMode
  }

  /** One of the lost lines may have narrowed the mode. */
  linesLost(): void {
    this.#mode = unknownMode
  }

  requested(payload: Record<string, unknown>, place: { seq: number; timestamp: string }): void {
    const id = payload['request_id']
    if (typeof id === 'string') this.#pending.set(id, { payload, ...place })
  }

  /** The first answer wins; a second one finds nothing pending. */
  answered(payload: Record<string, unknown>): void {
    const wasPending = this.#pending.delete(String(payload['request_id']))
    if (wasPending && payload['outcome'] === 'allowed' && isObject(payload['grant']))
      this.#grants.push(payload['grant'])
  }

  toCheckpoint(): unknown {
    return { pending: this.pending, grants: this.#grants, mode: this.#mode }
  }

  restore(saved: unknown): void {
    const { pending, grants, mode } = saved as {
      pending: PendingPermission[]
      grants: Record<string, unknown>[]
      mode?: string
    }
    this.#pending = new Map(pending.map((request) => [String(request.payload['request_id']), request]))
    this.#grants = grants
    this.#mode = mode
  }
}

/** No agent has a mode of this name, so each falls back to one that asks. */
const unknownMode = 'unknown'
