import {
  callOutcome,
  changedFiles,
  type CallOutcome,
  type DiffFile,
  type DiffHunk,
  type DiffLine,
} from '@tapetree/session/screen'
import type { ToolCallPart } from '@tapetree/session/view'
import { callArgument, contentText } from '../../text/content-text.ts'
import { counted } from '../../text/amounts.ts'
import { displayWidth, fitText } from '../../text/display-width.ts'
import { shownText, shownWords } from '../markdown/shown-text.ts'
import { paint, wrapLine, type Span, type StyledLine } from '../markdown/wrap-line.ts'
import type { Style, Theme } from '../theme.ts'
import { foldLines, mostLines } from './folded-lines.ts'
import type { ItemContext } from './item-context.ts'

/** A tool call: one line with its subject and state, and its output below. */
export function callLines(call: ToolCallPart, context: ItemContext, width: number): string[] {
  const { now = Date.now } = context
  const news = context.callNews?.(call.callId)
  const outcome = callOutcome(call, { isLive: context.isLive ?? false, news, now: now(), textOf: contentText })
  const head = headLines(call, outcome, { context, width })
  const body = bodyOf(call, outcome, context)
  return [...head, ...indentedBody(body, { ...context, width })]
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
}

export interface BodyPlace {
  theme: Theme
  isUnfolded?: boolean
  width: number
}

/** While folded, even a very long line is short. */
export function indentedBody({ lines, hidden, hiddenAt }: CallBody, { theme, isUnfolded, width }: BodyPlace): string[] {
  const room = width - indent.length
  const short = isUnfolded ? lines : lines.map((line) => fitLine(line, room * foldedRows))
  const rows = short.flatMap((line) => wrapLine(line, room))
  const shown = rows.map((row) => indent + paint(row))
  if (hidden === 0) return shown
  const where = hiddenAt === 'start' ? 'above' : 'below'
  const note = indent + theme.muted(fitText(`… ${counted(hidden, 'more line')} ${where}`, room))
  return hiddenAt === 'start' ? [note, ...shown] : [...shown, note]
}

/** Name, subject and state: on one line while folded. */
export function titleLines(
  { sign, name, argument, note }: { sign: Span; name: string; argument: string; note: Span },
  { context, width }: { context: ItemContext; width: number },
): string[] {
  const { theme, isUnfolded = false } = context
  const named: Span[] = [sign, { text: ' ' }, { text: name, style: theme.strong }]
  const noted: Span[] = note.text === '' ? [] : [{ text: ' · ', style: theme.muted }, note]
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
  { state, note }: CallOutcome,
  { context, width }: { context: ItemContext; width: number },
): string[] {
  const { theme } = context
  const name = fitText(shownWords(call.name), maxName)
  const words = fitText(shownWords(note), Math.max(12, Math.floor(width / 2)))
  const argument = call.name === 'ask_user' && context.isUnfolded ? '' : callArgument(call)
  const style = styles[state](theme)
  return titleLines(
    { sign: { text: signs[state], style }, name, argument, note: { text: words, style } },
    { context, width },
  )
}

const maxName = 60
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
  if (call.name === 'edit' || call.name === 'write') return changeBody(call, output, context)
  if (call.name === 'bash' || state === 'running') return outputBody(output, { state, isUnfolded })
  const { lines, hidden } = foldLines(output, { limit: isUnfolded ? mostLines : foldedLines, from: 'start' })
  return { lines: lines.map((text) => [{ text }]), hidden, hiddenAt: 'end' }
}

/** Why it failed, or the changed lines. */
function changeBody({ input, result }: ToolCallPart, output: string, context: ItemContext): CallBody {
  const { theme, isUnfolded = false } = context
  if (result?.isError === true) {
    const { lines, hidden } = foldLines(output, { limit: isUnfolded ? mostLines : foldedLines, from: 'start' })
    return { lines: lines.map((text) => [{ text }]), hidden, hiddenAt: 'end' }
  }
  // Made harmless before it is compared: marks are positions in the text that is shown.
  const shownInput = Object.fromEntries(
    Object.entries(input).map(([name, value]) => [name, typeof value === 'string' ? shownText(value) : value]),
  )
  const lines = changedFiles(shownInput, shownText(output)).flatMap((file) => diffLines(file, theme))
  const shown = lines.slice(0, isUnfolded ? mostLines : foldedDiffLines)
  return { lines: shown, hidden: lines.length - shown.length, hiddenAt: 'end' }
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

/** The lines of a file in their colors, changed words in bold. Its name is already shown above. */
function diffLines({ hunks, notes }: DiffFile, theme: Theme): StyledLine[] {
  const styles = { added: theme.diffAdded, removed: theme.diffRemoved, context: undefined }
  const hunkLines = (hunk: DiffHunk): StyledLine[] => {
    const place = placeOf(hunk)
    return [
      ...(place === '' ? [] : [[{ text: place, style: theme.diffPlace }]]),
      ...hunk.lines.flatMap((line) => [
        markedLine(line, styles[line.type], theme),
        ...(line.isUnterminated ? [[{ text: '\\ No newline at end of file', style: theme.muted }]] : []),
      ]),
    ]
  }
  return [...hunks.flatMap(hunkLines), ...notes.map((text) => [{ text, style: undefined }])]
}

function markedLine({ type, text, marks = [] }: DiffLine, style: Style | undefined, theme: Theme): StyledLine {
  const spans: Span[] = []
  let end = 0
  const sign = { added: '+', removed: '-', context: ' ' }[type]
  for (const mark of marks) {
    spans.push({ text: (end === 0 ? sign : '') + text.slice(end, mark.start), style })
    spans.push({ text: text.slice(mark.start, mark.end), style: (part) => (style ?? String)(theme.strong(part)) })
    end = mark.end
  }
  return [...spans, { text: (end === 0 ? sign : '') + text.slice(end), style }]
}

/** `@@ -1,2 +1,3 @@ section`. Empty if the place in the file is unknown. */
function placeOf({ lines, section }: DiffHunk): string {
  const side = (numbers: readonly number[]): string =>
    numbers.length === 0 ? '0,0' : numbers.length === 1 ? `${numbers[0]}` : `${numbers[0]},${numbers.length}`
  const old = lines.flatMap(({ oldLine }) => oldLine ?? [])
  const now = lines.flatMap(({ newLine }) => newLine ?? [])
  if (old.length === 0 && now.length === 0) return ''
  return `@@ -${side(old)} +${side(now)} @@ ${section}`.trimEnd()
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
