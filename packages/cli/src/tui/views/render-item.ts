import { groupItems, readsText, toldDiagnostics, type ToldDiagnostics } from '@tapetree/session/screen'
import type {
  BashItem,
  CompactionItem,
  CustomItem,
  GapItem,
  ToolResultItem,
  TranscriptItem,
  UserItem,
  AssistantItem,
  AssistantPart,
  ToolCallPart,
} from '@tapetree/session/view'
import { callArgument, contentText, imageText } from '../../text/content-text.ts'
import { costText, counted, elapsedText } from '../../text/amounts.ts'
import { fitText, displayWidth } from '../../text/display-width.ts'
import { markdownLines } from '../markdown/markdown-lines.ts'
import { shownText, shownWords } from '../markdown/shown-text.ts'
import type { Theme, Style } from '../theme.ts'
import { indentedBody, outputBody, titleLines, callLines } from './call-lines.ts'
import { countSpans } from './diff-view.ts'
import { errorLines } from './error-lines.ts'
import type { ItemContext } from './item-context.ts'
import { paint, textOf, wrapLine, type Span, type StyledLine } from '../markdown/wrap-line.ts'
import { foldLines, mostLines } from './folded-lines.ts'

/** Renders an item for any width. Returns nothing for internal items. */
export function renderItem(item: TranscriptItem, context: ItemContext): (width: number) => string[] {
  return (width) => linesOf(item, context, width)
}

function linesOf(item: TranscriptItem, context: ItemContext, width: number): string[] {
  const { theme, isUnfolded = false } = context
  const muted = (text: string): string[] => [theme.muted(fitText(shownWords(text), width))]
  switch (item.type) {
    case 'user':
      return userLines(item, context, width)
    case 'assistant':
      return assistantLines(item, context, width)
    case 'tool_result':
      return resultLines(item, context, width)
    case 'bash':
      return bashLines(item, context, width)
    case 'compaction':
      return summaryLines({ title: compactionTitle(item, context), summary: item.summary }, context, width)
    case 'branch_summary':
      return summaryLines({ title: 'Summary of another branch', summary: item.summary }, context, width)
    case 'custom':
      return customLines(item, context, width)
    case 'system':
      return isUnfolded ? muted(`· System prompt and ${counted(item.system.tools.length, 'tool')}`) : []
    case 'model':
      return muted(`· Model: ${item.provider}/${item.modelId}`)
    case 'thinking_level':
      return muted(`· Thinking: ${item.thinkingLevel}`)
    case 'gap':
      return gapLines(item, theme, width)
    default:
      item satisfies never
      return []
  }
}

/** Results whose call is not on this path. */
function resultLines({ results }: ToolResultItem, context: ItemContext, width: number): string[] {
  const { theme, isUnfolded = false } = context
  return results.flatMap(({ callId, isError, content }) => [
    ...titleLines(
      {
        sign: { text: isError ? '✗' : '✓', style: isError ? theme.error : theme.success },
        name: 'result',
        argument: callId,
        notes: [{ text: 'its call is not on this branch', style: theme.muted }],
      },
      { context, width },
    ),
    ...indentedBody(outputBody(contentText(content), { state: 'done', isUnfolded }), { ...context, width }),
  ])
}

function bashLines(item: BashItem, context: ItemContext, width: number): string[] {
  const { theme, isUnfolded = false } = context
  const isFine = item.exitCode === 0 && !item.cancelled
  return [
    ...titleLines(
      {
        sign: { text: '!', style: isFine ? theme.success : theme.error },
        name: 'you ran',
        argument: item.command,
        notes: [{ text: bashNote(item), style: isFine ? theme.muted : theme.error }],
      },
      { context, width },
    ),
    ...indentedBody(outputBody(item.output, { state: 'done', isUnfolded }), { ...context, width }),
  ]
}

