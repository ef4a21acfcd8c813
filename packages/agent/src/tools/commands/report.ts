import type { ToolContext, ToolOutput } from '../tool.ts'
import type { Command, CommandOutcome, Stopper } from './command.ts'
import type { CommandExit, CommandLimits } from './exit-file.ts'
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
  const reached = outcome.type === 'ended' ? await describeLimits(command, outcome.exit) : []
  const exitCode = outcome.type === 'ended' ? outcome.exit.code : null
  return {
    content: join(shown, [...sentences, ...reached, ...notes]),
    ...(isError && { isError }),
    ...(exitCode !== null && { exitCode }),
  }
}

/** Reports a running command: its output so far, and the available actions. */
export async function reportRunning(
  command: Command,
  text: (nextOffset: number) => string,
  context: Pick<ToolContext, 'putBlob'>,
  { from = 0, notes = [] }: ReportOptions = {},
): Promise<ToolOutput> {
  const output = await command.output({ from })
  const shown = await showOutput(output, from, context)
  return { content: join(shown, [text(output.end), ...notes]) }
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

/** How a command shows that it has reached a limit. The kernel tells nobody else: it sends a signal, or a system call fails. */
interface LimitSign {
  /** Exit codes: 128 and the number of the signal. */
  codes: readonly number[]
  /** Messages of shells, runtimes and common programs. */
  pattern: RegExp
  amount: (limit: number) => string
}

const limitSigns: Readonly<Record<keyof CommandLimits, LimitSign>> = {
  cpuSeconds: {
    codes: [152, 137],
    pattern: /CPU time limit exceeded/i,
    amount: (limit) => `${limit} s of processor time for each process`,
  },
  memoryBytes: {
    codes: [],
    pattern:
      /cannot allocate|memory exhausted|\bMemoryError\b|out of memory|allocation failed|memory allocation of \d+ bytes failed|\bENOMEM\b|\bbad_alloc\b/i,
    amount: (limit) => `${countBytes(limit)} of memory for each process`,
  },
  processes: {
    codes: [],
    pattern:
      /(?:fork|spawn|exec|clone)\b.*(?:Resource temporarily unavailable|EAGAIN)|\[Errno 11\]|can't start new thread|failed to create new OS thread|pthread_create/i,
    amount: (limit) => `${limit} processes and threads`,
  },
  fileBytes: {
    codes: [153],
    pattern: /File size limit exceeded|File too large|\bEFBIG\b/i,
    amount: (limit) => `${countBytes(limit)} for each file`,
  },
}

/** Messages about limits come last. */
const searchedBytes = 64 * 1024

async function describeLimits(command: Command, { code, limits }: CommandExit): Promise<string[]> {
  if (!limits) return []
  const { pieces } = await command.output({ limitBytes: searchedBytes })
  const text = Buffer.concat(pieces.map(({ bytes }) => bytes)).toString()
  return (Object.keys(limitSigns) as (keyof CommandLimits)[]).flatMap((name) => {
    const [limit, { codes, pattern, amount }] = [limits[name], limitSigns[name]]
    if (limit === undefined || !(codes.includes(code ?? 0) || pattern.test(text))) return []
    return [
      `It seems to have reached a limit of the sandbox: ${amount(limit)} (sandbox.limits.${name}). Only the user can raise it.`,
    ]
  })
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
