import { visibleWidth } from '@earendil-works/pi-tui'

export interface Grapheme {
  start: number
  end: number
  /** Columns in the terminal. */
  width: number
}

/** Calls back for each character as a person sees it. Only what is not plain Latin is looked at closely: that is slow. */
export function forEachGrapheme(text: string, visit: (grapheme: Grapheme) => void): void {
  let index = 0
  while (index < text.length) {
    if (isSimple(text, index) && isSimple(text, index + 1)) {
      visit({ start: index, end: index + 1, width: 1 })
      index++
      continue
    }
    const end = endOfComplex(text, index)
    for (const { segment } of segmenter.segment(text.slice(index, end))) {
      visit({ start: index, end: index + segment.length, width: visibleWidth(segment) })
      index += segment.length
    }
  }
}

const segmenter = new Intl.Segmenter(undefined, { granularity: 'grapheme' })

/** One column, and nothing that could belong to its neighbour. The end of the text counts as such. */
function isSimple(text: string, index: number): boolean {
  if (index >= text.length) return true
  const code = text.charCodeAt(index)
  if (code < 0x7f) return code >= 0x20
  return (code > 0xa0 && code < 0x300 && code !== 0xad) || (code >= 0x2500 && code < 0x2580)
}

function endOfComplex(text: string, start: number): number {
  let end = start + 1
  while (end < text.length && !(isSimple(text, end) && isSimple(text, end + 1))) end++
  return end
}
