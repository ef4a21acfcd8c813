import { AsyncLocalStorage } from 'node:async_hooks'

export type Json = Record<string, unknown>

/** Converts the events of one answer to events that the provider package accepts. */
export interface EventReader {
  /** The events to pass on instead of this one; none if it is irrelevant. */
  read(event: Json): Json[]
  /** The stream has ended: `isDone` if the server sent `[DONE]`. */
  end?(isDone: boolean): Json[]
}

/** Content of an answer that no event of a provider package can carry. */
export class ResponseNotes {
  /** Unknown kinds, such as `event:message_limit`, and how often each was skipped. */
  readonly skipped = new Map<string, number>()
  /** The signed reasoning of Chat Completions hosts; it must be sent back unchanged. */
  readonly reasoningDetails: Json[] = []

  skip(kind: string): Json[] {
    // The kinds come from a server: their number and length are limited.
    const name = this.skipped.size < 100 || this.skipped.has(kind) ? kind.slice(0, 100) : 'others'
    this.skipped.set(name, (this.skipped.get(name) ?? 0) + 1)
    return []
  }
}

const storage = new AsyncLocalStorage<ResponseNotes>()

/** Requests that `work` sends add their notes here. */
export function withNotes<T>(notes: ResponseNotes, work: () => T): T {
  return storage.run(notes, work)
}

export function currentNotes(): ResponseNotes {
  return storage.getStore() ?? new ResponseNotes()
}

export function asJson(value: unknown): Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Json) : {}
}

export function listOf(value: unknown): Json[] {
  return Array.isArray(value) ? value.map(asJson) : []
}

export function textIn(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined
}

/** A count; some servers write numbers as text. */
export function numberIn(value: unknown): number | undefined {
  const number = typeof value === 'string' && value.trim() !== '' ? Number(value) : value
  return typeof number === 'number' && Number.isFinite(number) ? number : undefined
}

/** The members that have a value. */
export function defined(members: Json): Json {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined && value !== null))
}

/** The members that are counts, as numbers. */
export function counts(from: unknown, names: readonly string[]): Json {
  const given = asJson(from)
  return defined(Object.fromEntries(names.map((name) => [name, numberIn(given[name])])))
}

/** The text of an error in any shape. */
export function errorText(error: unknown): string {
  if (typeof error === 'string') return error
  return textIn(asJson(error)['message']) ?? JSON.stringify(error)
}
