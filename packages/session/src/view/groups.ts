import { PersistentList } from '../util/persistent-list.ts'
import type { AssistantItem, AssistantPart, ToolCallPart, TranscriptItem } from './transcript-items.ts'

/**
 * One row of a transcript. The parts of an answer are rows of their own, because an answer may be very long. Read-only
 * calls that follow one another, also across answers, are one row.
 */
export type TranscriptRow =
  | { readonly type: 'item'; readonly key: string; readonly item: Exclude<TranscriptItem, AssistantItem> }
  | { readonly type: 'part'; readonly key: string; readonly item: AssistantItem; readonly part: AssistantPart }
  | { readonly type: 'reads'; readonly key: string; readonly calls: readonly ToolCallPart[] }
  /** The error that ended an answer. */
  | { readonly type: 'error'; readonly key: string; readonly item: AssistantItem }

export interface GroupedItems {
  readonly rows: readonly TranscriptRow[]
  /** For the next call of `groupItems`. */
  readonly items: ItemList
  /** For each item, the row with its first part; for an item without a row, the row that follows. */
  readonly starts: readonly number[]
}

export type ItemList = readonly TranscriptItem[] | PersistentList<TranscriptItem>

/**
 * Groups the items of a path. With the result for the previous items, it only looks at what changed after them; rows
 * before that keep their identity. For the items of a transcript, finding the change does not depend on their number.
 */
export function groupItems(given: Iterable<TranscriptItem>, before: GroupedItems = nothing): GroupedItems {
  const items: ItemList = given instanceof PersistentList || Array.isArray(given) ? (given as ItemList) : [...given]
  const same = commonStart(items, before.items)
  if (same === items.length && same === before.items.length) return before
  const first = restartAt(same, before)
  const rows = before.rows.slice(0, first === 0 ? 0 : before.starts[first])
  const starts = before.starts.slice(0, first)
  for (const item of items.slice(first)) {
    starts.push(rows.length)
    for (const row of rowsOf(item)) addRow(rows, row)
  }
  return { rows, items, starts }
}

export type ReadCall = Pick<ToolCallPart, 'name' | 'input'>

/** Whether calls of this tool only read, so that several of them are one row. */
export function isGroupedTool(name: string): boolean {
  return Object.hasOwn(readers, name)
}

/** `read 5 files, searched 2 times`: what a group of read-only calls did. */
export function readsText(calls: readonly ReadCall[]): string {
  const byTool = Map.groupBy(calls, ({ name }) => name)
  return [...byTool].flatMap(([name, some]) => readers[name]?.(some) ?? []).join(', ')
}

const nothing: GroupedItems = { rows: [], items: [], starts: [] }

function commonStart(items: ItemList, before: ItemList): number {
  if (items instanceof PersistentList && before instanceof PersistentList) return items.commonStart(before)
  let count = 0
  while (count < items.length && count < before.length && items.at(count) === before.at(count)) count++
  return count
}

/**
 * The first item whose rows must be made again. A group may have begun in an earlier item: then the items of that group
 * are grouped again, too.
 */
function restartAt(same: number, before: GroupedItems): number {
  let first = same
  while (first > 0 && readsIn(before.rows[(before.starts[first] ?? before.rows.length) - 1]).length > 0) first--
  return first
}

function rowsOf(item: TranscriptItem): TranscriptRow[] {
  if (item.type !== 'assistant') return [{ type: 'item', key: item.id, item }]
  const rows: TranscriptRow[] = item.parts
    .map((part, index): TranscriptRow => ({ type: 'part', key: `${item.id}/${index}`, item, part }))
    .filter((row) => row.type === 'part' && !isEmpty(row.part))
  return item.error ? [...rows, { type: 'error', key: `${item.id}/error`, item }] : rows
}

function isEmpty(part: AssistantPart): boolean {
  return (part.type === 'text' || part.type === 'reasoning') && part.text.trim() === ''
}

function addRow(rows: TranscriptRow[], row: TranscriptRow): void {
  const last = rows.at(-1)
  const [above, added] = [readsIn(last), readsIn(row)]
  if (!last || above.length === 0 || added.length === 0) rows.push(row)
  else rows[rows.length - 1] = { type: 'reads', key: last.key, calls: [...above, ...added] }
}

function readsIn(row: TranscriptRow | undefined): readonly ToolCallPart[] {
  if (row?.type === 'reads') return row.calls
  return row?.type === 'part' && row.part.type === 'tool_call' && isGroupedTool(row.part.name) ? [row.part] : []
}

/** The tools that only read, and what several calls of one did. */
const readers: Readonly<Record<string, (calls: readonly ReadCall[]) => string>> = {
  read: (calls) => `read ${countOf(differentPaths(calls), 'file')}`,
  grep: (calls) => `searched ${countOf(calls.length, 'time')}`,
  find: (calls) => `looked for files ${countOf(calls.length, 'time')}`,
  ls: (calls) => `listed ${countOf(differentPaths(calls), 'folder')}`,
}

function differentPaths(calls: readonly ReadCall[]): number {
  return new Set(calls.map(({ input }) => input['path'])).size
}

function countOf(count: number, one: string): string {
  return `${count} ${count === 1 ? one : `${one}s`}`
}
