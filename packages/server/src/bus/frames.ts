// What adapters send over a network: a frame is a JSON header with bytes, and travels in one or more pieces.
import { maxMessageBytes } from './session-bus.ts'

export interface Frame {
  header: Record<string, unknown>
  body: Uint8Array
}

export function encodeFrame(header: Record<string, unknown>, body: Uint8Array = new Uint8Array()): Uint8Array {
  const text = Buffer.from(JSON.stringify(header))
  const length = Buffer.alloc(4)
  length.writeUInt32BE(text.length)
  return Buffer.concat([length, text, body])
}

/** Undefined if these bytes are no frame. */
export function decodeFrame(bytes: Uint8Array): Frame | undefined {
  const buffer = bufferOf(bytes)
  if (buffer.length < 4) return undefined
  const end = 4 + buffer.readUInt32BE()
  try {
    const header: unknown = JSON.parse(buffer.toString('utf8', 4, end))
    if (end > buffer.length || typeof header !== 'object' || header === null) return undefined
    return { header: header as Record<string, unknown>, body: buffer.subarray(end) }
  } catch {
    return undefined
  }
}

/** Splits frames into pieces that are small enough for a transport. */
export class PieceSplitter {
  /** Eight bytes that no other splitter has. */
  readonly #sender: Uint8Array
  #lastNumber = 0

  constructor(sender: Uint8Array) {
    this.#sender = sender
  }

  /** The pieces have `maxBytes` at most, and must be sent in this order. */
  *split(frame: Uint8Array, maxBytes: number): Generator<Uint8Array, void> {
    this.#lastNumber = (this.#lastNumber + 1) % 2 ** 32
    const size = Math.max(1, maxBytes - prefixBytes)
    const count = Math.max(1, Math.ceil(frame.length / size))
    for (let index = 0; index < count; index += 1) {
      const prefix = Buffer.alloc(prefixBytes)
      prefix.set(this.#sender)
      for (const [place, value] of [this.#lastNumber, index, count].entries())
        prefix.writeUInt32BE(value, 8 + 4 * place)
      yield Buffer.concat([prefix, frame.subarray(index * size, (index + 1) * size)])
    }
  }
}

interface Partial {
  number: number
  count: number
  parts: Uint8Array[]
  bytes: number
  timer: NodeJS.Timeout
}

/** Joins pieces. A frame of which a piece is missing is dropped, and so is the oldest one if all take too much memory. */
export class PieceJoiner {
  readonly #partials = new Map<string, Partial>()
  readonly #maxBytes: number
  #bytes = 0

  constructor(maxBytes = 2 * maxFrameBytes) {
    this.#maxBytes = maxBytes
  }

  /** The frame, if this piece completes it. The pieces of one sender arrive in order on a channel. */
  push(channel: string, piece: Uint8Array): Uint8Array | undefined {
    if (piece.length < prefixBytes) return undefined
    const buffer = bufferOf(piece)
    const [number, index, count] = [8, 12, 16].map((place) => buffer.readUInt32BE(place)) as [number, number, number]
    const part = buffer.subarray(prefixBytes)
    if (count === 1) return part
    const key = `${channel} ${buffer.toString('hex', 0, 8)}`
    const known = this.#partials.get(key)
    const isNext = index > 0 && known?.number === number && known.count === count && known.parts.length === index
    if (!isNext) this.#drop(key)
    if (part.length === 0 || (index > 0 && !isNext)) return undefined
    const partial = isNext ? known : this.#begin(key, number, count)
    partial.parts.push(part)
    partial.bytes += part.length
    this.#bytes += part.length
    if (partial.parts.length === count) {
      this.#drop(key)
      return partial.bytes > maxFrameBytes ? undefined : Buffer.concat(partial.parts)
    }
    if (partial.bytes > maxFrameBytes) this.#drop(key)
    for (const oldest of this.#partials.keys()) {
      if (this.#bytes <= this.#maxBytes) break
      this.#drop(oldest)
    }
    partial.timer.refresh()
    return undefined
  }

  /** Drops all frames that are not complete. */
  clear(): void {
    for (const key of this.#partials.keys()) this.#drop(key)
  }

  #begin(key: string, number: number, count: number): Partial {
    const timer = setTimeout(() => this.#drop(key), patienceMs).unref()
    const partial = { number, count, parts: [], bytes: 0, timer }
    this.#partials.set(key, partial)
    return partial
  }

  #drop(key: string): void {
    const partial = this.#partials.get(key)
    if (!partial) return
    clearTimeout(partial.timer)
    this.#bytes -= partial.bytes
    this.#partials.delete(key)
  }
}

const prefixBytes = 20

/** A message with its header, which may name a long topic. */
const maxFrameBytes = maxMessageBytes + 1024 * 1024

/** How long a frame may wait for its next piece. */
const patienceMs = 10_000

function bufferOf({ buffer, byteOffset, byteLength }: Uint8Array): Buffer {
  return Buffer.from(buffer, byteOffset, byteLength)
}
