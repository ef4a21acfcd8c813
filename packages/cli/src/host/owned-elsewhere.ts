import { exitCodes } from '../command-line/exit-code.ts'
import { Failure } from '../command-line/failure.ts'

export function ownedElsewhere(sessionId: string, why: string): Failure {
  return new Failure(exitCodes.ownedElsewhere, `Session ${sessionId} is open in another process.`, {
    type: 'session-owned',
    why,
    next: [`tapetree attach ${sessionId}`],
  })
}
