import type { CallUsage, UsageLine } from './usage-scan.ts'

export type UsageKey = 'day' | 'model' | 'folder'

export interface UsageRow {
  key: string
  calls: number
  inputTokens: number
  outputTokens: number
  cacheReadTokens: number
  cacheWriteTokens: number
  /** In US dollars. */
  cost: number
}

/** Adds up by day, model or folder. What a fork copied counts once. */
export class UsageSum {
  readonly total = emptyRow('total')
  readonly #rows = new Map<string, UsageRow>()
  readonly #seen = new Set<string>()
  readonly #by: UsageKey
  readonly #since: string

  /** `since` is a day, the first that counts. */
  constructor({ by, since = '' }: { by: UsageKey; since?: string }) {
    this.#by = by
    this.#since = since
  }

  add(used: Extract<UsageLine, { type: 'call' }>, folder: string): void {
    const day = dayOf(new Date(used.timestamp))
    if (day < this.#since || this.#seen.has(used.id)) return
    this.#seen.add(used.id)
    const key = { day, model: used.model, folder }[this.#by]
    const row = this.#rows.get(key) ?? emptyRow(key)
    this.#rows.set(key, row)
    for (const each of [row, this.total]) addTo(each, used.usage)
  }

  /** Days in their order, anything else by what it cost. */
  rows(): UsageRow[] {
    const rows = [...this.#rows.values()]
    if (this.#by === 'day') return rows.sort((left, right) => (left.key < right.key ? -1 : 1))
    return rows.sort((left, right) => right.cost - left.cost || right.inputTokens - left.inputTokens)
  }
}

/** As the clock on the wall has it. */
export function dayOf(time: Date): string {
  if (Number.isNaN(time.getTime())) return '(unknown)'
  const two = (number: number): string => String(number).padStart(2, '0')
  return `${time.getFullYear()}-${two(time.getMonth() + 1)}-${two(time.getDate())}`
}

function emptyRow(key: string): UsageRow {
  return { key, calls: 0, inputTokens: 0, outputTokens: 0, cacheReadTokens: 0, cacheWriteTokens: 0, cost: 0 }
}

function addTo(row: UsageRow, usage: CallUsage): void {
  row.calls++
  for (const [name, stored] of counts) {
    const count = usage[stored]
    if (typeof count === 'number' && Number.isFinite(count)) row[name] += count
  }
}

const counts = [
  ['inputTokens', 'input_tokens'],
  ['outputTokens', 'output_tokens'],
  ['cacheReadTokens', 'cache_read_tokens'],
  ['cacheWriteTokens', 'cache_write_tokens'],
  ['cost', 'cost'],
] as const
