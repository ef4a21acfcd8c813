import { emptyTranscript, type Transcript, type TranscriptItem, type ToolCallPart } from '@tapetree/session'
import type { Theme } from '../theme.ts'
import { noticeLines } from './notice-lines.ts'
import type { CallNews } from './item-context.ts'

/** Lines at the end of the conversation: an error with what happens next, and how the previous run ended. */
export function runNews(transcript: Transcript, { failure, theme }: RunNewsOptions, width: number): string[] {
  const { lastError, run, ended } = transcript
  if (ended !== null)
    return noticeLines({ sign: '–', text: `The session has ended: ${ended}`, style: theme.muted }, width)
  if (lastError && !isSaid(lastError.message, transcript.path.items.at(-1))) {
    const kind = lastError.kind === undefined ? '' : ` (${lastError.kind})`
    const lines = noticeLines({ sign: '✗', text: `${lastError.message}${kind}`, style: theme.error }, width)
    return [...lines, ...noticeLines({ sign: ' ', text: run ? goesOn : standsStill, style: theme.muted }, width)]
  }
  const earlier = failure && !failure.isIn(transcript) ? failure.lines(theme, width) : []
  return run ? earlier : [...earlier, ...endOfRun(transcript, theme, width)]
}

interface RunNewsOptions {
  /** A run before the active or the last one. */
  failure: RunFailure | undefined
  theme: Theme
}

/** Why a run failed. Shown until a later run completes; the next prompt does not remove it. */
export class RunFailure {
  readonly #runId: string
  readonly #message: string

  private constructor(runId: string, message: string) {
    this.#runId = runId
    this.#message = message
  }

  /** The failure to show after this change, given the previous one. */
  static after({ run, lastRun, lastError }: Transcript, before: RunFailure | undefined): RunFailure | undefined {
    if (run || !lastRun) return before
    if (lastRun.outcome === 'completed') return undefined
    return lastRun.outcome === 'failed' && lastError ? new RunFailure(lastRun.runId, lastError.message) : before
  }

  /** Whether the transcript itself shows it. */
  isIn({ run, lastRun, path }: Transcript): boolean {
    const isLast = !run && lastRun?.runId === this.#runId
    return isLast || path.items.slice(-recentItems).some((item) => isSaid(this.#message, item))
  }

  lines(theme: Theme, width: number): string[] {
    return noticeLines({ sign: '✗', text: `An earlier run failed: ${this.#message}`, style: theme.error }, width)
  }
}

/** The answer with the error is out of view. */
const recentItems = 5

const goesOn = 'The run continues with a retry.'
const standsStill = 'The run has ended. /retry tries again from here; a new message continues.'

function isSaid(message: string, last: TranscriptItem | undefined): boolean {
  return last?.type === 'assistant' && last.error?.message === message
}

function endOfRun({ lastRun }: Transcript, theme: Theme, width: number): string[] {
  if (!lastRun || lastRun.outcome === 'completed') return []
  const why = lastRun.reason === undefined ? '' : `: ${lastRun.reason}`
  const text = { aborted: 'The run was stopped', failed: 'The run failed', abandoned: 'The run was abandoned' }
  const style = lastRun.outcome === 'failed' ? theme.error : theme.muted
  return noticeLines({ sign: '–', text: `${text[lastRun.outcome]}${why}. Everything it did is kept.`, style }, width)
}

/** What is known about the calls of an answer while they wait and run. */
export class CallNewsFeed {
  readonly #now: () => number
  readonly #startedAt = new Map<string, number>()
  #calls: ReadonlySet<string> = new Set()
  #transcript = emptyTranscript()
  #isFirst = true

  constructor(now: () => number) {
    this.#now = now
  }

  /** `live`: the answer whose calls are executing. */
  update(transcript: Transcript, live: TranscriptItem | undefined): void {
    this.#transcript = transcript
    const calls = live?.type === 'assistant' ? live.parts.filter((part) => part.type === 'tool_call') : []
    this.#calls = new Set(calls.map(({ callId }) => callId))
    for (const callId of this.#startedAt.keys()) if (!this.#calls.has(callId)) this.#startedAt.delete(callId)
    for (const call of calls) this.#note(call, live?.timestamp ?? '')
    this.#isFirst &&= transcript.seq === 0
  }

  isCall(id: string): boolean {
    return this.#calls.has(id)
  }

  of(callId: string): CallNews | undefined {
    if (!this.#calls.has(callId)) return undefined
    const output = this.#transcript.inFlight
      .get(callId)
      ?.parts.map(({ text }) => text)
      .join('')
    const startedAt = this.#startedAt.get(callId)
    const isAsked = this.#transcript.permissions.some((request) => request.callId === callId)
    return { isAsked, ...(output !== undefined && { output }), ...(startedAt !== undefined && { startedAt }) }
  }

  /** Only observers learn when a call started; later clients count from the answer that requested it. */
  #note({ callId, status }: ToolCallPart, answeredAt: string): void {
    if (status !== 'running' || this.#startedAt.has(callId)) return
    const answered = Date.parse(answeredAt)
    this.#startedAt.set(callId, this.#isFirst && Number.isFinite(answered) ? answered : this.#now())
  }
}
