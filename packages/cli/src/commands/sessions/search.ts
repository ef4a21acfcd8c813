import { ageOf } from '../../text/amounts.ts'
import { flag, numberOption, type Invocation } from '../../command-line/command.ts'
import { exitCodes, type ExitCode } from '../../command-line/exit-code.ts'
import { usageFailure } from '../../command-line/failure.ts'
import { harmlessLine } from '../../text/harmless.ts'
import { write, printJson, type Io } from '../../command-line/io.ts'
import { outputTable } from '../../text/output-table.ts'
import { Progress } from '../../sessions/progress.ts'
import { withStore } from '../../sessions/with-store.ts'
import { shortIds } from '../../text/describe-entry.ts'
import { snakeNames } from '../../text/json-text.ts'

const defaultLimit = 20
const placeNames = { active: 'session', archive: 'archived session', trash: 'session in the trash' }

export async function runSessionsSearch(invocation: Invocation, io: Io): Promise<ExitCode> {
  const text = invocation.positionals.join(' ')
  const limit = Math.floor(numberOption(invocation, 'limit') ?? defaultLimit)
  const [isArchive, isTrash] = [flag(invocation, 'archive'), flag(invocation, 'trash')]
  if (isArchive && isTrash) throw usageFailure('--archive and --trash cannot be used together.')
  const place = isArchive ? 'archive' : isTrash ? 'trash' : 'active'
  using progress = new Progress(io.stderr, 'Searching')
  const hits = await withStore(io, (store) => store.search({ text, limit, place }))
  progress.close()
  if (flag(invocation, 'json')) {
    await printJson(io, { hits: snakeNames(hits) })
    return exitCodes.ok
  }
  if (hits.length === 0) {
    await write(io.stderr, `No message in any ${placeNames[place]} contains ${JSON.stringify(harmlessLine(text))}.\n`)
    return exitCodes.ok
  }
  const ids = shortIds([...new Set(hits.map(({ sessionId }) => sessionId))])
  const now = Date.now()
  const rows = hits.map(({ sessionId, seq, timestamp, role, snippet }) => [
    ids.get(sessionId) ?? sessionId,
    String(seq),
    ageOf(timestamp, now),
    harmlessLine(role),
    harmlessLine(snippet),
  ])
  const columns = [
    { title: 'SESSION' },
    { title: 'ENTRY', align: 'right' as const },
    { title: 'AGE', align: 'right' as const },
    { title: 'WHO' },
    { title: 'TEXT', flexible: true },
  ]
  await write(io.stdout, outputTable(columns, rows, io.stdout.columns))
  return exitCodes.ok
}
