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
