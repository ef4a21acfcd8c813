import { callOutcome, changedFiles, isGroupedTool, type CallOutcome } from '@tapetree/session/screen'
import type { ToolCallPart } from '@tapetree/session/view'
import { callArgument, contentText } from '../../text/content-text.ts'
import { costText, counted, tokenText } from '../../text/amounts.ts'
import { displayWidth, fitText } from '../../text/display-width.ts'
import { diffTexts } from '../../text/line-diff.ts'
import { markdownLines } from '../markdown/markdown-lines.ts'
import { shownDiff, shownText, shownWords } from '../markdown/shown-text.ts'
import { paint, wrapLine, type Span, type StyledLine } from '../markdown/wrap-line.ts'
import type { Style, Theme } from '../theme.ts'
import { countSpans, DiffView } from './diff-view.ts'
import { foldLines, lineCount, mostLines } from './folded-lines.ts'
import type { ItemContext, JobNews } from './item-context.ts'

/** A tool call: one line with its subject and state, and its output or the changed lines below. */
export function callLines(call: ToolCallPart, context: ItemContext, width: number): string[] {
  const { now = Date.now } = context
  const news = context.callNews?.(call.callId)
  const known = callOutcome(call, { isLive: context.isLive ?? false, news, now: now(), textOf: contentText })
  const job = jobNewsOf(call, context)
  const outcome = jobOutcome(known, job)
  const change = changeOf(call, outcome, context)
  const head = headLines(call, outcome, { context, width, change })
  // The dialog shows what it asks about.
  if (change) return outcome.state === 'asking' ? head : [...head, ...changeRows(change, { ...context, width })]
  if (isQuiet(call, outcome, context)) return head
  return [
    ...head,
    ...proposedPlan(call, context, width),
    ...indentedBody({ ...bodyOf(call, outcome, context), isCut: job?.isCut ?? false }, { ...context, width }),
  ]
}

/** The id of the job that a command became, from what the tool told the model. */
const jobIds = new WeakMap<ToolCallPart, { id: string | undefined }>()

/** Undefined for a call that did not start a job, and while nothing is known about the job. */
export function jobNewsOf(call: ToolCallPart, { jobNews }: ItemContext): JobNews | undefined {
  if (!jobNews || call.name !== 'bash' || !call.result) return undefined
  let known = jobIds.get(call)
  if (!known) {
    const [, id] =
      / in the background as (\S+)\. Read more with job_output/.exec(contentText(call.result.content)) ?? []
    known = { id }
    jobIds.set(call, known)
  }
  return known.id === undefined ? undefined : jobNews(known.id)
}

/** The plan that the line has the title of. */
function proposedPlan({ name, input }: ToolCallPart, context: ItemContext, width: number): string[] {
  const { theme, isUnfolded = false, highlighter } = context
  if (name !== 'exit_plan' || !isUnfolded || typeof input['plan'] !== 'string') return []
  const lines = markdownLines(shownText(input['plan']), { theme, width: width - indent.length, highlighter })
  return lines.map((line) => (line === '' ? '' : indent + line))
}

/** What a job does now, in place of how it started. */
function jobOutcome(outcome: CallOutcome, job: JobNews | undefined): CallOutcome {
  if (job?.text === undefined) return outcome
  const state = job.isRunning ? 'running' : job.state === 'exit code 0' ? 'done' : 'failed'
  const note = job.isRunning ? 'runs in the background' : `background job: ${job.state}`
  return { ...outcome, state, note, output: job.text }
}

/** While folded, what was read is a line, and the task list is pinned elsewhere. */
function isQuiet({ name }: ToolCallPart, { state }: CallOutcome, { isUnfolded = false }: ItemContext): boolean {
  return !isUnfolded && state === 'done' && (isGroupedTool(name) || name === 'todo_write')
}

/** Output below a line that names its source. */
export function outputBody(output: string, { state, isUnfolded }: { state: string; isUnfolded: boolean }): CallBody {
  const limit = isUnfolded ? mostLines : state === 'running' ? liveLines : foldedLines
  const { lines, hidden } = foldLines(output, { limit, from: 'end' })
  return { lines: lines.map((text) => [{ text }]), hidden, hiddenAt: 'start' }
}

export interface CallBody {
  lines: StyledLine[]
  hidden: number
  /** The position of the hidden lines. */
  hiddenAt: 'start' | 'end'
  /** More is hidden than was counted. */
  isCut?: boolean
}

export interface BodyPlace {
  theme: Theme
  isUnfolded?: boolean
  width: number
}

