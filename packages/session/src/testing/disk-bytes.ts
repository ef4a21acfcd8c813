/**
 * Immutable content of a modeled file. Appending returns a new one that shares the earlier bytes, so keeping
 * every version of a log costs no copies.
 */
export class DiskBytes {
  static readonly empty = new DiskBytes({ bytes: new Uint8Array(0), used: 0 }, 0)

  readonly #store: Store
  readonly size: number

  private constructor(store: Store, size: number) {
    this.#store = store
    this.size = size
  }

  static of(bytes: Uint8Array): DiskBytes {
    return new DiskBytes({ bytes, used: bytes.length }, bytes.length)
  }

  /** Callers must not modify it. */
  get view(): Uint8Array {
    return this.#store.bytes.subarray(0, this.size)
  }

  append(bytes: Uint8Array): DiskBytes {
    const size = this.size + bytes.length
    const store = this.#storeFor(size)
    store.bytes.set(bytes, this.size)
    store.used = size
    return new DiskBytes(store, size)
  }

  cut(size: number): DiskBytes {
    return size === this.size ? this : new DiskBytes(this.#store, Math.min(size, this.size))
  }

  /** The same length, with zeros from one offset to another. */
  blank(from: number, to: number): DiskBytes {
    const bytes = this.view.slice()
    bytes.fill(0, from, to)
    return DiskBytes.of(bytes)
  }

  /** Bytes after the end that belong to another version are never overwritten. */
  #storeFor(size: number): Store {
    if (this.#store.used === this.size && this.#store.bytes.length >= size) return this.#store
    const bytes = new Uint8Array(Math.max(size * 2, 256))
    bytes.set(this.view)
    return { bytes, used: this.size }
  }
}

interface Store {
  bytes: Uint8Array
  /** How many bytes belong to some version. */
  used: number
}
