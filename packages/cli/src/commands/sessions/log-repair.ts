import { flag, type Invocation } from '../../command-line/command.ts'
import { counted } from '../../text/counted.ts'
import { exitCodes, type ExitCode } from '../../command-line/exit-code.ts'
import { findSession } from '../../host/find-session.ts'
import { write, type Io } from '../../command-line/io.ts'
import { printJson } from '../../command-line/print-json.ts'
import { Progress } from '../../sessions/progress.ts'
import { verifyText } from '../../sessions/verify-text.ts'
import { openForWriting, withStore } from '../../sessions/with-store.ts'

/** Says what is wrong, lets the store mend the end of the log, and notes the rest as seen. */
export async function runLogRepair(invocation: Invocation, io: Io): Promise<ExitCode> {
  const [reference = 'last'] = invocation.positionals
  using progress = new Progress(io.stderr, 'Reading the log')
  return await withStore(io, async (store) => {
    const { id } = await findSession(store, reference, { cwd: io.cwd })
    const before = await store.verify(id)
    await using session = await openForWriting(store, id)
    // Opening may begin at a checkpoint; damage before it is only found by reading everything.
    await session.getTree()
    const noted = await session.repair()
    const after = await store.verify(id)
    const tornBytes = before.unfinishedBytes - after.unfinishedBytes
    progress.close()
    if (flag(invocation, 'json')) {
      await printJson(io, {
        session_id: id,
        noted,
        torn_bytes: tornBytes,
        lost_lines: after.lostLines,
        missing_blobs: after.missingBlobs,
      })
      return exitCodes.ok
    }
    if (!before.isIntact) await write(io.stdout, verifyText(id, before))
    await write(io.stderr, done({ noted, tornBytes, isIntact: before.isIntact, missing: after.missingBlobs.length }))
    return exitCodes.ok
  })
}

function done(work: { noted: number; tornBytes: number; isIntact: boolean; missing: number }): string {
  const { noted, tornBytes, isIntact, missing } = work
  const said = [
    ...(tornBytes > 0
      ? [
          `${tornBytes} bytes of a line that was never finished were taken off the end of the log; unless they were a whole line, they are kept beside it.`,
        ]
      : []),
    ...(noted > 0
      ? [
          `A record was appended that names ${counted(noted, 'place')}. Nothing was cut out or rewritten; the session goes on with what can be read.`,
        ]
      : []),
    ...(missing > 0 ? [`Missing: ${counted(missing, 'blob')}. Only a copy of the session has them.`] : []),
  ]
  if (said.length > 0) return `${said.join('\n')}\n`
  return isIntact ? 'Nothing is wrong with this log.\n' : 'All of this was noted before. Nothing was changed.\n'
}
