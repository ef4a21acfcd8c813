import type { SessionHandle } from '@tapetree/client'
import { exitCodes } from '../command-line/exit-code.ts'
import { Failure } from '../command-line/failure.ts'
import { harmlessLine } from '../text/harmless.ts'

/** The run that a process left in the middle, and that nobody works on. */
export function leftBehindIn(handle: SessionHandle): string | undefined {
  const { waitingFor } = handle.state('run') ?? {}
  return waitingFor?.type === 'resume' ? waitingFor.runId : undefined
}

/** Has it gone on with. Rejects where a person has to decide about it. */
export async function takeUp(handle: SessionHandle): Promise<void> {
  try {
    await handle.run('resume', { by_person: false })
  } catch (error) {
    // Somebody else may have been first.
    if (leftBehindIn(handle) !== undefined) throw needsPerson(handle.sessionId, error)
  }
  await untilTaken(handle)
}

/** The state is told beside the log, and may come after it. */
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
