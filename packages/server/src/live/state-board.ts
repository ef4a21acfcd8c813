import type { Attached, StateKey, WireStateValues } from '@tapetree/client'

export interface BoardValue {
  value: unknown
  rev: number
  bytes: Buffer
}

/** Values of which only the latest counts. Each change has a revision. */
export class StateBoard {
  readonly #values = new Map<StateKey, BoardValue & { json: string }>()
  #rev = 0

  get rev(): number {
    return this.#rev
  }

  /** Returns whether the value changed. */
  set<Key extends StateKey>(key: Key, value: WireStateValues[Key]): boolean {
    const json = JSON.stringify(value)
    if (this.#values.get(key)?.json === json) return false
    const rev = ++this.#rev
    const bytes = Buffer.from(`{"type":"state","data":{"key":${JSON.stringify(key)},"value":${json}},"rev":${rev}}`)
    this.#values.set(key, { value, rev, bytes, json })
    return true
  }

  get<Key extends StateKey>(key: Key): WireStateValues[Key] | undefined {
    return this.#values.get(key)?.value as WireStateValues[Key] | undefined
  }

  /** Values newer than a revision, oldest change first. */
  newerThan(rev: number): BoardValue[] {
    return [...this.#values.values()].filter((each) => each.rev > rev).sort((left, right) => left.rev - right.rev)
  }

  all(): Attached['state'] {
    return Object.fromEntries([...this.#values].map(([key, { value, rev }]) => [key, { value, rev }]))
  }
}
