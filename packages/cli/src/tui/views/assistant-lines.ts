import type { AssistantItem, AssistantPart } from '@tapetree/session'
import { imageText } from '../../text/content-text.ts'
import { counted, elapsedText } from '../../text/amounts.ts'
import { fitText } from '../../text/display-width.ts'
import { markdownLines } from '../markdown/markdown-lines.ts'
import { shownText, shownWords } from '../markdown/shown-text.ts'
import { paint } from '../markdown/styled-line.ts'
import { wrapLine } from '../markdown/wrap-line.ts'
import type { Style } from '../theme.ts'
import { callLines } from './call-lines.ts'
import type { ItemContext } from './item-context.ts'
import { noticeLines } from './notice-lines.ts'

/** An answer of the model: its parts in order, and how it ended if not normally. */
export function assistantLines(item: AssistantItem, context: ItemContext, width: number): string[] {
  const lines: string[] = []
  let before: AssistantPart['type'] | undefined
  for (const part of item.parts) {
    const drawn = partLines(part, { item, context, width })
    if (drawn.length === 0) continue
    if (before && !(before === 'tool_call' && part.type === 'tool_call')) lines.push('')
    for (const line of drawn) lines.push(line)
    before = part.type
  }
  const end = endLines(item, context, width)
  return lines.length > 0 && end.length > 0 ? [...lines, '', ...end] : [...lines, ...end]
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

function endLines({ error, stopReason }: AssistantItem, { theme }: ItemContext, width: number): string[] {
  if (error) return noticeLines({ sign: '✗', text: `${error.message} (${error.kind})`, style: theme.error }, width)
  if (stopReason === 'aborted') return noticeLines({ sign: '–', text: 'Stopped here.', style: theme.muted }, width)
  if (stopReason !== 'length') return []
  return noticeLines({ sign: '!', text: 'The answer reached its maximum length.', style: theme.warning }, width)
}
