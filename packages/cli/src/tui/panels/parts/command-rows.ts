import { displayWidth, forEachGrapheme } from '../../../text/display-width.ts'
import { paint, sliceLine, textOf, type Span, type StyledLine } from '../../markdown/wrap-line.ts'
import type { Style, Theme } from '../../theme.ts'

/**
 * A shell command in colors. Nothing of it is cut. A line that does not fit has a row for each part of a chain, and is broken between words;
 * a row that continues the one above begins with `⤷`. The command is harmless.
 */
export function commandRows(command: string, { theme, width }: { theme: Theme; width: number }): string[] {
  const room = Math.max(1, width - gutter.length)
  const rows: string[] = []
  for (const line of shellLines(command.replaceAll('\t', '    '), theme)) {
    for (const part of partsOf(line, room)) {
      for (const [index, row] of wordRows(part, room).entries()) {
        const sign = index > 0 ? '⤷ ' : rows.length === 0 ? '$ ' : gutter
        rows.push(theme.muted(sign) + paint(row))
      }
    }
  }
  return rows
}

/** Breaks a line after a space that still fits, and only otherwise at the full width: keeps every letter and space. */
export function wordRows(line: StyledLine, columns: number): StyledLine[] {
  const text = textOf(line)
  const width = Math.max(1, columns)
  const rows: StyledLine[] = []
  let start = 0
  let used = 0
  let afterSpace = { at: 0, used: 0 }
  forEachGrapheme(text, (grapheme) => {
    if (used > 0 && used + grapheme.width > width) {
      const isBetween = afterSpace.at > start
      const at = isBetween ? afterSpace.at : grapheme.start
      rows.push(sliceLine(line, start, at))
      used = isBetween ? used - afterSpace.used : 0
      start = at
    }
    used += grapheme.width
    if (text[grapheme.start] === ' ') afterSpace = { at: grapheme.end, used }
  })
  return [...rows, sliceLine(line, start, text.length)]
}

const gutter = '  '

interface Part {
  from: number
  to: number
}

interface ShellLine {
  spans: Span[]
  /** The offsets behind operators that stand outside of quotes and brackets. */
  ends: number[]
}

/** A chain of more parts has as many of them in a row as fit. */
const mostParts = 8

/** Breaks a line that does not fit behind its operators: a shell reads it the same with a line break there. */
function partsOf({ spans, ends }: ShellLine, room: number): StyledLine[] {
  if (ends.length === 0 || wordRows(spans, room).length === 1) return [spans]
  const text = textOf(spans)
  const parts: Part[] = []
  let from = 0
  for (const to of [...ends, text.length]) {
    if (from < to) parts.push({ from, to })
    from = to
    // A space after an operator means nothing.
    while (text[from] === ' ') from++
  }
  return joinedParts(parts, text, room).map((part) => sliceLine(spans, part.from, part.to))
}

function joinedParts(parts: readonly Part[], text: string, room: number): Part[] {
  if (parts.length <= mostParts) return [...parts]
  const rows: Part[] = []
  for (const part of parts) {
    const last = rows.at(-1)
    if (last && displayWidth(text.slice(last.from, part.to)) <= room) last.to = part.to
    else rows.push({ ...part })
  }
  return rows
}

/** Quotes, comments, operators between commands, redirections, and words. */
const pieces =
  /(?<space>\s+)|(?<quoted>'[^']*'?|"(?:\\[^]|[^"\\])*"?)|(?<comment>(?<=^|\s)#[^\n]*)|(?<open>\$?\()|(?<close>\))|(?<chain>&&|\|\||;;|\|&|[;|]|&(?!>))|(?<redirect>[<>]&?|&>)|(?<word>(?:\\[^]|[^\s'"\\;&|()<>])+)|[^]/gu

/** The lines of a command, in colors. */
function shellLines(command: string, { accent, muted, syntax }: Theme): ShellLine[] {
  let line: ShellLine = { spans: [], ends: [] }
  const lines = [line]
  let depth = 0
  let isProgram = true
  for (const { 0: piece, groups = {} } of command.matchAll(pieces)) {
    const kind = Object.keys(groups).find((name) => groups[name] !== undefined)
    let style: Style | undefined
    if (kind === 'space') isProgram ||= piece.includes('\n')
    else if (kind === 'comment') style = muted
    else if (kind === 'quoted') style = syntax['string']
    else if (kind === 'word') style = isProgram && !/^\w+=/.test(piece) ? accent : undefined
    else style = syntax['keyword']
    if (kind === 'chain' || kind === 'open') isProgram = true
    else if (kind === 'quoted' || style === accent) isProgram = false
    if (kind === 'open') depth++
    else if (kind === 'close') depth = Math.max(0, depth - 1)
    const [first = '', ...rest] = piece.split('\n')
    line.spans.push({ text: first, style })
    for (const text of rest) {
      line = { spans: [{ text, style }], ends: [] }
      lines.push(line)
    }
    if (kind === 'chain' && depth === 0) line.ends.push(textOf(line.spans).length)
  }
  return lines
}
