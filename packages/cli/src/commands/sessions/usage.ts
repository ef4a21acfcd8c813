import { logFilesIn } from '@tapetree/session/stores/file'
import { statSync, closeSync, openSync, readSync } from 'node:fs'
import { setImmediate } from 'node:timers/promises'
import { flag, textOption, type Invocation } from '../../command-line/command.ts'
import { costText } from '../../text/amounts.ts'
import { exitCodes, type ExitCode } from '../../command-line/exit-code.ts'
import { usageFailure } from '../../command-line/failure.ts'
import { harmlessLine } from '../../text/harmless.ts'
import { write, printJson, type Io } from '../../command-line/io.ts'
import { outputTable, type Column } from '../../text/output-table.ts'
import { placesOf } from '../../host/places.ts'
import { Progress } from '../../sessions/progress.ts'
import { snakeNames } from '../../text/json-text.ts'
import type { DiskLine } from '@tapetree/session/format'

export async function runUsage(invocation: Invocation, io: Io): Promise<ExitCode> {
  const by = (textOption(invocation, 'by') ?? 'day') as UsageKey
  const since = sinceDay(textOption(invocation, 'since'), new Date())
  using progress = new Progress(io.stderr, 'Reading sessions')
  const sum = new UsageSum({ by, ...(since !== undefined && { since }) })
  const logs = await logFilesIn(placesOf(io).sessions)
  for (const [index, { path }] of logs.entries()) {
    addLog({ sum, since, path })
    if (index % logsAtOnce !== 0) continue
    progress.words = `Reading session ${index + 1} of ${logs.length}`
    await setImmediate(undefined, { signal: io.signal })
  }
  progress.close()
  const rows = sum.rows()
  if (flag(invocation, 'json'))
    await printJson(io, { by, since: since ?? null, rows: snakeNames(rows), total: snakeNames(sum.total) })
  else if (rows.length === 0) await write(io.stderr, 'No model has been used.\n')
  else await write(io.stdout, usageTable(by, rows, sum.total, io.stdout.columns))
  return exitCodes.ok
}

/** Reads it synchronously, without interruption. */
const logsAtOnce = 20

function addLog({ sum, since, path }: { sum: UsageSum; since: string | undefined; path: string }): void {
  let folder = '(none)'
  try {
    if (since !== undefined && dayOf(statSync(path).mtime) < since) return
    for (const line of usageIn(path)) {
      if (line.type === 'folder') folder = line.cwd
      else sum.add(line, folder)
    }
  } catch (error) {
    // Not a session, or moved in the meantime.
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
  }
}

function sinceDay(value: string | undefined, now: Date): string | undefined {
  if (value === undefined) return undefined
  const [, days] = /^(\d{1,5})d$/.exec(value) ?? []
  if (days !== undefined) return dayOf(new Date(now.getFullYear(), now.getMonth(), now.getDate() - Number(days) + 1))
  if (/^\d{4}-\d{2}-\d{2}$/.test(value) && !Number.isNaN(Date.parse(value))) return value
  throw usageFailure(
    `--since must be a day such as 2026-11-01 or a number of days such as 7d, not ${JSON.stringify(value)}.`,
  )
}

function usageTable(by: UsageKey, rows: readonly UsageRow[], total: UsageRow, width: number | undefined): string {
  const columns: Column[] = [
    { title: by.toUpperCase(), flexible: true },
    ...['CALLS', 'INPUT', 'OUTPUT', 'CACHE READ', 'CACHE WRITE', 'COST'].map((title): Column => ({
      title,
      align: 'right',
    })),
  ]
  const cells = [...rows, total].map((row) => [
    harmlessLine(row.key),
    ...[row.calls, row.inputTokens, row.outputTokens, row.cacheReadTokens, row.cacheWriteTokens].map(String),
    costText(row.cost),
  ])
  return outputTable(columns, cells, width)
}

type UsageKey = 'day' | 'model' | 'folder'

interface UsageRow {
  key: string
  calls: number
  inputTokens: number
  outputTokens: number
  cacheReadTokens: number
  cacheWriteTokens: number
  /** In US dollars. */
  cost: number
}

