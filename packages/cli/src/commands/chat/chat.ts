import type { Invocation } from '../../command-line/command.ts'
import type { ExitCode } from '../../command-line/exit-code.ts'
import { usageFailure } from '../../command-line/failure.ts'
import { isInteractive, type Io } from '../../command-line/io.ts'
import { chatAtOnce } from './chat-at-once.ts'
import { readStart } from './start-mark.ts'

/** The chat. Where nothing has to be asked, its screen stands before all that is behind it is loaded. */
export async function chat(invocation: Invocation, io: Io): Promise<ExitCode> {
  if (!isInteractive(io)) {
    throw usageFailure('The chat needs a terminal to read from and to draw on.', ['tapetree run "<prompt>"'])
  }
  const start = needsAnswers(invocation) ? undefined : await readStart(io)
  if (start) return chatAtOnce({ invocation, io, terminal: start.terminal })
  return (await import('./here.ts')).chatHere(invocation, io)
}

/** A session that is named may be one of another folder, and a model that is named has to be found. */
function needsAnswers({ values }: Invocation): boolean {
  const isNamed = ['fork', 'session', 'model'].some((name) => values[name] !== undefined)
  return isNamed || typeof values['resume'] === 'string'
}
