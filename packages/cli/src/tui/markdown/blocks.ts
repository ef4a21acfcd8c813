import type { Token, Tokens } from '@earendil-works/pi-tui'
import { displayWidth } from '../../text/display-width.ts'
import type { Highlighter } from './highlight.ts'
import type { Style, Theme } from '../theme.ts'
import { inlineLines, innerTokens } from './inline.ts'
import { inside, type Span, type StyledLine } from './styled-line.ts'
import { tableLines } from './table.ts'
import { wrapLine } from './wrap-line.ts'

export interface BlockOptions {
  theme: Theme
  width: number
  highlighter?: Highlighter | undefined
  /** The style of the enclosing block, such as a quotation. */
  style?: Style | undefined
}

/** Blocks below each other, separated by an empty line, each line within the width. */
export function blockLines(tokens: readonly Token[], options: BlockOptions): StyledLine[] {
  const lines: StyledLine[] = []
  for (const token of tokens) {
    const block = linesOf(token, options)
    if (block.length === 0) continue
    if (lines.length > 0) lines.push([])
    for (const line of block) lines.push(line)
  }
  return lines
}

function linesOf(token: Token, options: BlockOptions): StyledLine[] {
  const { theme, width, style } = options
  switch (token.type) {
    case 'heading':
      return wrapped(inlineLines(innerTokens(token) ?? [], theme, inside(style, theme.heading)), width)
    case 'code':
      return codeLines(token as Tokens.Code, options)
    case 'list':
      return listLines(token as Tokens.List, options)
    case 'blockquote':
      return quoteLines(token as Tokens.Blockquote, options)
    case 'table':
      return tableLines(token as Tokens.Table, { theme, width, style }) ?? rawLines(token, options)
    case 'hr':
      return [[{ text: '─'.repeat(Math.min(width, longestRule)), style: theme.border }]]
    case 'html':
      return rawLines(token, options)
    case 'space':
    case 'def':
    case 'checkbox':
      return []
    default: {
      const inner = innerTokens(token)
      return inner ? wrapped(inlineLines(inner, theme, style), width) : rawLines(token, options)
    }
  }
}

const longestRule = 60
/** Below this width nothing is indented any more. */
const narrow = 16

function wrapped(lines: readonly StyledLine[], width: number): StyledLine[] {
  return lines.flatMap((line) => wrapLine(line, width))
}

function rawLines({ raw }: Token, { width, style }: BlockOptions): StyledLine[] {
  const lines = raw.trimEnd().split('\n')
  return wrapped(
    lines.map((text) => [{ text, style }]),
    width,
  )
}

function codeLines({ text, lang = '' }: Tokens.Code, { theme, width, highlighter }: BlockOptions): StyledLine[] {
  const plain = (): StyledLine[] => text.split('\n').map((line) => [{ text: line, style: theme.code }])
  const lines = highlighter?.highlight(text, lang, theme) ?? plain()
  return indented(lines, { first: [{ text: '  ' }], width })
}

function quoteLines({ tokens }: Tokens.Blockquote, options: BlockOptions): StyledLine[] {
  const { theme, width } = options
  const style = inside(options.style, theme.quote)
  if (width < narrow) return blockLines(tokens, { ...options, style })
  const bar: Span = { text: '│ ', style: theme.border }
  return blockLines(tokens, { ...options, style, width: width - 2 }).map((line) => [bar, ...line])
}

function listLines({ items, ordered, start, loose }: Tokens.List, options: BlockOptions): StyledLine[] {
  const lines: StyledLine[] = []
  items.forEach((item, index) => {
    if (loose && index > 0) lines.push([])
    const number = (typeof start === 'number' ? start : 1) + index
    const box = item.task ? `[${item.checked ? 'x' : ' '}] ` : ''
    const sign = `${ordered ? `${number}.` : '•'} ${box}`
    for (const line of itemLines(item, sign, options)) lines.push(line)
  })
  return lines
}

function itemLines({ tokens, loose }: Tokens.ListItem, sign: string, options: BlockOptions): StyledLine[] {
  const { theme, width } = options
  const room = width < narrow ? width : width - displayWidth(sign)
  const inner = { ...options, width: room }
  const lines = loose ? blockLines(tokens, inner) : tokens.flatMap((token) => linesOf(token, inner))
  return indented(lines.length === 0 ? [[]] : lines, { first: [{ text: sign, style: theme.accent }], width })
}

/** Wraps long lines with a hanging indent. */
function indented(lines: readonly StyledLine[], { first, width }: { first: StyledLine; width: number }): StyledLine[] {
  if (width < narrow) return wrapped(lines, width)
  const indent = first.reduce((sum, { text }) => sum + displayWidth(text), 0)
  const blank: StyledLine = [{ text: ' '.repeat(indent) }]
  return wrapped(lines, width - indent).map((line, index) => [...(index === 0 ? first : blank), ...line])
}
