import type { StateValues } from '@tapetree/client'
import type { InFlightItem, Transcript } from '@tapetree/session/view'
import { callArgument } from '../../text/content-text.ts'
import { fitText } from '../../text/display-width.ts'
import { elapsedText } from '../../text/amounts.ts'
import { shownWords } from '../markdown/shown-text.ts'
import type { Theme } from '../theme.ts'

export interface StatusOptions {
  transcript: Transcript
  /** The value of `run`, if it is known. */
  run: StateValues['run'] | undefined
  /** When `run.waitingFor` last changed. */
  waitingSince?: number | undefined
  /** When something last came from the model. */
  newsAt?: number | undefined
  width: number
  theme: Theme
  /** Milliseconds since the epoch. */
  now: number
}

/** The activity of the run and its elapsed time; undefined if there is no run. */
export function statusLine(options: StatusOptions): string | undefined {
  const { transcript, width, theme, now } = options
  const words = runWords(options)
  if (words === undefined) return undefined
  const { run } = transcript
  const elapsed = `${run ? ` · ${elapsedText(now - Date.parse(run.timestamp))}` : ''}${quietWords(options)}`
  const isWaiting = transcript.permissions.length > 0 || options.run?.waitingFor?.type === 'resume'
  const style = isWaiting ? theme.warning : theme.accent
  const text = shownWords(words)
  return ` ${style('●')} ${style(fitText(text, Math.max(1, width - 3 - elapsed.length)))}${theme.muted(elapsed)}`
}

/** Said when a model sends nothing for this long. */
const quietMs = 10_000

/** How long nothing has come from the model that is to answer. */
function quietWords({ transcript, run, newsAt, now }: StatusOptions): string {
  const isModel = transcript.permissions.length === 0 && !run?.waitingFor && callWords(transcript) === undefined
  if (!isModel || newsAt === undefined || now - newsAt < quietMs) return ''
  return ` · nothing came for ${elapsedText(now - newsAt)}`
}

/** The same as text, without colors and not yet harmless: for a screen reader. */
export function runWords({
  transcript,
  run,
  waitingSince,
  now,
}: Omit<StatusOptions, 'width' | 'theme' | 'newsAt'>): string | undefined {
  const [asked] = transcript.permissions
  if (asked) return `Waiting for you: ${askedWords(asked)}`
  if (run?.waitingFor) return waitingWords(run.waitingFor, { waitingSince, now })
  if (!transcript.run && !run?.isBusy) return undefined
  return callWords(transcript) ?? draftWords(transcript) ?? 'Waiting for the model'
}

/** The call with its argument, or the question. */
function askedWords({ tool, title, input }: Transcript['permissions'][number]): string {
  // Its title is the plan itself, which the dialog draws.
  if (tool === 'exit_plan') return 'the plan'
  const argument = input && tool !== 'ask_user' ? callArgument({ name: tool, input }) : ''
  return argument === '' ? title : `${tool} ${argument}`
}

function waitingWords(
  waiting: NonNullable<StateValues['run']['waitingFor']>,
  { waitingSince, now }: { waitingSince: number | undefined; now: number },
): string {
  switch (waiting.type) {
    case 'resume':
      return 'An interrupted run is waiting for you'
    case 'auto_retry_start': {
      const leftMs = waiting.delayMs - (waitingSince === undefined ? 0 : now - waitingSince)
      return `Retrying in ${elapsedText(Math.max(0, leftMs) + 999)} (attempt ${waiting.attempt}): ${waiting.error.message}`
    }
    case 'auto_compaction_start':
      return 'Summarizing the conversation to make room'
    case 'storage':
      return 'Waiting for the storage'
    case 'tool_host':
      return `Waiting: ${shownWords(waiting.reason)}`
    default:
      waiting satisfies never
      return 'Waiting'
  }
}

function callWords({ path }: Transcript): string | undefined {
  const last = path.items.at(-1)
  if (last?.type !== 'assistant') return undefined
  const running = last.parts.filter((part) => part.type === 'tool_call').filter(({ status }) => status === 'running')
  const [first] = running
  if (!first) return undefined
  if (running.length > 1) return `Running ${running.length} tools`
  return `Running ${first.name} ${callArgument(first)}`.trimEnd()
}

function draftWords({ inFlight }: Transcript): string | undefined {
  const last = [...inFlight.values()].findLast(({ run }) => run !== '')
  return last && doing[kindOf(last) ?? 'text']
}

function kindOf({ parts }: InFlightItem): keyof typeof doing | undefined {
  return parts.at(-1)?.kind
}

const doing = {
  reasoning: 'Thinking',
  text: 'Writing',
  tool_input: 'Preparing a tool call',
  tool_output: 'Running a command',
} as const
