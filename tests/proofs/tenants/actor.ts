import { SessionError, type Place } from '@tapetree/session'
import { sealLine, type SealedLine } from '@tapetree/session/format'
import type { LogStore, ReadableLog, WritableLog } from '@tapetree/session/log-store'

type Query = Parameters<LogStore['list']>[1]
type SearchQuery = Parameters<LogStore['search']>[1]

/** One call of the store port, or of a log that it opened. */
export type Operation =
  | { type: 'create'; id: string; header: SealedLine }
  | { type: 'discard' | 'erase' | 'claim' | 'release' | 'reclaim' | 'place' | 'owner'; id: string }
  | { type: 'append'; id: string; lines: readonly SealedLine[]; head: number }
  | { type: 'put'; id: string; bytes: Uint8Array }
  | { type: 'save'; id: string; content: string }
  | { type: 'move'; id: string; place: Place }
  | { type: 'read' | 'checkpoint'; id: string; place: Place }
  | { type: 'seek'; id: string; place: Place; seq: number }
  | { type: 'blob'; id: string; place: Place; sha256: string }
  | { type: 'list'; query: Query }
  | { type: 'search'; query: SearchQuery }

/** Sends operations of one tenant to a store. What comes back contains no positions, since stores choose their own. */
export class Actor {
  readonly #port: LogStore
  readonly #scope: { tenant: string }
  readonly #held = new Map<string, WritableLog>()

  constructor(port: LogStore, tenant: string) {
    this.#port = port
    this.#scope = { tenant }
  }

  /** The result, or the error with all its messages. */
  async run(operation: Operation): Promise<{ value: unknown } | { error: string; messages: string[] }> {
    try {
      return { value: await this.#call(operation) }
    } catch (error) {
      const messages: string[] = []
      for (let cause: unknown = error; cause instanceof Error; cause = cause.cause) messages.push(cause.message)
      return { error: error instanceof SessionError ? error.code : 'unknown error', messages }
    }
  }

  async close(): Promise<void> {
    for (const log of this.#held.values()) await log.close()
  }

  async #call(operation: Operation): Promise<unknown> {
    switch (operation.type) {
      case 'create':
        return this.#port.create(this.#scope, operation.id, operation.header)
      case 'discard':
        await this.#release(operation.id)
        return this.#port.discard(this.#scope, operation.id)
      case 'erase':
        return this.#port.erase(this.#scope, operation.id)
      case 'place':
        return this.#port.placeOf(this.#scope, operation.id)
      case 'move':
        return this.#port.move(this.#scope, operation.id, operation.place)
      case 'list':
        return this.#port.list(this.#scope, operation.query)
      case 'search':
        return this.#port.search(this.#scope, operation.query)
      case 'claim':
      case 'release':
      case 'reclaim':
      case 'append':
      case 'put':
      case 'save':
        return this.#write(operation)
      default:
        return this.#read(operation)
    }
  }

  async #write(operation: Operation & { id: string }): Promise<unknown> {
    const held = this.#held.get(operation.id)
    if (operation.type === 'claim') {
      const claim = await this.#port.claim(this.#scope, operation.id)
      if (claim.type === 'claimed') this.#held.set(operation.id, claim.log)
      return claim.type
    }
    if (!held) return 'not held'
    switch (operation.type) {
      case 'release':
        return this.#release(operation.id)
      case 'reclaim':
        return (await held.reclaim()).type
      case 'append': {
        const { lines, head } = operation
        return (await held.append(lines, { term: held.term ?? 0, head, durability: 'durable' })).type
      }
      case 'put':
        return held.putBlob(operation.bytes)
      case 'save':
        return held.saveDerived({ checkpoint: { count: 1, changed: new Map([[0, operation.content]]) } })
      default:
        throw new TypeError(`${operation.type} is no operation of a writer`)
    }
  }

  async #read(operation: Operation & { id: string }): Promise<unknown> {
    const place = 'place' in operation ? operation.place : 'active'
    const log = await this.#port.open(this.#scope, operation.id, place)
    try {
      switch (operation.type) {
        case 'read':
          return await linesFrom(log, 0)
        case 'seek': {
          const at = await log.seek(operation.seq)
          return at === undefined ? undefined : [await linesFrom(log, at), ...(await log.readAt([{ at, size: 1 }]))]
        }
        case 'checkpoint':
          return await log.loadCheckpoint()
        case 'blob':
          return await log.getBlob(operation.sha256)
        case 'owner':
          return (await log.owner?.()) !== undefined
        default:
          throw new TypeError(`${operation.type} is no operation of a reader`)
      }
    } finally {
      await log.close()
    }
  }

  async #release(id: string): Promise<void> {
    const held = this.#held.get(id)
    this.#held.delete(id)
    await held?.close()
  }
}

async function linesFrom(log: ReadableLog, at: number): Promise<Uint8Array[]> {
  const lines: Uint8Array[] = []
  for await (const batch of log.lines(at)) lines.push(...batch.map(({ bytes }) => bytes))
  return lines
}

export function headerOf(id: string, cwd: string): SealedLine {
  return sealLine({ type: 'session', id, version: 1, timestamp: timeOf(0), cwd }, 1)
}

export function messageLine(seq: number, { said, ms }: { said: string; ms: number }): SealedLine {
  const message = { role: seq % 2 === 0 ? 'user' : 'assistant', content: [{ type: 'text', text: { content: said } }] }
  const parent = seq === 2 ? null : `e${seq - 1}`
  return sealLine({ type: 'message', id: `e${seq}`, parent_id: parent, timestamp: timeOf(ms), message }, seq)
}

function timeOf(ms: number): string {
  return new Date(Date.UTC(2026, 10, 1) + ms).toISOString()
}

/** All text and bytes in a value, as one text that can be searched and compared. */
export function bytesIn(value: unknown): string {
  if (typeof value === 'string') return value
  if (value instanceof Uint8Array) return Buffer.from(value).toString('latin1')
  if (value === null || typeof value !== 'object') return String(value)
  return Object.entries(value)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([key, inner]) => `${key}: ${bytesIn(inner)}`)
    .join('\n')
}
