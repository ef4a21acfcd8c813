import { counted } from '../../text/amounts.ts'
import { displayWidth } from '../../text/display-width.ts'
import { harmless, harmlessLine } from '../../text/harmless.ts'

/** Foreign text for the screen: harmless, without tabs, and cut to a readable length. */
export function shownText(text: string): string {
  const head = text.length > maxText ? text.slice(0, maxText) : text
  const shown = head.split('\n').map(shownLine).join('\n')
  const left = text.length - head.length
  return left === 0 ? shown : `${shown}\n… ${counted(left, 'more character')} not shown`
}

/** A unified diff. Tabs are expanded without the sign before them. */
export function shownDiff(diff: string): string {
  const head = diff.length > maxText ? diff.slice(0, maxText) : diff
  const lines = head
    .split('\n')
    .map((line) => (/^[-+ ]/.test(line) ? line.slice(0, 1) + shownLine(line.slice(1)) : shownLine(line)))
  const left = diff.length - head.length
  return left === 0 ? lines.join('\n') : [...lines, `… ${counted(left, 'more character')} not shown`].join('\n')
}

/** One line of it. Sanitizes each line separately, so that the number of lines stays the same. */
export function shownLine(line: string): string {
  const head = line.length > maxLine ? line.slice(0, maxLine) : line
  const shown = withoutTabs(harmless(head.replace(/\r$/, '').toWellFormed()))
  const left = line.length - head.length
  return left === 0 ? shown : `${shown}… ${counted(left, 'more character')} on this line`
}

/** A name, a path or a command, on one line. Only its beginning has room. */
export function shownWords(words: string): string {
  return harmlessLine(words.slice(0, maxWords).toWellFormed())
}

const maxText = 200_000
const maxLine = 10_000
const maxWords = 2000
const tabStop = 4

function withoutTabs(line: string): string {
  if (!line.includes('\t')) return line
  const [first = '', ...rest] = line.split('\t')
  let columns = displayWidth(first)
  const pieces = rest.map((piece) => {
    const space = tabStop - (columns % tabStop)
    columns += space + displayWidth(piece)
    return ' '.repeat(space) + piece
  })
  return first + pieces.join('')
}
