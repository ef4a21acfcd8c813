import type { Style } from '../theme.ts'

/** A piece of text in one style. The text is harmless already and has no line breaks or tabs. */
export interface Span {
  readonly text: string
  readonly style?: Style | undefined
}

export type StyledLine = readonly Span[]

/** Each piece is opened and closed by itself: no colour runs over the end of a line. */
export function paint(line: StyledLine): string {
  return line.map(({ text, style }) => (style ? style(text) : text)).join('')
}

export function textOf(line: StyledLine): string {
  return line.map(({ text }) => text).join('')
}

/** The style of something inside something else. */
export function inside(outer: Style | undefined, inner: Style | undefined): Style | undefined {
  if (!outer || !inner) return outer ?? inner
  return (text) => outer(inner(text))
}