/** Darker than an answer. While folded, even a very long line is short. */
export function indentedBody(body: CallBody, { theme, isUnfolded, width }: BodyPlace): string[] {
  const { lines, hidden, hiddenAt, isCut = false } = body
  const room = width - indent.length
  const short = isUnfolded ? lines : lines.map((line) => fitLine(line, room * foldedRows))
  const rows = short.flatMap((line) => wrapLine(line, room))
  const shown = rows.map((row) => indent + paint(row.map((span) => ({ style: theme.muted, ...span }))))
  if (hidden === 0 && !isCut) return shown
  const where = hiddenAt === 'start' ? 'above' : 'below'
  const what = isCut ? 'more lines' : counted(hidden, 'more line')
  const note = indent + theme.muted(fitText(`… ${what} ${where}`, room))
  return hiddenAt === 'start' ? [note, ...shown] : [...shown, note]
}

/** Name, subject and state: on one line while folded. */
export function titleLines(
  { sign, name, argument, notes }: { sign: Span; name: string; argument: string; notes: readonly Span[] },
  { context, width }: { context: ItemContext; width: number },
): string[] {
  const { theme, isUnfolded = false } = context
  const named: Span[] = [sign, { text: ' ' }, { text: name, style: theme.strong }]
  const noted: Span[] = notes.some(({ text }) => text !== '') ? [{ text: ' · ', style: theme.muted }, ...notes] : []
  if (isUnfolded) {
    const [first = '', ...rest] = shownText(argument).split('\n')
    const about = first === '' ? [] : [{ text: ` ${first}` }]
    const more = rest.flatMap((text) => wrapLine([{ text }], width - indent.length))
    return [...wrapLine([...named, ...about, ...noted], width).map(paint), ...more.map((line) => indent + paint(line))]
  }
  const fixed = [...named, ...noted].reduce((sum, { text }) => sum + displayWidth(text), 0)
  const about = fitText(shownWords(argument), Math.max(8, width - fixed - 1))
  return wrapLine([...named, { text: about === '' ? '' : ` ${about}` }, ...noted], width).map(paint)
}

const indent = '  '
const foldedLines = 5
/** The length limit of one line. */
const foldedRows = 2
const foldedDiffLines = 20
/** While it runs, the last lines show progress. */
const liveLines = 8

function fitLine(line: StyledLine, width: number): StyledLine {
  let room = width
  return line.flatMap((span) => {
    if (room <= 0) return []
    const text = fitText(span.text, room)
    room -= displayWidth(text)
    return [{ ...span, text }]
  })
}

function headLines(
  call: ToolCallPart,
  { state, note, output }: CallOutcome,
  { context, width, change }: { context: ItemContext; width: number; change: DiffView | undefined },
): string[] {
  const { theme } = context
  const name = ownNames.get(call.name) ?? fitText(shownWords(call.name), maxName)
  const words = fitText(shownWords(note), Math.max(12, Math.floor(width / 2)))
  const argument = call.name === 'ask_user' && context.isUnfolded ? '' : callArgument(call)
  const style = styles[state](theme)
  const counts = change ? countSpans(change.counts, theme) : quietNotes(call, { state, output }, context)
  const between = counts.length > 0 && words !== '' ? [{ text: ' · ', style: theme.muted }] : []
  return titleLines(
    { sign: { text: signs[state], style }, name, argument, notes: [...counts, ...between, { text: words, style }] },
    { context, width },
  )
}

/** What the hidden output was, or what a subagent does. */
function quietNotes(
  call: ToolCallPart,
  { state, output }: Pick<CallOutcome, 'state' | 'output'>,
  { theme, isUnfolded = false, taskNews }: ItemContext,
): Span[] {
  const style = theme.muted
  if (call.name === 'todo_write' && !isUnfolded) return [{ text: planText(call.input['items']), style }]
  if (call.name === 'task' && state === 'running') {
    const news = taskNews?.(typeof call.input['description'] === 'string' ? call.input['description'] : '')
    if (!news) return []
    const cost = news.cost > 0 ? ` · ${costText(news.cost)}` : ''
    const tokens = news.tokens ? ` · ${tokenText(news.tokens)} tokens` : ''
    const text = fitText(shownWords(news.text), taskWords)
    return [{ text: `${text} · ${counted(news.messageCount, 'message')}${tokens}${cost}`, style }]
  }
  if (!isGroupedTool(call.name) || isUnfolded || state !== 'done') return []
  return [{ text: counted(lineCount(output), 'line'), style }]
}

const taskWords = 50

