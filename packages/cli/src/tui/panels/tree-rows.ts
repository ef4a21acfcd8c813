import { describeEntry } from '../../text/describe-entry.ts'
import { indexTree, type EntryRow, type TreeData, type TreeRow } from './tree-index.ts'

export type TreeFilter = 'all' | 'yours' | 'labeled'

const searchedLength = 2000

/** The visible rows of the tree: not folded, and matching the filter. Rows are numbers into the index, which is built once. */
export class TreeRows {
  #rows: TreeRow[] = []
  #shown: number[] = []
  /** Ids of the starts of folded side branches. */
  readonly #folded = new Set<string>()
  #texts: (string | undefined)[] = []
  #filter: TreeFilter = 'all'
  #search: readonly string[] = []

  get count(): number {
    return this.#shown.length
  }

  get filter(): TreeFilter {
    return this.#filter
  }

  at(position: number): TreeRow | undefined {
    return this.#rows[this.#shown[position] ?? -1]
  }

  /** The row of an entry or, if it is hidden, of the nearest visible one before it. */
  positionOf(id: string | undefined): number {
    const wanted = this.#rows.findIndex((row) => row.id === id)
    if (wanted === -1) return -1
    return this.#shown.findLastIndex((index) => index <= wanted)
  }

  get leafId(): string | undefined {
    return this.#rows.find((row) => row.type === 'entry' && row.isLeaf)?.id
  }

  replace(data: TreeData): void {
    this.#rows = indexTree(data)
    this.#texts = []
    this.#choose()
  }

  filterBy(filter: TreeFilter): void {
    this.#filter = filter
    this.#choose()
  }

  searchFor(text: string): void {
    this.#search = text.toLowerCase().split(/\s+/).filter(Boolean)
    this.#choose()
  }

  /** The row begins an unfolded side branch of more than one row. */
  canFold(row: TreeRow): boolean {
    return row.type === 'entry' && row.isBranchStart && !this.#folded.has(row.id) && this.#sizeOf(row) > 1
  }

  /** How many rows a folded branch hides; 0 if the row is not one. */
  hiddenBy(row: TreeRow): number {
    return row.type === 'entry' && this.#folded.has(row.id) ? this.#sizeOf(row) - 1 : 0
  }

  fold(id: string, isFolded: boolean): void {
    if (isFolded) this.#folded.add(id)
    else this.#folded.delete(id)
    this.#choose()
  }

  /** Folds all side branches, or none. */
  foldAll(): void {
    const starts = this.#rows.filter((row) => row.type === 'entry' && row.isBranchStart)
    if (this.#folded.size > 0) this.#folded.clear()
    else for (const { id } of starts) this.#folded.add(id)
    this.#choose()
  }

  /** The start of the side branch that contains a row. */
  branchOf(row: TreeRow): TreeRow | undefined {
    const at = this.#rows.indexOf(row)
    return this.#rows.findLast(
      (each, index) =>
        index < at && each.type === 'entry' && each.isBranchStart && each.depth <= row.depth && each.end > at,
    )
  }

  #sizeOf(row: EntryRow): number {
    return row.end - this.#rows.indexOf(row)
  }

  /** A search includes folded branches. */
  #choose(): void {
    this.#shown = []
    const isSearching = this.#search.length > 0
    for (let index = 0; index < this.#rows.length; index++) {
      const row = this.#rows[index] as TreeRow
      if (this.#isChosen(row, index)) this.#shown.push(index)
      if (!isSearching && row.type === 'entry' && this.#folded.has(row.id)) index = row.end - 1
    }
  }

  #isChosen(row: TreeRow, index: number): boolean {
    if (!passes(row, this.#filter)) return false
    if (this.#search.length === 0) return true
    const text = (this.#texts[index] ??= searchText(row))
    return this.#search.every((word) => text.includes(word))
  }
}

function passes(row: TreeRow, filter: TreeFilter): boolean {
  switch (filter) {
    case 'all':
      return true
    case 'yours':
      return row.type === 'entry' && row.entry.type === 'message' && row.entry.message.role === 'user'
    case 'labeled':
      return row.type === 'entry' && row.label !== undefined
    default:
      filter satisfies never
      return true
  }
}

function searchText(row: TreeRow): string {
  if (row.type === 'subagent') return row.description.toLowerCase()
  const { kind, words } = describeEntry(row.entry)
  return `${kind}: ${words.slice(0, searchedLength)} ${row.label ?? ''}`.toLowerCase()
}
