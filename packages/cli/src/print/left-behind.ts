import type { SessionHandle } from '@tapetree/client'
import { exitCodes } from '../command-line/exit-code.ts'
import { Failure } from '../command-line/failure.ts'
import { harmlessLine } from '../text/harmless.ts'

/** An interrupted run that no process is working on. */
export function leftBehindIn(handle: SessionHandle): string | undefined {
  const { waitingFor } = handle.state('run') ?? {}
  return waitingFor?.type === 'resume' ? waitingFor.runId : undefined
}

/** Resumes it. Rejects if a user has to decide. */
export async function takeUp(handle: SessionHandle): Promise<void> {
  try {
    await handle.run('resume', { by_person: false })
  } catch (error) {
    // Another process may have resumed it first.
    if (leftBehindIn(handle) !== undefined) throw needsPerson(handle.sessionId, error)
  }
  await untilTaken(handle)
}

/** The state arrives separately from the log, and may come later. */
function untilTaken(handle: SessionHandle): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  const look = (): void => {
    if (leftBehindIn(handle) === undefined || handle.status.type === 'closed') resolve()
  }
  const stop = handle.subscribe(look)
  look()
  return promise.finally(stop)
}

function needsPerson(sessionId: string, cause: unknown): Failure {
  return new Failure(exitCodes.runFailed, 'A run was interrupted in this session, and cannot be resumed here.', {
    type: 'run-interrupted',
    why: cause instanceof Error ? harmlessLine(cause.message) : String(cause),
    next: [`tapetree --session ${sessionId}`],
    cause,
  })
}
