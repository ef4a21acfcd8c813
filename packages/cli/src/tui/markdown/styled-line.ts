import type { Style } from '../theme.ts'

/** A span of text in one style. The text is harmless and has no line breaks or tabs. */
export interface Span {
  readonly text: string
  readonly style?: Style | undefined
}

export type StyledLine = readonly Span[]

/** Opens and closes each span separately: no color runs over the end of a line. */
export function paint(line: StyledLine): string {
  return line.map(({ text, style }) => (style ? style(text) : text)).join('')
}

export function textOf(line: StyledLine): string {
  return line.map(({ text }) => text).join('')
}

/** The style of a nested element. */
export function inside(outer: Style | undefined, inner: Style | undefined): Style | undefined {
  if (!outer || !inner) return outer ?? inner
  return (text) => outer(inner(text))
}
