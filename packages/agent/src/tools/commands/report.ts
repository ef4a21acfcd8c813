import type { ToolContext, ToolOutput } from '../tool.ts'
import type { Command, CommandOutcome } from './command.ts'
import type { CommandExit } from './exit-file.ts'
import { countBytes, showOutput } from './shown-output.ts'

export interface ReportOptions {
  /** The offset to start at. */
  from?: number
  /** What stopped it, if it was stopped. */
  stoppedBy?: string
}

/** Reports an ended command: its output, and how it ended unless it succeeded. */
export async function reportOutcome(
  command: Command,
  outcome: CommandOutcome | { type: 'lost'; reason: string },
  context: Pick<ToolContext, 'putBlob'>,
  { from = 0, stoppedBy = 'the user' }: ReportOptions = {},
): Promise<ToolOutput> {
  const output = await command.output({ from })
  const shown = await showOutput(output, from, context)
  const { words, isError } = outcome.type === 'ended' ? describeExit(outcome.exit, stoppedBy) : describeLoss(outcome)
  return { content: join(shown, words), ...(isError && { isError }) }
}

/** Reports a running command: its output so far, and the available actions. */
export async function reportRunning(
  command: Command,
  words: (nextOffset: number) => string,
  context: Pick<ToolContext, 'putBlob'>,
  { from = 0 }: ReportOptions = {},
): Promise<ToolOutput> {
  const output = await command.output({ from })
  const shown = await showOutput(output, from, context)
  return { content: join(shown, [words(output.end)]) }
}

function describeExit(exit: CommandExit, stoppedBy: string): { words: string[]; isError: boolean } {
  const ended = describeCause(exit, stoppedBy)
  const { leftBehind, survivors, error } = exit
  return {
    isError: exit.cause !== 'exited' || exit.code !== 0,
    words: [
      ...ended,
      ...(leftBehind.length > 0
        ? [
            `Processes it had left running were ended with it: ${leftBehind.join(', ')}. To keep one, run it with background.`,
          ]
        : []),
      ...(survivors.length > 0 ? [`These could not be ended and are still running: ${survivors.join(', ')}.`] : []),
      ...(error !== undefined && exit.cause !== 'not-started' ? [`Not all of the output could be kept: ${error}`] : []),
    ],
  }
}

function describeCause({ cause, code, signal, bytes, deadlineMs, error }: CommandExit, stoppedBy: string): string[] {
  switch (cause) {
    case 'exited':
      if (code === 0) return []
      return [signal === null ? `Exit code ${code}.` : `Ended by signal ${signal}.`]
    case 'timed-out':
      return [`Timed out after ${deadlineMs / 1000} s; it was ended with all of its processes.`]
    case 'stopped':
      return [`Stopped by ${stoppedBy}; it was ended with all of its processes.`]
    case 'overflowed':
      return [`It had printed ${countBytes(bytes)}, more than is allowed, and was ended with all of its processes.`]
    case 'not-started':
      return [`It could not be started: ${error}`]
    default:
      cause satisfies never
      return [`Ended: ${String(cause)}.`] // from a newer supervisor
  }
}

function describeLoss(outcome: { type: 'lost'; reason?: string }): { words: string[]; isError: boolean } {
  const { reason = 'the process that watched over it was killed' } = outcome
  const words = `Outcome unknown: ${reason}. It may have taken effect; it was not run again. This is its output so far.`
  return { words: [words], isError: true }
}

function join(shown: string, words: string[]): string {
  if (words.length === 0) return shown === '' ? '(no output)' : shown
  return [...(shown === '' ? [] : [shown]), `[${words.join(' ')}]`].join('\n\n')
}