/** Sums up by day, model or folder. Counts what a fork copied once. */
class UsageSum {
  readonly total = emptyRow('total')
  readonly #rows = new Map<string, UsageRow>()
  readonly #seen = new Set<string>()
  readonly #by: UsageKey
  readonly #since: string

  /** `since` is the first day that counts. */
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

  /** Days in order, anything else by cost. */
  rows(): UsageRow[] {
    const rows = [...this.#rows.values()]
    if (this.#by === 'day') return rows.sort((left, right) => (left.key < right.key ? -1 : 1))
    return rows.sort((left, right) => right.cost - left.cost || right.inputTokens - left.inputTokens)
  }
}

/** In local time. */
function dayOf(time: Date): string {
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

/** A model call in a log, as far as usage needs it. */
type UsageLine =
  | { type: 'folder'; cwd: string }
  | {
      type: 'call'
      /** The id of the line: the same in a fork. */
      id: string
      timestamp: string
      model: string
      usage: CallUsage
    }

/** Named as in the log. */
interface CallUsage {
  input_tokens?: number
  output_tokens?: number
  cache_read_tokens?: number
  cache_write_tokens?: number
  cost?: number
}

/**
 * The folder and the model calls of a log. Parses only lines with token counts and reads synchronously: a thousand logs take less than a
 * second.
 */
function* usageIn(path: string): Generator<UsageLine> {
  const file = openSync(path, 'r')
  try {
    let kept = 0
    let isFirst = true
    let buffer = shared
    for (
      let count = readSync(file, buffer, { offset: kept });
      count > 0;
      count = readSync(file, buffer, { offset: kept })
    ) {
      const bytes = buffer.subarray(0, kept + count)
      const end = bytes.lastIndexOf(newline) + 1
      if (end > 0 && isFirst) yield* folderIn(bytes)
      if (end > 0) yield* callsIn(bytes.subarray(0, end))
      isFirst &&= end === 0
      kept = bytes.length - end
      // A line longer than the buffer needs a larger one.
      const next = kept < buffer.length ? buffer : Buffer.alloc(buffer.length * 2)
      bytes.copy(next, 0, end)
      buffer = next
    }
  } finally {
    closeSync(file)
  }
}

/** Shared by all reads: reading is synchronous, so two logs are never read at the same time. */
const shared = Buffer.alloc(1024 * 1024)
const newline = 0x0a
const mark = Buffer.from('"usage":')

/** In the header, which is the first line. */
function folderIn(bytes: Buffer): UsageLine[] {
  const cwd = parsed(bytes.toString('utf8', 0, bytes.indexOf(newline)))?.['cwd']
  return typeof cwd === 'string' ? [{ type: 'folder', cwd }] : []
}

function* callsIn(bytes: Buffer): Generator<UsageLine> {
  for (let at = bytes.indexOf(mark); at !== -1;) {
    const end = bytes.indexOf(newline, at)
    const line = parsed(bytes.toString('utf8', bytes.lastIndexOf(newline, at) + 1, end))
    const call = line && callOf(line)
    if (call) yield call
    at = bytes.indexOf(mark, end)
  }
}

function callOf(line: DiskLine): UsageLine | undefined {
  const { message, usage } = line as { message?: MessageCounts; usage?: UsageCounts }
  const said =
    line.type === 'usage' ? { ...usage, usage: usage?.tokens } : line.type === 'message' ? message : undefined
  if (!said?.usage) return undefined
  const model = `${said.provider ?? '?'}/${said.model ?? '?'}`
  return { type: 'call', id: line.id, timestamp: line.timestamp ?? '', model, usage: said.usage }
}

interface MessageCounts {
  provider?: string
  model?: string
  usage?: CallUsage
}

interface UsageCounts extends Omit<MessageCounts, 'usage'> {
  tokens?: CallUsage
}

function parsed(text: string): DiskLine | undefined {
  try {
    return JSON.parse(text) as DiskLine
  } catch {
    return undefined // a damaged line counts nothing; `log verify` reports it
  }
}
