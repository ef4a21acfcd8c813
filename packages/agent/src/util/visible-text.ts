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

/**
 * Text from a file between tags that say where it is from. The text stays as it is, but for an end tag of this name in it: it
 * cannot reach beyond its own end.
 */
export function taggedText(tag: string, attributes: Readonly<Record<string, string>>, text: string): string {
  const named = Object.entries(attributes).map(([name, value]) => ` ${name}="${escapeMarkup(oneLine(value))}"`)
  const inside = text.replace(new RegExp(`<(?=/${tag})`, 'gi'), '&lt;')
  return `<${tag}${named.join('')}>\n${inside}\n</${tag}>`
}

export function escapeMarkup(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;')
}
