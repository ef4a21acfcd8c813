import { visibleText } from '../permissions/visible-text.ts'

/** A name on one line of a screen: nothing in it moves the cursor, and nothing in it can hide. */
export function visibleName(name: string): string {
  return visibleText(name).replaceAll('\n', String.raw`\u{a}`)
}
