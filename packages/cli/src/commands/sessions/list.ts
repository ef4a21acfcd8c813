import type { SessionQuery, SessionStatus, SessionInfo } from '@tapetree/session'
import { resolve } from 'node:path'
import { flag, textOption, numberOption, type Invocation } from '../../command-line/command.ts'
import { exitCodes, type ExitCode } from '../../command-line/exit-code.ts'
import { usageFailure } from '../../command-line/failure.ts'
import { write, printJson, type Io } from '../../command-line/io.ts'
import { Progress } from '../../sessions/progress.ts'
import { withStore } from '../../sessions/with-store.ts'
import { snakeNames } from '../../text/json-text.ts'
import { ageOf, costText } from '../../text/amounts.ts'
import { harmlessLine } from '../../text/harmless.ts'
import { outputTable, type Column } from '../../text/output-table.ts'
import { sessionTitle, shortIds } from '../../text/describe-entry.ts'

const defaultLimit = 20

export async function runSessionsList(invocation: Invocation, io: Io): Promise<ExitCode> {
  const query = queryOf(invocation, io)
  using progress = new Progress(io.stderr, 'Reading sessions')
  const { sessions, cursor } = await withStore(io, (store) => store.list(query))
  progress.close()
  if (flag(invocation, 'json')) {
    await printJson(io, { sessions: snakeNames(sessions), has_more: cursor !== undefined })
    return exitCodes.ok
  }
  if (sessions.length === 0) {
    const more = query.cwd === undefined ? '' : ' `tapetree sessions list --all` searches all folders.'
    await write(io.stderr, `No sessions found.${more}\n`)
    return exitCodes.ok
  }
  await write(
    io.stdout,
    sessionTable(sessions, { now: Date.now(), hasFolders: query.cwd === undefined, width: io.stdout.columns }),
  )
  if (cursor !== undefined) await write(io.stderr, 'There are more sessions: use --limit.\n')
  return exitCodes.ok
}

function queryOf(invocation: Invocation, io: Io): SessionQuery {
  const isArchive = flag(invocation, 'archive')
  const isTrash = flag(invocation, 'trash')
  if (isArchive && isTrash) throw usageFailure('--archive and --trash cannot be used together.')
  const folder = textOption(invocation, 'folder')
  const status = textOption(invocation, 'status')
  const text = textOption(invocation, 'text')
  return {
    limit: Math.floor(numberOption(invocation, 'limit') ?? defaultLimit),
    ...(!flag(invocation, 'all') && { cwd: folder === undefined ? io.cwd : resolve(io.cwd, folder) }),
    ...(status !== undefined && { status: status as SessionStatus }),
    ...(text !== undefined && { text }),
    ...(isArchive && { place: 'archive' }),
    ...(isTrash && { place: 'trash' }),
  }
}

const columns: readonly Column[] = [
  { title: 'ID' },
  { title: 'AGE', align: 'right' },
  { title: 'STATUS' },
  { title: 'MESSAGES', align: 'right' },
  { title: 'COST', align: 'right' },
  { title: 'NAME', flexible: true },
]

const folderColumn: Column = { title: 'FOLDER' }

interface SessionTableOptions {
  now: number
  /** Shows the folder if there are sessions of several. */
  hasFolders: boolean
  width: number | undefined
}

function sessionTable(sessions: readonly SessionInfo[], options: SessionTableOptions): string {
  const ids = shortIds(sessions.map(({ id }) => id))
  const rows = sessions.map((session) => {
    const { id, modified, messageCount, cost, estimated } = session
    const about = estimated ? '~' : ''
    return [
      ids.get(id) ?? id,
      ageOf(modified, options.now),
      statusText(session),
      `${about}${messageCount}`,
      `${about}${costText(cost)}`,
      ...(options.hasFolders ? [harmlessLine(session.cwd ?? '')] : []),
      sessionTitle(session),
    ]
  })
  return outputTable(options.hasFolders ? columns.toSpliced(5, 0, folderColumn) : columns, rows, options.width)
}

function statusText({ status, stopped, damaged, queueLength }: SessionInfo): string {
  const waiting = queueLength > 0 ? `, ${queueLength} waiting` : ''
  return `${stopped?.type ?? (status === 'requires_action' ? 'asks' : status)}${waiting}${damaged ? ', damaged' : ''}`
}
