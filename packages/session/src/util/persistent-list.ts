/**
 * An immutable list: `push` and `with` return a new list that shares all but a few chunks of 32 items with this
 * one. Their cost hardly depends on the length.
 */
export class PersistentList<T> implements Iterable<T> {
  readonly length: number
  readonly #root: Piece<T>
  /** Number of index bits below the root. */
  readonly #shift: number

  private constructor(parts: { length: number; root: Piece<T>; shift: number }) {
    this.length = parts.length
    this.#root = parts.root
    this.#shift = parts.shift
  }

  static empty<T>(): PersistentList<T> {
    return new PersistentList<T>({ length: 0, root: emptyLeaf, shift: 0 })
  }

  /** Like `Array.at`: a negative index counts from the end. */
  at(index: number): T | undefined {
    const from = index < 0 ? this.length + index : index
    if (from < 0 || from >= this.length) return undefined
    let piece: Piece<T> | undefined = this.#root
    for (let shift = this.#shift; piece?.type === 'branch'; shift -= bits) piece = piece.pieces[(from >>> shift) & mask]
    return piece?.items[from & mask]
  }

  push(item: T): PersistentList<T> {
    const isFull = this.length === width * 2 ** this.#shift
    const root: Piece<T> = isFull ? { type: 'branch', pieces: [this.#root] } : this.#root
    const shift = isFull ? this.#shift + bits : this.#shift
    return new PersistentList({
      length: this.length + 1,
      shift,
      root: place(root, { shift, index: this.length, item }),
    })
  }

  /** Like `Array.with`. */
  with(index: number, item: T): PersistentList<T> {
    if (!(index >= 0 && index < this.length)) throw new RangeError(`No item ${index} in a list of ${this.length}.`)
    const shift = this.#shift
    return new PersistentList({ length: this.length, shift, root: place(this.#root, { shift, index, item }) })
  }

  /** Like `Array.slice`, for the part that a screen shows. */
  slice(start = 0, end: number = this.length): T[] {
    const from = Math.max(0, start < 0 ? this.length + start : start)
    const to = Math.min(this.length, end < 0 ? this.length + end : end)
    const items: T[] = []
    for (let index = from; index < to; index++) items.push(this.at(index) as T)
    return items
  }

  /** How many items at the start are the same in both lists. Skips the chunks that they share. */
  commonStart(other: PersistentList<T>): number {
    const shift = Math.min(this.#shift, other.#shift)
    return equalStart(firstPiece(this.#root, this.#shift - shift), firstPiece(other.#root, other.#shift - shift))
  }

  *[Symbol.iterator](): Generator<T, void, undefined> {
    yield* itemsIn(this.#root)
  }
}

const bits = 5
const width = 2 ** bits
const mask = width - 1

type Piece<T> = { type: 'leaf'; items: readonly T[] } | { type: 'branch'; pieces: readonly Piece<T>[] }

const emptyLeaf = { type: 'leaf', items: [] } as const

/** Copies the chunk with the item, and the chunks on the path to it. */
function place<T>(piece: Piece<T>, at: { shift: number; index: number; item: T }): Piece<T> {
  if (piece.type === 'leaf') {
    const items = piece.items.slice()
    items[at.index & mask] = at.item
    return { type: 'leaf', items }
  }
  const pieces = piece.pieces.slice()
  const slot = (at.index >>> at.shift) & mask
  const shift = at.shift - bits
  const below = pieces[slot] ?? (shift === 0 ? emptyLeaf : { type: 'branch', pieces: [] })
  pieces[slot] = place(below, { ...at, shift })
  return { type: 'branch', pieces }
}

/** The first piece that many index bits below. */
function firstPiece<T>(piece: Piece<T>, depth: number): Piece<T> {
  const first = piece.type === 'branch' && depth > 0 ? piece.pieces[0] : undefined
  return first ? firstPiece(first, depth - bits) : piece
}

/** Of two pieces with the same number of levels. */
function equalStart<T>(left: Piece<T>, right: Piece<T>): number {
  if (left === right) return countIn(left)
  if (left.type === 'leaf' || right.type === 'leaf') {
    const [some, others] = [left.type === 'leaf' ? left.items : [], right.type === 'leaf' ? right.items : []]
    let count = 0
    while (count < some.length && count < others.length && some[count] === others[count]) count++
    return count
  }
  let count = 0
  for (const [index, piece] of left.pieces.entries()) {
    const other = right.pieces[index]
    const same = other ? equalStart(piece, other) : 0
    count += same
    if (piece !== other && same < countIn(piece)) break
  }
  return count
}

function countIn<T>(piece: Piece<T>): number {
  if (piece.type === 'leaf') return piece.items.length
  const last = piece.pieces.at(-1)
  // All but the last are full, like the first.
  const [first] = piece.pieces
  if (!first || !last || first === last) return last ? countIn(last) : 0
  return countIn(first) * (piece.pieces.length - 1) + countIn(last)
}

function* itemsIn<T>(piece: Piece<T>): Generator<T, void, undefined> {
  if (piece.type === 'leaf') yield* piece.items
  else for (const inner of piece.pieces) yield* itemsIn(inner)
}
