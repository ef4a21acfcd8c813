/**
 * Text for a person who decides by it: letters that move the cursor, change the direction or cannot be seen are written out, so that
 * nothing in it can hide. Lines stay lines.
 */
export function visibleText(text: string): string {
  return text.toWellFormed().replace(/[^\P{C}\n]|[\p{Zl}\p{Zp}]|(?! )\p{Zs}/gu, (letter) => {
    const code = letter.codePointAt(0)?.toString(16) ?? ''
    return `\\u{${code}}`
  })
}

/** A name or a path from outside, for a sentence: on one line, and with nothing in it that cannot be seen. */
export function oneLine(text: string): string {
  return visibleText(text).replaceAll('\n', '\\n')
}

/** A name on one line of a screen: nothing in it moves the cursor, and nothing in it can hide. */
export function visibleName(name: string): string {
  return visibleText(name).replaceAll('\n', String.raw`\u{a}`)
}
