import { stylesFor } from './colour.ts'
import { exitCodes, type ExitCode } from './exit-code.ts'
import { Failure, failureJson } from './failure.ts'
import { harmless } from '../text/harmless.ts'
import { write, type Io } from './io.ts'
import { OutputError } from './output-error.ts'

/** Says on stderr what went wrong, why, and what to do next. The result is the exit code. */
export async function reportFailure(
  error: unknown,
  io: Pick<Io, 'stderr' | 'env' | 'signal'>,
  { asJson }: { asJson: boolean },
): Promise<ExitCode> {
  // `tapetree … | head` has done its part when `head` has.
  if (error instanceof OutputError && error.isUnread) return exitCodes.ok
  const failure = error instanceof Failure ? error : (await import('./failure-of.ts')).failureOf(error)
  const isOwnWish = failure.code === exitCodes.interrupted && !asJson
  if (!isOwnWish) await write(io.stderr, asJson ? `${failureJson(failure)}\n` : textOf(failure, io)).catch(() => {})
  return failure.code
}

function textOf({ message, why, next }: Failure, { stderr, env }: Pick<Io, 'stderr' | 'env'>): string {
  const { red, dim, cyan } = stylesFor(stderr, env)
  const lines = [`${red('tapetree:')} ${harmless(message)}`]
  if (why !== undefined) lines.push(harmless(why))
  if (next.length > 0) lines.push(dim('Try:'), ...next.map((command) => `  ${cyan(harmless(command))}`))
  return `${lines.join('\n')}\n`
}
