import { oneLine } from '../util/visible-text.ts'

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
