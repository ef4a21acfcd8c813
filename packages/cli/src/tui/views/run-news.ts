import type { Transcript, TranscriptItem } from '@tapetree/session'
import type { Theme } from '../theme.ts'
import { noticeLines } from './notice-lines.ts'

/** What is to be said at the end of the conversation: an error with what happens next, and how the run before ended. */
export function runNews(transcript: Transcript, theme: Theme, width: number): string[] {
  const { lastError, run, ended } = transcript
  if (ended !== null)
    return noticeLines({ sign: '–', text: `The session has ended: ${ended}`, style: theme.muted }, width)
  if (lastError && !isSaid(lastError.message, transcript.path.items.at(-1))) {
    const kind = lastError.kind === undefined ? '' : ` (${lastError.kind})`
    const lines = noticeLines({ sign: '✗', text: `${lastError.message}${kind}`, style: theme.error }, width)
    return [...lines, ...noticeLines({ sign: ' ', text: run ? goesOn : standsStill, style: theme.muted }, width)]
  }
  return run ? [] : endOfRun(transcript, theme, width)
}

const goesOn = 'The run goes on: it is tried again.'
const standsStill = 'The run has ended. /retry tries again from here; a new message goes on.'

function isSaid(message: string, last: TranscriptItem | undefined): boolean {
  return last?.type === 'assistant' && last.error?.message === message
}

function endOfRun({ lastRun }: Transcript, theme: Theme, width: number): string[] {
  if (!lastRun || lastRun.outcome === 'completed') return []
  const why = lastRun.reason === undefined ? '' : `: ${lastRun.reason}`
  const text = { aborted: 'The run was stopped', failed: 'The run failed', abandoned: 'The run was given up' }
  const style = lastRun.outcome === 'failed' ? theme.error : theme.muted
  return noticeLines({ sign: '–', text: `${text[lastRun.outcome]}${why}. All it did is kept.`, style }, width)
}
