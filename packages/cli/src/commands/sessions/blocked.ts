import { KeptWriteError, KeptWrites, sandboxFolder } from '@tapetree/agent/sandbox'
import type { Arguments, WireBlockedWrites } from '@tapetree/client/protocol'
import type { Session } from '@tapetree/session'
import { flag, textOption, type Invocation } from '../../command-line/command.ts'
import { exitCodes, type ExitCode } from '../../command-line/exit-code.ts'
import { Failure, usageFailure } from '../../command-line/failure.ts'
import { printJson, write, type Io } from '../../command-line/io.ts'
import { changeSession } from '../../host/claim-or-attach.ts'
import { findSession } from '../../host/find-session.ts'
import { placesOf } from '../../host/places.ts'
import { withStore } from '../../sessions/with-store.ts'
import { counted } from '../../text/amounts.ts'
import { harmlessLine } from '../../text/harmless.ts'
import { keptFileLines } from '../../text/kept-file.ts'
import { snakeNames } from '../../text/json-text.ts'

type Wanted = Arguments<'blocked'>

/** Lists the control files that the sandbox took back, or applies or discards one of them. */
export async function runSessionsBlocked(invocation: Invocation, io: Io): Promise<ExitCode> {
  const [reference = 'last'] = invocation.positionals
  const [apply, discard] = [textOption(invocation, 'apply'), textOption(invocation, 'discard')]
  if (apply !== undefined && discard !== undefined) throw usageFailure('--apply and --discard exclude each other.')
  const wanted: Wanted = { ...(apply !== undefined && { apply }), ...(discard !== undefined && { discard }) }
  return withStore(io, async (store) => {
    const { id } = await findSession(store, reference, { cwd: io.cwd })
    const found: unknown = await changeSession<unknown>(store, id, {
      here: async (session) => snakeNames(await settleHere(session, wanted, io)),
      there: (handle) => handle.run('blocked', wanted),
    })
    if (flag(invocation, 'json')) await printJson(io, { session_id: id, ...(found as Record<string, unknown>) })
    else await write(io.stdout, outcomeText(found as WireBlockedWrites, wanted))
    return exitCodes.ok
  })
}

/** The session is not open anywhere else. */
async function settleHere(session: Session, { apply, discard }: Wanted, io: Io): Promise<object> {
  const { workingCopy: copy, header } = session
  const cwd = copy && copy.outcome === undefined ? copy.folder : (header?.cwd ?? io.cwd)
  const kept = new KeptWrites({ keep: sandboxFolder(placesOf(io).sandbox, cwd), cwd })
  try {
    if (apply !== undefined) await kept.apply(apply, (draft) => session.append(draft))
    if (discard !== undefined) await kept.discard(discard, (draft) => session.append(draft))
  } catch (error) {
    if (!(error instanceof KeptWriteError)) throw error
    const code = error.code === 'write-not-found' ? exitCodes.notFound : exitCodes.runFailed
    throw new Failure(code, error.message, { type: error.code, cause: error })
  }
  return { writes: await kept.list(), home: await kept.home() }
}

function outcomeText({ writes, home }: WireBlockedWrites, { apply, discard }: Wanted): string {
  const done = apply === undefined ? discard && `Discarded ${discard}.` : `Applied ${apply}.`
  const lines = writes.flatMap(({ id, path, files, file_count: count, is_occupied: isOccupied }) => [
    `${id}  ${harmlessLine(path)}${isOccupied ? '  (cannot be applied: something is at its path now)' : ''}`,
    ...files.flatMap(keptFileLines),
    ...(count > files.length ? [`… and ${counted(count - files.length, 'more file', 'more files')}`] : []),
    '',
  ])
  const homeLines =
    home && home.file_count > 0
      ? [
          `Commands wrote ${counted(home.file_count, 'file')} to the home folder. They are kept in ${harmlessLine(home.folder)}:`,
          ...home.files.map(({ path }) => `~/${harmlessLine(path)}`),
          ...(home.file_count > home.files.length ? [`… and ${home.file_count - home.files.length} more`] : []),
        ]
      : []
  const none = writes.length === 0 && done === undefined ? ['Nothing was blocked that could be applied.'] : []
  return [...(done === undefined ? [] : [harmlessLine(done)]), ...lines, ...none, ...homeLines, ''].join('\n')
}
