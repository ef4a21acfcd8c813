import { wrapTextWithAnsi } from '@earendil-works/pi-tui'
import { forEachGrapheme } from '../../../text/display-width.ts'

/** Prose, wrapped between words. */
export function wordWrapped(text: string, columns: number): string[] {
  return wrapTextWithAnsi(untabbed(text), Math.max(1, columns)).map((line) => line.trimEnd())
}

/** Commands and paths, wrapped only at the full width: keeps every letter and space. */
export function hardWrapped(text: string, columns: number): string[] {
  return untabbed(text)
    .split('\n')
    .flatMap((line) => hardWrappedLine(line, Math.max(1, columns)))
}

function hardWrappedLine(line: string, columns: number): string[] {
  const lines: string[] = []
  let start = 0
  let used = 0
  forEachGrapheme(line, (grapheme) => {
    if (used > 0 && used + grapheme.width > columns) {
      lines.push(line.slice(start, grapheme.start))
      ;({ start } = grapheme)
      used = 0
    }
    used += grapheme.width
  })
  return [...lines, line.slice(start)]
}

function untabbed(text: string): string {
  return text.replaceAll('\t', '    ')
}
