import { logFilesIn } from '@tapetree/session/stores/file'
import { statSync } from 'node:fs'
import { setImmediate } from 'node:timers/promises'
import { flag, textOption, type Invocation } from '../../command-line/command.ts'
import { costText } from '../../text/cost-text.ts'
import { exitCodes, type ExitCode } from '../../command-line/exit-code.ts'
import { usageFailure } from '../../command-line/failure.ts'
import { harmlessLine } from '../../text/harmless.ts'
import { write, type Io } from '../../command-line/io.ts'
import { outputTable, type Column } from '../../text/output-table.ts'
import { placesOf } from '../../host/places.ts'
import { printJson } from '../../command-line/print-json.ts'
import { Progress } from '../../sessions/progress.ts'
import { usageIn } from '../../sessions/usage-scan.ts'
import { dayOf, UsageSum, type UsageKey, type UsageRow } from '../../sessions/usage-sum.ts'
import { snakeNames } from '../../text/snake-names.ts'

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

/** Read before anything else has its turn. */
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
    // It is no session, or it was moved in the meantime.
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
  }
}

function sinceDay(value: string | undefined, now: Date): string | undefined {
  if (value === undefined) return undefined
  const [, days] = /^(\d{1,5})d$/.exec(value) ?? []
  if (days !== undefined) return dayOf(new Date(now.getFullYear(), now.getMonth(), now.getDate() - Number(days) + 1))
  if (/^\d{4}-\d{2}-\d{2}$/.test(value) && !Number.isNaN(Date.parse(value))) return value
  throw usageFailure(
    `--since is a day such as 2026-11-01 or a number of days such as 7d, not ${JSON.stringify(value)}.`,
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