/** `2 of 5 done`. */
function planText(items: unknown): string {
  if (!Array.isArray(items)) return ''
  const done = items.filter(
    (item: unknown) => typeof item === 'object' && item !== null && 'status' in item && item.status === 'completed',
  )
  return `${done.length} of ${items.length} done`
}

const maxName = 60
const ownNames: ReadonlyMap<string, string> = new Map([
  ['todo_write', 'Tasks'],
  ['exit_plan', 'Plan'],
])
const signs = { waiting: '○', asking: '?', running: '●', done: '✓', failed: '✗', denied: '⊘', skipped: '–' } as const

const styles: Record<CallOutcome['state'], (theme: Theme) => Style> = {
  waiting: ({ muted }) => muted,
  asking: ({ warning }) => warning,
  running: ({ accent }) => accent,
  done: ({ success }) => success,
  failed: ({ error }) => error,
  denied: ({ warning }) => warning,
  skipped: ({ muted }) => muted,
}

function bodyOf(call: ToolCallPart, { state, output }: CallOutcome, context: ItemContext): CallBody {
  const { theme, isUnfolded = false } = context
  if (call.name === 'todo_write' && state !== 'failed') {
    return { lines: planLines(call.input['items'], theme), hidden: 0, hiddenAt: 'end' }
  }
  if (call.name === 'ask_user') return questionBody(call, output, context)
  if (call.name === 'bash' || state === 'running') return outputBody(output, { state, isUnfolded })
  const { lines, hidden } = foldLines(output, { limit: isUnfolded ? mostLines : foldedLines, from: 'start' })
  return { lines: lines.map((text) => [{ text }]), hidden, hiddenAt: 'end' }
}

/** What a call of `edit` or `write` changes; undefined if it failed, or for another tool. */
function changeOf(
  { name, input, result }: ToolCallPart,
  { output }: CallOutcome,
  context: ItemContext,
): DiffView | undefined {
  if ((name !== 'edit' && name !== 'write') || result?.isError === true) return undefined
  // Made harmless before it is compared: marks are positions in the text that is shown.
  const shownInput = Object.fromEntries(
    Object.entries(input).map(([member, value]) => [member, typeof value === 'string' ? shownText(value) : value]),
  )
  const { content, path } = shownInput
  const look = { ...context, ...(!context.isUnfolded && { rowsPerLine: foldedRows }) }
  const isCreated = name === 'write' && result !== undefined && !output.includes('\n\n')
  if (isCreated && typeof content === 'string') {
    return new DiffView([diffTexts({ name: String(path), before: undefined, after: content })], look)
  }
  return new DiffView(changedFiles(shownInput, shownDiff(output)), look)
}

function changeRows(change: DiffView, { theme, isUnfolded, width }: BodyPlace): string[] {
  const room = Math.max(1, width - indent.length)
  const to = isUnfolded ? mostLines : foldedDiffLines
  const rows = change.render(room, { to }).map((row) => indent + row)
  const hidden = change.rowCount(room) - rows.length
  if (hidden <= 0) return rows
  return [...rows, indent + theme.muted(fitText(`… ${counted(hidden, 'more line')} below`, room))]
}

function questionBody({ input, result }: ToolCallPart, output: string, { theme, isUnfolded }: ItemContext): CallBody {
  const { question } = input
  const asked = typeof question === 'string' && isUnfolded ? shownText(question).split('\n') : []
  const answer = result ? shownText(output).split('\n') : []
  return {
    lines: [
      ...asked.map((text) => [{ text, style: theme.emphasis }]),
      ...answer.map((text, index) => [{ text: index === 0 ? '→ ' : '  ', style: theme.accent }, { text }]),
    ],
    hidden: 0,
    hiddenAt: 'end',
  }
}

/** The task list. It may come straight from a model and have any form. */
function planLines(items: unknown, theme: Theme): StyledLine[] {
  if (!Array.isArray(items)) return []
  return items.slice(0, maxItems).flatMap((item: unknown) => {
    if (typeof item !== 'object' || item === null || !('text' in item) || typeof item.text !== 'string') return []
    const text = shownWords(item.text)
    const status = 'status' in item ? item.status : undefined
    if (status === 'completed')
      return [
        [
          { text: '✓ ', style: theme.success },
          { text, style: theme.muted },
        ],
      ]
    if (status === 'in_progress')
      return [
        [
          { text: '▸ ', style: theme.accent },
          { text, style: theme.strong },
        ],
      ]
    return [[{ text: '○ ', style: theme.muted }, { text }]]
  })
}

const maxItems = 100
