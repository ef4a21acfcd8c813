/**
 * An immutable map with string keys: `set` and `delete` return a new map that shares all but a few small nodes
 * with this one. Iteration order is unspecified.
 */
export class PersistentMap<V> implements Iterable<[string, V]> {
  readonly #root: Piece<V>

  private constructor(root: Piece<V>) {
    this.#root = root
  }

  static empty<V>(): PersistentMap<V> {
    return new PersistentMap<V>(emptyBucket)
  }

  get(key: string): V | undefined {
    return find(this.#root, hashOf(key), key)?.value
  }

  has(key: string): boolean {
    return find(this.#root, hashOf(key), key) !== undefined
  }

  set(key: string, value: V): PersistentMap<V> {
    return new PersistentMap(insert(this.#root, 0, { hash: hashOf(key), key, value }))
  }

  delete(key: string): PersistentMap<V> {
    return this.has(key) ? new PersistentMap(remove(this.#root, 0, { hash: hashOf(key), key })) : this
  }

  *[Symbol.iterator](): Generator<[string, V], void, undefined> {
    for (const { key, value } of slotsIn(this.#root)) yield [key, value]
  }
}

interface Slot<V> {
  readonly hash: number
  readonly key: string
  readonly value: V
}

type Piece<V> =
  | { type: 'bucket'; slots: readonly Slot<V>[] }
  | { type: 'branch'; pieces: readonly (Piece<V> | undefined)[] }

const bits = 4
const width = 2 ** bits
const mask = width - 1
/** A larger bucket is split into a branch while hash bits remain to separate its keys. */
const maxBucket = 16
const hashBits = 32

const emptyBucket = { type: 'bucket', slots: [] } as const

function find<V>(root: Piece<V>, hash: number, key: string): Slot<V> | undefined {
  let piece: Piece<V> | undefined = root
  for (let shift = 0; piece?.type === 'branch'; shift += bits) piece = piece.pieces[(hash >>> shift) & mask]
  return piece?.slots.find((slot) => slot.hash === hash && slot.key === key)
}

function insert<V>(piece: Piece<V>, shift: number, added: Slot<V>): Piece<V> {
  if (piece.type === 'branch') {
    const index = (added.hash >>> shift) & mask
    const pieces = piece.pieces.slice()
    pieces[index] = insert(pieces[index] ?? emptyBucket, shift + bits, added)
    return { type: 'branch', pieces }
  }
  const at = piece.slots.findIndex((slot) => slot.key === added.key)
  if (at !== -1) return { type: 'bucket', slots: piece.slots.with(at, added) }
  if (piece.slots.length < maxBucket || shift >= hashBits) return { type: 'bucket', slots: [...piece.slots, added] }
  let branch: Piece<V> = { type: 'branch', pieces: Array.from({ length: width }, () => undefined) }
  for (const slot of [...piece.slots, added]) branch = insert(branch, shift, slot)
  return branch
}

function remove<V>(piece: Piece<V>, shift: number, gone: { hash: number; key: string }): Piece<V> {
  if (piece.type === 'bucket') return { type: 'bucket', slots: piece.slots.filter((slot) => slot.key !== gone.key) }
  const index = (gone.hash >>> shift) & mask
  const below = piece.pieces[index] ?? emptyBucket
  return { type: 'branch', pieces: piece.pieces.with(index, remove(below, shift + bits, gone)) }
}

function* slotsIn<V>(piece: Piece<V>): Generator<Slot<V>, void, undefined> {
  if (piece.type === 'bucket') yield* piece.slots
  else for (const inner of piece.pieces) if (inner) yield* slotsIn(inner)
}

/** FNV-1a with a random seed per process, so that no log can force hash collisions. */
function hashOf(key: string): number {
  let hash = start
  for (let index = 0; index < key.length; index++) hash = Math.imul(hash ^ key.charCodeAt(index), 0x01000193)
  return (hash ^ (hash >>> 15)) >>> 0
}

const start = (Math.random() * 2 ** 32) | 0
