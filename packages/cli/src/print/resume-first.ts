import type { PermissionRequest } from '@tapetree/session'
import { exitCodes } from '../command-line/exit-code.ts'
import { Failure } from '../command-line/failure.ts'
import { harmlessLine } from '../text/harmless.ts'
import { leftBehindIn } from './left-behind.ts'
import type { PrintSession } from './print-session.ts'

interface ResumeOptions {
  /** Somebody who could answer what the run waits for. */
  isSomebodyThere: boolean
  /** Whether what is said next can wait its turn behind the run. Otherwise its end is waited for. */
  goesOn: boolean
  say: (sentence: string) => Promise<void>
}

/** Goes on with a run that was interrupted, before anything else is said: a prompt would close it, with calls that nobody has waited for. */
export async function resumeFirst(session: PrintSession, options: ResumeOptions): Promise<void> {
  const { isSomebodyThere, goesOn, say } = options
  const { handle } = session
  const runId = leftBehindIn(handle)
  if (runId === undefined) return
  const [open] = handle.transcript.permissions
  if (open && !isSomebodyThere) throw waitsForAnswer(handle.sessionId, open)
  await say('A run was interrupted in this session. It is resumed first, and the prompt follows it.')
  const { ended } = await session.resume(runId)
  const told = ended.then(({ failure }) => say(`The interrupted run has ended. ${failure?.message ?? ''}`.trim()))
  // Whoever stops it knows that it has not ended.
  if (goesOn) told.catch(() => undefined)
  else await told
}

function waitsForAnswer(sessionId: string, { title }: PermissionRequest): Failure {
  const message = `A run was interrupted in this session while it waited for an answer: ${harmlessLine(title)}`
  return new Failure(exitCodes.permissionNeeded, message, {
    type: 'run-interrupted',
    why: 'Nobody is here to give it, and a prompt would leave that run unfinished.',
    next: [`tapetree --session ${sessionId}`],
  })
}
