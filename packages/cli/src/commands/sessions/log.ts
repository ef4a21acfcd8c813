import { SessionError, type SessionStore, type VerifyReport } from '@tapetree/session'
import { flag, type Invocation } from '../../command-line/command.ts'
import { counted } from '../../text/amounts.ts'
import { exitCodes, type ExitCode } from '../../command-line/exit-code.ts'
import { usageFailure } from '../../command-line/failure.ts'
import { allSessions, findSession } from '../../host/find-session.ts'
import { write, printJson, type Io } from '../../command-line/io.ts'
import { Progress } from '../../sessions/progress.ts'
import { withStore, openForWriting } from '../../sessions/with-store.ts'
import { snakeNames } from '../../text/json-text.ts'
import { harmlessLine } from '../../text/harmless.ts'

export async function runLogVerify(invocation: Invocation, io: Io): Promise<ExitCode> {
  const [reference] = invocation.positionals
  if ((reference === undefined) === !flag(invocation, 'all')) {
    throw usageFailure('Name one session, or use --all for every session.', [
      'tapetree log verify last',
      'tapetree log verify --all',
    ])
  }
  const isJson = flag(invocation, 'json')
  using progress = new Progress(io.stderr, 'Reading logs')
  return await withStore(io, async (store) => {
    const ids = await idsOf(store, reference, io)
    const reports: ({ sessionId: string } & VerifyReport)[] = []
    for (const [index, sessionId] of ids.entries()) {
      io.signal.throwIfAborted()
      progress.words = `Reading log ${index + 1} of ${ids.length}`
      const report = await verified(store, sessionId)
      if (!report) continue
      reports.push({ sessionId, ...report })
      // For many logs, prints only the damaged ones.
      if (isJson || (report.isIntact && ids.length > 1)) continue
      progress.erase()
      await write(io.stdout, verifyText(sessionId, report))
    }
    progress.close()
    const damaged = reports.filter(({ isIntact }) => !isIntact)
    if (isJson) await printJson(io, { reports: snakeNames(reports) })
    else await write(io.stderr, conclusion(reports.length, damaged))
    return damaged.length > 0 ? exitCodes.damaged : exitCodes.ok
  })
}

async function idsOf(store: SessionStore, reference: string | undefined, io: Io): Promise<string[]> {
  if (reference !== undefined) return [(await findSession(store, reference, { cwd: io.cwd })).id]
  return (await allSessions(store, 'active')).map(({ id }) => id)
}

/** Undefined if the session was moved in the meantime. */
async function verified(store: SessionStore, sessionId: string): Promise<VerifyReport | undefined> {
  return store.verify(sessionId).catch((error: unknown) => {
    if (error instanceof SessionError && error.code === 'session-not-found') return undefined
    throw error
  })
}

function conclusion(count: number, damaged: readonly { sessionId: string }[]): string {
  const [first] = damaged
  if (!first) return `${counted(count, 'log is', 'logs are')} intact.\n`
  return `${damaged.length} of ${count} damaged. Everything else is readable. To acknowledge the damage: tapetree log repair ${first.sessionId}\n`
}

/** Reports the damage, lets the store repair the end of the log, and acknowledges the rest. */
export async function runLogRepair(invocation: Invocation, io: Io): Promise<ExitCode> {
  const [reference = 'last'] = invocation.positionals
  using progress = new Progress(io.stderr, 'Reading the log')
  return await withStore(io, async (store) => {
    const { id } = await findSession(store, reference, { cwd: io.cwd })
    const before = await store.verify(id)
    await using session = await openForWriting(store, id)
    // Opening may start at a checkpoint; only a full read finds damage before it.
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
          `Removed ${tornBytes} bytes of an unfinished line from the end of the log. Unless they were a whole line, they are kept beside the log.`,
        ]
      : []),
    ...(noted > 0
      ? [
          `Appended a record that names ${counted(noted, 'damaged place')}. Nothing was removed or rewritten; the session continues with what is readable.`,
        ]
      : []),
    ...(missing > 0 ? [`Missing: ${counted(missing, 'blob')}. Only a copy of the session has them.`] : []),
  ]
  if (said.length > 0) return `${said.join('\n')}\n`
  return isIntact ? 'This log is intact.\n' : 'This damage was already acknowledged. Nothing was changed.\n'
}

/** The result for one log, and a line for each fault. */
function verifyText(id: string, report: VerifyReport): string {
  if (report.isIntact) return `${id}  ok, ${report.lines} lines\n`
  const { damage, damageCount, missingBlobs, unfinishedBytes, lines, lostLines } = report
  const faults = [
    ...damage.map(
      ({ seq, at, size, count, reason }) =>
        `line ${seq} at byte ${at} (${size} bytes${count > 0 ? `, ${count} lost` : ''}): ${harmlessLine(reason)}`,
    ),
    ...(damageCount > damage.length ? [`${damageCount - damage.length} more places`] : []),
    ...(unfinishedBytes > 0 ? [`${unfinishedBytes} bytes after the last line: being written, or torn`] : []),
    ...missingBlobs.map((sha256) => `blob ${sha256} is missing`),
  ]
  const head = `${id}  DAMAGED, ${lines} lines read, ${lostLines} lost\n`
  return head + faults.map((fault) => `  ${fault}\n`).join('')
}
