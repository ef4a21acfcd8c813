/**
 * Text on which a person bases a decision: control, bidirectional and invisible characters are escaped, so that nothing
 * in it can hide. Line breaks are kept.
 */
export function visibleText(text: string): string {
  return text.toWellFormed().replace(/[^\P{C}\n]|[\p{Zl}\p{Zp}]|(?! )\p{Zs}/gu, (letter) => {
    const code = letter.codePointAt(0)?.toString(16) ?? ''
    return `\\u{${code}}`
  })
}

/** An untrusted name or path for a sentence: on one line, without invisible characters. */
export function oneLine(text: string): string {
  return visibleText(text).replaceAll('\n', '\\n')
}

/** A name on one line of a screen, without control or invisible characters. */
export function visibleName(name: string): string {
  return visibleText(name).replaceAll('\n', String.raw`\u{a}`)
}

/**
 * Text of a file between tags with its origin. The text is unchanged, except for an end tag with this name: it cannot
 * escape from its block.
 */
export function taggedText(tag: string, attributes: Readonly<Record<string, string>>, text: string): string {
  const named = Object.entries(attributes).map(([name, value]) => ` ${name}="${escapeMarkup(oneLine(value))}"`)
  const inside = text.replace(new RegExp(`<(?=/${tag})`, 'gi'), '&lt;')
  return `<${tag}${named.join('')}>\n${inside}\n</${tag}>`
}

export function escapeMarkup(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;')
}
