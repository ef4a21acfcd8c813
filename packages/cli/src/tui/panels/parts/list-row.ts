import { displayWidth, fitText, padded } from '../../../text/display-width.ts'
import type { Style, Theme } from '../../theme.ts'

interface ListRow {
  isSelected: boolean
  /** Harmless and without colours, as all of this. */
  text: string
  style?: Style
  /** Behind the text, where there is room; never at the cost of the text. */
  detail?: string
  /** At the right end, always whole. */
  aside?: string
}

/** One row of a list. What is selected has a sign before it, so that it is told without colours. */
export function listRow(
  { isSelected, text, style, detail = '', aside = '' }: ListRow,
  theme: Theme,
  width: number,
): string {
  const room = width - 2 - (aside === '' ? 0 : displayWidth(aside) + 1)
  const shown = fitText(text, room)
  const left = room - displayWidth(shown) - 2
  const more = detail === '' || left < 6 ? '' : `  ${fitText(detail, left)}`
  const gap = ' '.repeat(Math.max(0, room - displayWidth(shown) - displayWidth(more)))
  const end = aside === '' ? '' : ` ${aside}`
  if (isSelected) return theme.selected(padded(`› ${shown}${more}${gap}${end}`, width))
  return `  ${style ? style(shown) : shown}${theme.muted(more)}${gap}${theme.muted(end)}`
}
