// Readers in a process of their own: some read, some have stalled.
import type { Attached, Cursor } from '@tapetree/client/protocol'
import { setTimeout } from 'node:timers/promises'
import { answerParent } from '../wire/answer-parent.ts'
import { monotonicMs } from '../wire/monotonic.ts'
import type { ProductAddress } from '../wire/product.ts'
import { RawClient } from '../wire/raw-client.ts'
import { attachFrame, wayIn } from '../wire/way-in.ts'

export interface Woken {
  /** How those that woke came back to the present. */
  withoutBreak: number
  tail: number
  snapshot: number
}

const healthy: Reader[] = []
const stalled: Reader[] = []
let latencies: number[] = []
let address: ProductAddress

answerParent({
  join: async (options: { address: ProductAddress; healthy: number; stalled: number }) => {
    address = options.address
    for (let index = 0; index < options.healthy; index++) {
      healthy.push(await Reader.join(`healthy-${index}`, takeTime))
    }
    for (let index = 0; index < options.stalled; index++) {
      const reader = await Reader.join(`stalled-${index}`)
      reader.stall()
      stalled.push(reader)
    }
  },
  /** Waits until every healthy reader has this line; how long each line took since the last time, in milliseconds. */
  latencies: async ({ seq }: { seq: number }): Promise<number[]> => {
    await Promise.all(healthy.map((reader) => reader.reach(seq)))
    const taken = latencies
    latencies = []
    return taken
  },
  /** Waits until every reader that had stalled has this line. */
  wake: async ({ seq }: { seq: number }): Promise<Woken> => {
    for (const reader of stalled) reader.wake()
    await Promise.all(stalled.map((reader) => reader.reach(seq)))
    const count = (mode: Reader['cameBack']): number => stalled.filter(({ cameBack }) => cameBack === mode).length
    return { withoutBreak: count(undefined), tail: count('tail'), snapshot: count('snapshot') }
  },
})

/** Applies every line once, in its order, and comes back with its cursor. */
class Reader {
  cameBack: Attached['mode'] | undefined
  readonly #id: string
  readonly #heardLine: ((payload: Buffer) => void) | undefined
  readonly #waiting = new Map<number, () => void>()
  #client: RawClient | undefined
  #cursor: Cursor = { seq: 0, crc: '' }

  static async join(id: string, heardLine?: (payload: Buffer) => void): Promise<Reader> {
    const reader = new Reader(id, heardLine)
    await reader.#join()
    return reader
  }

  private constructor(id: string, heardLine?: (payload: Buffer) => void) {
    this.#id = id
    this.#heardLine = heardLine
  }

  stall(): void {
    this.#client?.stall()
  }

  wake(): void {
    this.#client?.wake()
  }

  async reach(seq: number): Promise<void> {
    if (this.#cursor.seq >= seq) return
    await new Promise<void>((resolve) => this.#waiting.set(seq, resolve))
  }

  async #join(after?: Cursor): Promise<void> {
    const { promise: attached, resolve } = Promise.withResolvers<Attached>()
    const { port, token, sessionIds } = address
    this.#client = await RawClient.dial({
      port,
      ...wayIn(sessionIds[0] as string, token),
      heard: (payload) => {
        if (payload.toString('latin1', 0, 7) === '{"seq":') this.#takeLine(payload)
        else if (payload.toString('latin1', 0, 18) === '{"type":"attached"') {
          const { data } = JSON.parse(payload.toString()) as { data: Attached }
          this.#begin(data)
          resolve(data)
        }
      },
      closed: () => void this.#comeBack(),
    })
    this.#client.send(attachFrame(this.#id, after))
    const { mode } = await attached
    if (after) this.cameBack = mode
  }

  /** Where it has stalled, the server lets it go: it is told so when it wakes. Who comes with many others may have to try again. */
  async #comeBack(): Promise<void> {
    for (;;) {
      try {
        return await this.#join(this.#cursor)
      } catch {
        await setTimeout(50 + 200 * Math.random())
      }
    }
  }

  #begin({ snapshot }: Attached): void {
    if (snapshot) this.#advance(snapshot.head)
  }

  #takeLine(payload: Buffer): void {
    const seq = Number.parseInt(payload.toString('latin1', 7, 24), 10)
    if (seq !== this.#cursor.seq + 1) throw new Error(`${this.#id} got line ${seq} after ${this.#cursor.seq}`)
    this.#advance({ seq, crc: payload.toString('latin1', payload.length - 10, payload.length - 2) })
    this.#heardLine?.(payload)
  }

  #advance(cursor: Cursor): void {
    this.#cursor = cursor
    for (const [seq, resolve] of this.#waiting) {
      if (seq > cursor.seq) continue
      this.#waiting.delete(seq)
      resolve()
    }
  }
}

function takeTime(payload: Buffer): void {
  const sentAt = /"at":([\d.]+)/.exec(payload.toString('latin1', 0, 400))?.[1]
  if (sentAt !== undefined) latencies.push(monotonicMs() - Number(sentAt))
}
