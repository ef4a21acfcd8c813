import { visibleText } from '../permissions/visible-text.ts'

/** A name or a path from outside, for a sentence: on one line, and with nothing in it that cannot be seen. */
export function oneLine(text: string): string {
  return visibleText(text).replaceAll('\n', '\\n')
}
