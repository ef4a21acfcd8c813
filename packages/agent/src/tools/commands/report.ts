import type { ToolContext, ToolOutput } from '../tool.ts'
import type { Command, CommandOutcome, Stopper } from './command.ts'
import type { CommandExit } from './exit-file.ts'
import { countBytes, showOutput } from './shown-output.ts'

export interface ReportOptions {
  /** The offset to start at. */
  from?: number
  /** Sentences to add. */
  notes?: readonly string[]
}

/** Reports an ended command: its output, and how it ended unless it succeeded. */
export async function reportOutcome(
  command: Command,
  outcome: CommandOutcome | { type: 'lost'; reason: string },
  context: Pick<ToolContext, 'putBlob'>,
  { from = 0, notes = [] }: ReportOptions = {},
): Promise<ToolOutput> {
  const output = await command.output({ from })
  const shown = await showOutput(output, from, context)
  const { sentences, isError } =
    outcome.type === 'ended' ? describeExit(outcome.exit, await command.stopper()) : describeLoss(outcome)
  return { content: join(shown, [...sentences, ...notes]), ...(isError && { isError }) }
}

/** Reports a running command: its output so far, and the available actions. */
export async function reportRunning(
  command: Command,
  text: (nextOffset: number) => string,
  context: Pick<ToolContext, 'putBlob'>,
  { from = 0 }: ReportOptions = {},
): Promise<ToolOutput> {
  const output = await command.output({ from })
  const shown = await showOutput(output, from, context)
  return { content: join(shown, [text(output.end)]) }
}

function describeExit(exit: CommandExit, stopper: Stopper | undefined): { sentences: string[]; isError: boolean } {
  const ended = describeCause(exit, stopper)
  const { leftBehind, survivors, error } = exit
  return {
    isError: exit.cause !== 'exited' || exit.code !== 0,
    sentences: [
      ...ended,
      ...(leftBehind.length > 0
        ? [
            `Processes that it left running were stopped: ${leftBehind.join(', ')}. To keep one, run it with background.`,
          ]
        : []),
      ...(survivors.length > 0 ? [`These could not be stopped and are still running: ${survivors.join(', ')}.`] : []),
      ...(error !== undefined && exit.cause !== 'not-started'
        ? [`Some of the output could not be stored: ${error}`]
        : []),
    ],
  }
}

function describeCause({ cause, code, signal, bytes, deadlineMs, error }: CommandExit, stopper?: Stopper): string[] {
  switch (cause) {
    case 'exited':
      if (code === 0) return []
      return [signal === null ? `Exit code ${code}.` : `Ended by signal ${signal}.`]
    case 'timed-out':
      return [`Timed out after ${deadlineMs / 1000} s and was stopped with all of its processes.`]
    case 'stopped':
      return [`Stopped${stopper === undefined ? '' : ` by ${stopper}`}, with all of its processes.`]
    case 'overflowed':
      return [`It printed ${countBytes(bytes)}, more than the limit, and was stopped with all of its processes.`]
    case 'not-started':
      return [`It could not be started: ${error}`]
    default:
      cause satisfies never
      return [`Ended: ${String(cause)}.`] // from a newer supervisor
  }
}

function describeLoss(outcome: { type: 'lost'; reason?: string }): { sentences: string[]; isError: boolean } {
  const { reason = 'its supervisor was killed' } = outcome
  const text = `Outcome unknown: ${reason}. It may have taken effect; it was not run again. This is its output so far.`
  return { sentences: [text], isError: true }
}

function join(shown: string, sentences: string[]): string {
  if (sentences.length === 0) return shown === '' ? '(no output)' : shown
  return [...(shown === '' ? [] : [shown]), `[${sentences.join(' ')}]`].join('\n\n')
}