export function bashNote({ exitCode, cancelled, truncated, excludeFromContext }: BashItem): string {
  const end = cancelled ? 'stopped' : exitCode === undefined ? 'outcome unknown' : `exit code ${exitCode}`
  const notes = [truncated ? 'output truncated' : '', excludeFromContext ? 'not shown to the model' : '']
  return [end, ...notes.filter((note) => note !== '')].join(' · ')
}

function compactionTitle({ tokensBefore }: CompactionItem, { summarized }: ItemContext): string {
  const messages = summarized === undefined ? 'Earlier messages' : counted(summarized, 'message')
  const tokens = tokensBefore === undefined ? '' : ` · ${counted(tokensBefore, 'token')} before`
  return `${messages} summarized${tokens}`
}

function summaryLines(
  { title, summary }: { title: string; summary: string },
  { theme, isUnfolded = false, highlighter }: ItemContext,
  width: number,
): string[] {
  const head = theme.accent(fitText(`${isUnfolded ? '▾' : '▸'} ${title}`, width))
  if (!isUnfolded) return [head]
  const lines = markdownLines(shownText(summary), { theme, width: width - 2, highlighter })
  return [head, ...lines.map((line) => `  ${line}`)]
}

function customLines({ custom }: CustomItem, context: ItemContext, width: number): string[] {
  const { theme, isUnfolded = false, highlighter } = context
  if (custom.type === 'message') {
    const text = contentText(custom.content)
    const told = toldDiagnostics(text)
    if (told) return diagnosticsLines(told, context, width)
    const [, name, facts = ''] = taggedFacts.exec(text) ?? []
    if (name === undefined) return markdownLines(shownText(text), { theme, width, highlighter })
    if (!isUnfolded) return []
    return noticeLines({ sign: '·', text: `${name}: ${facts.replaceAll('\n', ' · ')}`, style: theme.muted }, width)
  }
  if (!isUnfolded) return []
  const text = `${custom.customType}: ${JSON.stringify(custom.data).slice(0, longestData)}`
  return noticeLines({ sign: '·', text, style: theme.muted }, width)
}

/** New errors after the edits of the model. */
function diagnosticsLines(
  { title, lines }: ToldDiagnostics,
  { theme, isUnfolded = false }: ItemContext,
  width: number,
): string[] {
  const head = theme.warning(fitText(shownWords(`${isUnfolded ? '▾' : '▸'} ${title}`), width))
  if (!isUnfolded) return [head]
  const rows = lines.flatMap((line) => wrapLine([{ text: shownWords(line), style: theme.muted }], width - 2))
  return [head, ...rows.map((row) => `  ${paint(row)}`)]
}

const longestData = 2000

/** Environment information for the model, such as the date: hidden while folded. */
const taggedFacts = /^<([a-z][\w-]*)>\n([^]*)\n<\/\1>$/

function gapLines({ gap }: GapItem, theme: Theme, width: number): string[] {
  if (gap.type === 'not_loaded') return [theme.muted(fitText(gapText(gap), width))]
  return noticeLines({ sign: '!', text: gapText(gap), style: theme.warning }, width)
}

export function gapText(gap: GapItem['gap']): string {
  switch (gap.type) {
    case 'lost':
      return `${counted(gap.lines, 'line of the log is', 'lines of the log are')} lost here. Run tapetree log verify for details.`
    case 'damaged':
      return `A line of the log is damaged here: ${gap.reason}`
    case 'missing':
      return 'An entry is missing from the log here. Run tapetree log verify for details.'
    case 'not_loaded':
      return '… older messages are above'
    default:
      gap satisfies never
      return ''
  }
}

