import type { Token, Tokens } from '@earendil-works/pi-tui'
import { displayWidth } from '../../text/display-width.ts'
import type { Highlighter } from './highlight.ts'
import type { Style, Theme } from '../theme.ts'
import { inside, wrapLine, textOf, withoutJoins, type Span, type StyledLine } from './wrap-line.ts'

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
      return headingLines(token as Tokens.Heading, options)
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

/** The first level has a rule below, the second is in color, the others are bold. */
function headingLines(token: Tokens.Heading, { theme, width, style }: BlockOptions): StyledLine[] {
  const own = token.depth <= 2 ? theme.heading : theme.strong
  const lines = wrapped(inlineLines(token.tokens, theme, inside(style, own)), width)
  if (token.depth > 1) return lines
  const longest = Math.max(0, ...lines.map((line) => displayWidth(textOf(line))))
  return [...lines, [{ text: '═'.repeat(Math.min(width, longest)), style: theme.border }]]
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

/** Inline content of a paragraph, heading or cell, as lines: a line break in the source is one on the screen. */
function inlineLines(tokens: readonly Token[], theme: Theme, style?: Style): StyledLine[] {
  const lines: Span[][] = [[]]
  for (const { text, style: own } of spansOf(tokens, { theme, style })) {
    const [first = '', ...rest] = text.split('\n')
    lines.at(-1)?.push({ text: first, style: own })
    for (const piece of rest) lines.push([{ text: piece, style: own }])
  }
  return lines.map((line) => line.filter(({ text }) => text !== ''))
}

interface Surroundings {
  theme: Theme
  style: Style | undefined
}

function spansOf(tokens: readonly Token[], around: Surroundings): Span[] {
  return tokens.flatMap((token) => spansIn(token, around))
}

function spansIn(token: Token, { theme, style }: Surroundings): Span[] {
  const within = (own: Style): Span[] => spansOf(innerTokens(token) ?? [], { theme, style: inside(style, own) })
  switch (token.type) {
    case 'strong':
      return within(theme.strong)
    case 'em':
      return within(theme.emphasis)
    case 'del':
      return within(theme.strike)
    case 'codespan':
      return [{ text: wordsOf(token), style: inside(style, theme.code) }]
    case 'br':
      return [{ text: '\n' }]
    case 'link':
      return [...within(theme.link), ...addressOf(token, { theme, style })]
    case 'image':
      return [
        { text: `[image: ${wordsOf(token)}]`, style: inside(style, theme.muted) },
        ...addressOf(token, { theme, style }),
      ]
    case 'checkbox':
      return []
    case 'html':
      return [{ text: token.raw, style }]
    default: {
      // Plain text, in a list with its own tokens, and tokens of newer versions.
      const inner = innerTokens(token)
      return inner ? spansOf(inner, { theme, style }) : [{ text: wordsOf(token), style }]
    }
  }
}

function innerTokens(token: Token): Token[] | undefined {
  return 'tokens' in token ? token.tokens : undefined
}

function wordsOf(token: Token): string {
  return 'text' in token && typeof token.text === 'string' ? token.text : token.raw
}

/** Always shows the target of a link: its text may claim another one. */
function addressOf(token: Token, { theme, style }: Surroundings): Span[] {
  const address = 'href' in token && typeof token.href === 'string' ? token.href : ''
  const words = wordsOf(token)
  if (address === '' || words === address || `mailto:${words}` === address) return []
  return [{ text: ` (${address})`, style: inside(style, theme.muted) }]
}

interface TableOptions {
  theme: Theme
  width: number
  style: Style | undefined
}

/** Undefined if there is no room for columns. */
function tableLines({ header, rows, align }: Tokens.Table, options: TableOptions): StyledLine[] | undefined {
  const { theme, style } = options
  const columns = header.length
  const room = options.width - gap.length * (columns - 1)
  if (columns === 0 || room < columns * narrowest) return undefined
  const cells = [header, ...rows].map((row, index) =>
    header.map((_, column) => inlineLines(row[column]?.tokens ?? [], theme, index === 0 ? strong(options) : style)),
  )
  const widths = columnWidths(cells, room)
  const bar: Span = { text: gap, style: theme.border }
  const rule = [{ text: widths.map((width) => '─'.repeat(width)).join('─┼─'), style: theme.border }]
  const [top = [], ...below] = cells.map((row) => rowLines(row, { widths, align, bar }))
  return [...top, rule, ...below.flat()]
}

const gap = ' │ '
const narrowest = 3

function strong({ theme, style }: TableOptions): Style | undefined {
  return inside(style, theme.strong)
}

/** Natural widths, or shrinks the widest columns until all fit. */
function columnWidths(cells: StyledLine[][][], room: number): number[] {
  const widths: number[] = []
  for (const row of cells) {
    row.forEach((cell, column) => {
      widths[column] = Math.max(widths[column] ?? narrowest, ...cell.map((line) => displayWidth(textOf(line))))
    })
  }
  let total = widths.reduce((sum, width) => sum + width, 0)
  while (total > room) {
    const widest = widths.indexOf(Math.max(...widths))
    const [first = 0, second = 0] = widths.toSorted((left, right) => right - left)
    const less = Math.min(total - room, Math.max(1, first - second))
    widths[widest] = first - less
    total -= less
  }
  return widths
}

interface RowLayout {
  widths: number[]
  align: Tokens.Table['align']
  bar: Span
}

function rowLines(row: StyledLine[][], { widths, align, bar }: RowLayout): StyledLine[] {
  const wrapped = row.map((cell, column) => cell.flatMap((line) => wrapLine(line, widths[column] ?? narrowest)))
  const height = Math.max(1, ...wrapped.map((lines) => lines.length))
  return Array.from({ length: height }, (_, index) =>
    wrapped.flatMap((lines, column) => {
      const line = withoutJoins(lines[index] ?? [])
      const free = (widths[column] ?? narrowest) - displayWidth(textOf(line))
      const before = align[column] === 'right' ? free : align[column] === 'center' ? Math.floor(free / 2) : 0
      return [...(column === 0 ? [] : [bar]), space(before), ...line, space(free - before)]
    }),
  )
}

function space(columns: number): Span {
  return { text: ' '.repeat(Math.max(0, columns)) }
}
