import type { SessionQuery, SessionStatus } from '@tapetree/session'
import { resolve } from 'node:path'
import { flag, textOption, type Invocation } from '../../command-line/command.ts'
import { exitCodes, type ExitCode } from '../../command-line/exit-code.ts'
import { usageFailure } from '../../command-line/failure.ts'
import { write, type Io } from '../../command-line/io.ts'
import { numberOption } from '../../command-line/number-option.ts'
import { printJson } from '../../command-line/print-json.ts'
import { Progress } from '../../sessions/progress.ts'
import { sessionTable } from '../../sessions/session-rows.ts'
import { withStore } from '../../sessions/with-store.ts'
import { snakeNames } from '../../text/snake-names.ts'

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
    const more = query.cwd === undefined ? '' : ' `tapetree sessions list --all` looks in all folders.'
    await write(io.stderr, `There are no such sessions.${more}\n`)
    return exitCodes.ok
  }
  await write(
    io.stdout,
    sessionTable(sessions, { now: Date.now(), hasFolders: query.cwd === undefined, width: io.stdout.columns }),
  )
  if (cursor !== undefined) await write(io.stderr, 'There are more: use --limit.\n')
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