/** A message of the user, with its own background. Shown as typed, not as Markdown. */
function userLines({ content }: Pick<UserItem, 'content'>, context: ItemContext, width: number): string[] {
  const { theme, isUnfolded = false } = context
  const { lines, hidden } = foldLines(contentText(content), {
    limit: isUnfolded ? mostLines : foldedLines,
    from: 'start',
  })
  const wrapped = lines.flatMap((text) => wrapLine([{ text }], width - 3))
  const rows: StyledLine[] = isUnfolded ? wrapped : wrapped.slice(0, foldedRows)
  const cut = hidden > 0 ? counted(hidden, 'more line') : 'more'
  if (hidden > 0 || rows.length < wrapped.length) rows.push([{ text: `… ${cut} below`, style: theme.muted }])
  return rows.map((row, index) => {
    const free = Math.max(0, width - 2 - displayWidth(textOf(row)))
    const sign = theme.userMessage(index === 0 ? theme.accent('>') : ' ')
    return sign + theme.userMessage(` ${paint(row)}${' '.repeat(free)}`)
  })
}

/** A pasted file would push everything else out of view. */
const foldedLines = 30
const foldedRows = 40

/** An answer of the model: its parts in order, and how it ended if not normally. */
function assistantLines(item: AssistantItem, context: ItemContext, width: number): string[] {
  const lines = [...partBlocks(item, context, width)].flatMap((block) => block.lines)
  const end = [...endLines(item, context, width), ...workedLines(context, width)]
  return lines.length > 0 && end.length > 0 ? [...lines, '', ...end] : [...lines, ...end]
}

/** The call whose first line is this row of an answer. */
export function callAtRow(
  item: AssistantItem,
  context: ItemContext,
  { row, width }: { row: number; width: number },
): ToolCallPart | undefined {
  let start = 0
  for (const { lines, call } of partBlocks(item, context, width)) {
    if (start === row) return call
    start += lines.length
  }
  return undefined
}

interface PartBlock {
  lines: string[]
  call?: ToolCallPart
}

/** The parts of an answer and the empty lines between them. */
function* partBlocks(item: AssistantItem, context: ItemContext, width: number): Generator<PartBlock> {
  let before: AssistantPart['type'] | undefined
  for (const row of context.rows ?? groupItems([item]).rows) {
    if (row.type !== 'part' && row.type !== 'reads') continue
    const type = row.type === 'reads' ? 'tool_call' : row.part.type
    const place = { item, context, width }
    const drawn = row.type === 'reads' ? readsLines(row.calls, place) : partLines(row.part, place)
    if (drawn.length === 0) continue
    if (before && !(before === 'tool_call' && type === 'tool_call')) yield { lines: [''] }
    yield { lines: drawn, ...(row.type === 'part' && row.part.type === 'tool_call' && { call: row.part }) }
    before = type
  }
}

/** One line while folded: reasoning is long and rarely read. */
function reasoningLines(
  text: string,
  { context, width, time }: { context: ItemContext; width: number; time: string },
): string[] {
  const { theme, isUnfolded = false } = context
  const words = text.match(/\S+/g)?.length ?? 0
  if (words === 0) return []
  const head = `${isUnfolded ? '▾' : '▸'} Thought · ${counted(words, 'word')}${time === '' ? '' : ` · ${time}`}`
  const style: Style = (shown) => theme.muted(theme.emphasis(shown))
  const first = theme.muted(fitText(head, width))
  if (!isUnfolded) return [first]
  const lines = shownText(text.trim()).split('\n')
  return [
    first,
    ...lines.flatMap((line) => wrapLine([{ text: line, style }], width - 2)).map((row) => `  ${paint(row)}`),
  ]
}

interface Place {
  item: AssistantItem
  context: ItemContext
  width: number
}

