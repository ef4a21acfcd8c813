import { SessionError, type SessionStore, type VerifyReport } from '@tapetree/session'
import { flag, type Invocation } from '../../command-line/command.ts'
import { counted } from '../../text/counted.ts'
import { exitCodes, type ExitCode } from '../../command-line/exit-code.ts'
import { usageFailure } from '../../command-line/failure.ts'
import { allSessions } from '../../host/all-sessions.ts'
import { findSession } from '../../host/find-session.ts'
import { write, type Io } from '../../command-line/io.ts'
import { printJson } from '../../command-line/print-json.ts'
import { Progress } from '../../sessions/progress.ts'
import { verifyText } from '../../sessions/verify-text.ts'
import { withStore } from '../../sessions/with-store.ts'
import { snakeNames } from '../../text/snake-names.ts'

export async function runLogVerify(invocation: Invocation, io: Io): Promise<ExitCode> {
  const [reference] = invocation.positionals
  if ((reference === undefined) === !flag(invocation, 'all')) {
    throw usageFailure('Name one session, or use --all for every one.', [
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
      // With many, only what is wrong is worth a line.
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

/** Undefined where it was moved away since. */
async function verified(store: SessionStore, sessionId: string): Promise<VerifyReport | undefined> {
  return store.verify(sessionId).catch((error: unknown) => {
    if (error instanceof SessionError && error.code === 'session-not-found') return undefined
    throw error
  })
}

function conclusion(count: number, damaged: readonly { sessionId: string }[]): string {
  const [first] = damaged
  if (!first) return `${counted(count, 'log is', 'logs are')} intact.\n`
  return `${damaged.length} of ${count} damaged. Everything else can be read. To note it: tapetree log repair ${first.sessionId}\n`
}
