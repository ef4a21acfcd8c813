import { shownText } from '../markdown/shown-text.ts'
import { paint } from '../markdown/styled-line.ts'
import { wrapLine } from '../markdown/wrap-line.ts'
import type { Style } from '../theme.ts'

export interface Notice {
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