/** Read-only calls that follow one another: one line while folded, unless one of them failed or asks. */
function readsLines(calls: readonly ToolCallPart[], place: Place): string[] {
  const { context, width } = place
  const { theme, isUnfolded = false, isLive = false, callNews } = context
  const isNotable = calls.some(
    ({ callId, result }) => result?.isError || (!result && (callNews?.(callId)?.isAsked || !isLive)),
  )
  if (isUnfolded || isNotable) return calls.flatMap((call) => partLines(call, place))
  const current = calls.find(({ result }) => !result)
  const sign = current ? { text: '●', style: theme.accent } : { text: '✓', style: theme.success }
  // What it looks at now, or all it has looked at.
  const subjects = current ? [callArgument(current)] : [...new Set(calls.map((call) => callArgument(call)))]
  const about = shownWords(subjects.filter((each) => each !== '').join(', '))
  const kinds = current ? new Map<string, ToolCallPart[]>() : Map.groupBy(calls, ({ name }) => name)
  if (kinds.size > 1) {
    const head = titleLines({ sign, name: 'Explored', argument: readsText(calls), notes: [] }, { context, width })
    return [...head, ...[...kinds].map(([name, some]) => theme.muted(fitText(`  ${subjectsText(name, some)}`, width)))]
  }
  const notes = [{ text: fitText(about, Math.floor(width / 2)), style: theme.muted }]
  return titleLines(
    { sign, name: current ? 'Exploring' : 'Explored', argument: readsText(calls), notes },
    { context, width },
  )
}

const readVerbs: ReadonlyMap<string, string> = new Map([
  ['read', 'Read'],
  ['grep', 'Searched'],
  ['find', 'Looked for'],
  ['ls', 'Listed'],
])

/** `Searched timeout, retries`. */
function subjectsText(name: string, calls: readonly ToolCallPart[]): string {
  const subjects = new Set(calls.map((call) => shownWords(callArgument(call))))
  return `${readVerbs.get(name) ?? name} ${[...subjects].filter(Boolean).join(', ')}`
}

function partLines(part: AssistantPart, { item, context, width }: Place): string[] {
  const { theme, highlighter, remember = (_part, draw) => draw() } = context
  switch (part.type) {
    case 'text':
      return remember(part, () => markdownLines(shownText(part.text), { theme, width, highlighter }))
    case 'reasoning': {
      const { durationMs } = item
      const time = durationMs === undefined ? '' : `answer took ${elapsedText(durationMs)}`
      return remember(part, () => reasoningLines(part.text, { context, width, time }))
    }
    case 'image':
      return [theme.muted(fitText(shownWords(imageText(part.source)), width))]
    case 'tool_call':
      return part.result ? remember(part, () => callLines(part, context, width)) : callLines(part, context, width)
    default:
      part satisfies never
      return []
  }
}

/** `Worked 19 s · 3 files +12 −4 · $0.03`. */
function workedLines({ theme, worked }: ItemContext, width: number): string[] {
  if (!worked) return []
  const { ms, files, added, removed, cost } = worked
  const spans: Span[] = [{ text: `– Worked ${elapsedText(ms)}`, style: theme.muted }]
  if (files > 0) {
    spans.push({ text: ` · ${counted(files, 'file')} `, style: theme.muted }, ...countSpans({ added, removed }, theme))
  }
  if (cost > 0) spans.push({ text: ` · ${costText(cost)}`, style: theme.muted })
  return wrapLine(spans, width).map(paint)
}

function endLines({ error, stopReason }: AssistantItem, { theme }: ItemContext, width: number): string[] {
  if (error) return errorLines(error, { theme, width })
  if (stopReason === 'aborted') return noticeLines({ sign: '–', text: 'Stopped here.', style: theme.muted }, width)
  if (stopReason !== 'length') return []
  return noticeLines({ sign: '!', text: 'The answer reached its maximum length.', style: theme.warning }, width)
}

interface Notice {
  sign: string
  /** Not yet harmless. */
  text: string
  style: Style
}

/** An event, in one color, with a hanging indent. */
export function noticeLines({ sign, text, style }: Notice, width: number): string[] {
  const lines = shownText(text).split('\n')
  const rows = lines.flatMap((line) => wrapLine([{ text: line, style }], width - 2))
  return rows.map((row, index) => (index === 0 ? `${style(sign)} ` : '  ') + paint(row))
}
