import {
  changedFiles,
  groupItems,
  type CallNews,
  type GroupedItems,
  type TranscriptRow,
} from '@tapetree/session/screen'
import {
  emptyTranscript,
  type InFlightItem,
  type Transcript,
  type TranscriptItem,
  type ToolCallPart,
} from '@tapetree/session/view'
import { Highlighter } from '../markdown/highlight.ts'
import type { Theme } from '../theme.ts'
import { DraftView } from './draft-view.ts'
import { contentText } from '../../text/content-text.ts'
import { jobNewsOf } from './call-lines.ts'
import { errorLines, errorParts } from './error-lines.ts'
import type { ItemContext, WorkedRun } from './item-context.ts'
import { callAtRow, renderItem, noticeLines } from './render-item.ts'

export interface ShownItemsOptions {
  theme: Theme
  now: () => number
  /** Something must be redrawn, such as code whose grammar has loaded. */
  onChange: () => void
  /** What the subagent with this description does. */
  taskNews?: ItemContext['taskNews']
  /** The state of a background job. */
  jobNews?: ItemContext['jobNews']
  /** All lines are requested each time, because the terminal scrolls: then all of them are cached. */
  keepsAll?: boolean
}

/**
 * The blocks of a conversation, top to bottom: the items of the path, the draft, and the state of the run. Renders a block only when its
 * lines are requested. Heights of other blocks are remembered from the last rendering, or estimated.
 */
export class ShownItems {
  readonly #options: ShownItemsOptions
  readonly #highlighter: Highlighter
  readonly #cache: LineCache
  readonly #news: CallNewsFeed
  readonly #drafts = new Map<string, DraftView>()
  /** Items that are unfolded individually. */
  readonly #unfolded = new Set<string>()
  #isUnfolded = false
  #transcript = emptyTranscript()
  #items: TranscriptItem[] = []
  /** Reads that follow one another are one row, also across answers. */
  #grouped: GroupedItems = groupItems([])
  #heights: (number | undefined)[] = []
  readonly #measured = { rows: 0, count: 0 }
  #inFlight: InFlightItem[] = []
  #liveIndex = -1
  #failure: RunFailure | undefined

  constructor(options: ShownItemsOptions) {
    this.#options = options
    this.#cache = new LineCache(options.keepsAll ? Infinity : maxCachedLines)
    this.#news = new CallNewsFeed(options.now)
    this.#highlighter = new Highlighter(() => {
      this.forget()
      options.onChange()
    })
  }

  get items(): readonly TranscriptItem[] {
    return this.#items
  }

  /** The state of the run comes last, even if it is empty. */
  get count(): number {
    return this.#items.length + this.#inFlight.length + 1
  }

  update(transcript: Transcript): void {
    if (transcript.path.items !== this.#transcript.path.items) this.#takeItems(transcript)
    this.#grouped = groupItems(transcript.path.items, this.#grouped)
    this.#transcript = transcript
    this.#failure = RunFailure.after(transcript, this.#failure)
    this.#liveIndex = transcript.run ? lastAnswer(this.#items) : -1
    this.#news.update(transcript, this.#items[this.#liveIndex])
    this.#inFlight = [...transcript.inFlight.values()].filter(({ item }) => !this.#news.isCall(item))
    for (const id of this.#drafts.keys()) if (!transcript.inFlight.has(id)) this.#drafts.delete(id)
  }

  idAt(index: number): string | undefined {
    return this.#items[index]?.id ?? this.#inFlight[index - this.#items.length]?.item
  }

  indexOf(id: string): number {
    const index = this.#items.findLastIndex((item) => item.id === id)
    if (index >= 0) return index
    const draft = this.#inFlight.findIndex(({ item }) => item === id)
    return draft < 0 ? -1 : this.#items.length + draft
  }

  /** With an empty line below, if there are any. */
  linesAt(index: number, width: number): readonly string[] {
    const item = this.#items[index]
    if (!item) return spaced(this.#tailLines(index - this.#items.length, width))
    const lines = this.#isLive(index)
      ? this.#liveLines(item, { index, width })
      : this.#keptLines(item, { index, width })
    this.#measure(index, lines.length)
    return lines
  }

  /** The call of a subagent whose line is this row of a block. */
  taskAt(index: number, { row, width }: { row: number; width: number }): ToolCallPart | undefined {
    const item = this.#items[index]
    if (item?.type !== 'assistant') return undefined
    const context = this.#isLive(index)
      ? this.#liveContext(item, { index, width })
      : { ...this.#context(item.id), rows: this.#rowsAt(index) }
    const call = callAtRow(item, context, { row, width })
    return call?.name === 'task' ? call : undefined
  }

  /** The height when it was last rendered; before that, the average of the others. */
  heightAt(index: number): number {
    return this.#heights[index] ?? Math.round(this.#measured.rows / Math.max(1, this.#measured.count))
  }

  toggle(): void {
    this.#isUnfolded = !this.#isUnfolded
    this.#unfolded.clear()
  }

  unfold(id: string): void {
    this.#unfolded.add(id)
  }

  /** Redraws everything. */
  forget(): void {
    this.#cache.clear()
    for (const draft of this.#drafts.values()) draft.forget()
  }

  #takeItems({ path }: Transcript): void {
    const { items } = path
    this.#items.length = Math.min(this.#items.length, items.length)
    this.#heights.length = this.#items.length
    for (let index = 0; index < items.length; index++) {
      const item = items.at(index)
      if (item && this.#items[index] !== item) {
        if (this.#items[index]?.id !== item.id) this.#heights[index] = undefined
        this.#items[index] = item
      }
    }
  }

  /** Some of its calls, or of the reads that continue its last row, are active. */
  #isLive(index: number): boolean {
    if (index === this.#liveIndex || this.#liveIndex < 0) return index === this.#liveIndex
    const last = this.#rowsAt(index).at(-1)
    return last?.type === 'reads' && last.calls.some(({ result }) => !result)
  }

  #rowsAt(index: number): readonly TranscriptRow[] {
    const { rows, starts } = this.#grouped
    return rows.slice(starts[index] ?? rows.length, starts[index + 1] ?? rows.length)
  }

  /** Whether a run ended with it. */
  #isEnd(index: number): boolean {
    const next = this.#items[index + 1]
    const isLast = next === undefined ? !this.#transcript.run : next.type === 'user'
    return isLast && this.#items[index]?.type === 'assistant'
  }

  #measure(index: number, height: number): void {
    if (this.#heights[index] === undefined) {
      this.#measured.rows += height
      this.#measured.count++
    }
    this.#heights[index] = height
  }

  #keptLines(item: TranscriptItem, { index, width }: { index: number; width: number }): string[] {
    const context = this.#context(item.id)
    const rows = item.type === 'assistant' ? this.#rowsAt(index) : undefined
    const isEnd = this.#isEnd(index)
    const how = `${width} ${context.isUnfolded} ${rows?.length ?? ''} ${signatureOf(rows?.at(-1))} ${isEnd} ${jobsIn(item, context)}`
    return this.#cache.get(item, how, () => {
      const summarized = summarizedBy(this.#items, index)
      const worked = isEnd ? workedBy(this.#items, index) : undefined
      const more = { ...(summarized !== undefined && { summarized }), ...(rows && { rows }), ...(worked && { worked }) }
      return spaced(renderItem(item, { ...context, ...more })(width))
    })
  }

  /** Some of its calls are active: only those are rendered each time. */
  #liveLines(item: TranscriptItem, { index, width }: { index: number; width: number }): string[] {
    return spaced(renderItem(item, this.#liveContext(item, { index, width }))(width))
  }

  #liveContext({ id }: TranscriptItem, { index, width }: { index: number; width: number }): ItemContext {
    const context = this.#context(id)
    const how = `part ${width} ${context.isUnfolded}`
    return {
      ...context,
      isLive: true,
      rows: this.#rowsAt(index),
      callNews: (callId) => this.#news.of(callId),
      remember: (part, draw) => this.#cache.get(part, how, draw),
    }
  }

  #tailLines(place: number, width: number): string[] {
    const item = this.#inFlight[place]
    if (!item) return runNews(this.#transcript, { failure: this.#failure, theme: this.#options.theme }, width)
    const draft = this.#drafts.get(item.item) ?? new DraftView(this.#options.now())
    this.#drafts.set(item.item, draft)
    return draft.lines(item, this.#context(item.item), width)
  }

  #context(id: string): ItemContext & { isUnfolded: boolean } {
    const { theme, now, taskNews, jobNews } = this.#options
    const isUnfolded = this.#isUnfolded || this.#unfolded.has(id)
    const news = { ...(taskNews && { taskNews }), ...(jobNews && { jobNews }) }
    return { theme, now, highlighter: this.#highlighter, isUnfolded, ...news }
  }
}

/** Some hundred screens. */
const maxCachedLines = 20_000

function spaced(lines: readonly string[]): string[] {
  return lines.length === 0 ? [] : [...lines, '']
}

/** Changes when reads were added to the row, or one of them got its result. */
function signatureOf(row: TranscriptRow | undefined): string {
  return row?.type === 'reads' ? `${row.calls.length}/${row.calls.filter(({ result }) => result).length}` : ''
}

/** Changes with the state and output of the background jobs of an answer. */
function jobsIn(item: TranscriptItem, context: ItemContext): string {
  if (item.type !== 'assistant') return ''
  const jobs = item.parts.flatMap((part) => (part.type === 'tool_call' ? (jobNewsOf(part, context) ?? []) : []))
  return jobs.map(({ state, text = '' }) => `${state} ${text.length} ${text.slice(-jobEnd)}`).join(' ')
}

/** Output of the same length that ends the same is the same. */
const jobEnd = 200

/** From the message of the user to its last answer. Undefined for a short answer without work: it needs no account. */
function workedBy(items: readonly TranscriptItem[], index: number): WorkedRun | undefined {
  const worked = { ms: 0, files: 0, added: 0, removed: 0, cost: 0 }
  const files = new Set<unknown>()
  let calls = 0
  let at = index
  for (; at >= 0 && items[at]?.type !== 'user'; at--) {
    const item = items[at]
    if (item?.type === 'gap') return undefined
    if (item?.type !== 'assistant') continue
    worked.cost += item.usage?.cost ?? 0
    for (const part of item.parts) {
      if (part.type !== 'tool_call') continue
      calls++
      if ((part.name !== 'edit' && part.name !== 'write') || !part.result || part.result.isError) continue
      files.add(part.input['path'])
      for (const { hunks } of changedFiles(part.input, contentText(part.result.content))) {
        for (const { type } of hunks.flatMap(({ lines }) => lines)) if (type !== 'context') worked[type]++
      }
    }
  }
  const [first, last] = [items[at], items[index]].map((item) => Date.parse(item?.timestamp ?? ''))
  worked.ms = Math.max(0, (last ?? NaN) - (first ?? NaN))
  worked.files = files.size
  return calls === 0 || Number.isNaN(worked.ms) ? undefined : worked
}

/** How many messages a compaction replaces, if all of them are loaded. */
function summarizedBy(items: readonly TranscriptItem[], index: number): number | undefined {
  const item = items[index]
  if (item?.type !== 'compaction' || item.firstKeptEntryId === undefined) return undefined
  let place = index - 1
  while (place >= 0 && items[place]?.id !== item.firstKeptEntryId) place--
  if (place < 0) return undefined
  let messages = 0
  for (const before of items.slice(0, place).toReversed()) {
    if (before.type === 'compaction') break
    if (before.type === 'gap') return undefined
    if (before.type === 'user' || before.type === 'assistant' || before.type === 'bash') messages++
  }
  return messages
}

/** Rendered lines, by source object and options. Evicts the least recently used when there are too many. */
class LineCache {
  readonly #drawn = new Map<object, { how: string; lines: string[] }>()
  readonly #maxLines: number
  #lines = 0

  constructor(maxLines: number) {
    this.#maxLines = maxLines
  }

  get(key: object, how: string, draw: () => string[]): string[] {
    const known = this.#drawn.get(key)
    if (known) {
      this.#drawn.delete(key)
      if (known.how === how) {
        this.#drawn.set(key, known)
        return known.lines
      }
      this.#lines -= known.lines.length
    }
    const lines = draw()
    this.#drawn.set(key, { how, lines })
    this.#lines += lines.length
    this.#dropOldest(key)
    return lines
  }

  clear(): void {
    this.#drawn.clear()
    this.#lines = 0
  }

  #dropOldest(newest: object): void {
    for (const [key, { lines }] of this.#drawn) {
      if (this.#lines <= this.#maxLines || key === newest) return
      this.#drawn.delete(key)
      this.#lines -= lines.length
    }
  }
}

/** Lines at the end of the conversation: an error with what happens next, and how the previous run ended. */
function runNews(transcript: Transcript, { failure, theme }: RunNewsOptions, width: number): string[] {
  const { lastError, run, ended } = transcript
  if (ended !== null)
    return noticeLines({ sign: '–', text: `The session has ended: ${ended}`, style: theme.muted }, width)
  if (lastError && !isSaid(lastError.message, transcript.path.items.at(-1))) {
    const lines = errorLines(lastError, { theme, width })
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
class RunFailure {
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
    const { sentence } = errorParts(this.#message)
    return noticeLines({ sign: '✗', text: `An earlier run failed: ${sentence}`, style: theme.error }, width)
  }
}

/** The answer with the error is out of view. */
const recentItems = 5

/** The answer that the run is at, or -1. After a message of the user there is none yet: open calls before it do not run. */
function lastAnswer(items: readonly TranscriptItem[]): number {
  const last = items.findLastIndex(({ type }) => type === 'assistant' || type === 'user')
  return items[last]?.type === 'assistant' ? last : -1
}

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
class CallNewsFeed {
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
