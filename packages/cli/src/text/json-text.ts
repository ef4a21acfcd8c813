import { snakeCase } from '@tapetree/session/util/json'
/** Characters that JSON does not escape and that can follow an escape in a terminal or change the text direction. */
const dangerous = /[\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ufff9-\ufffb]/g

/** One line of JSON that is safe for a terminal. Its value is the same. */
export function jsonText(value: unknown): string {
  return harmlessJson(JSON.stringify(value))
}

/** The same for JSON text: these characters appear only inside its strings. */
export function harmlessJson(json: string): string {
  return json.replaceAll(dangerous, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`)
}

/** Foreign data keeps its names: tool input, custom data, provider responses, lines of others. Labels are keyed by entry. */
const foreign = new Set(['input', 'data', 'params', 'providerMetadata', 'inputSchema', 'line', 'labels'])

/** The same value with its members named as on disk and on the wire. */
export function snakeNames(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(snakeNames)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value).map(([name, member]) => [snakeCase(name), foreign.has(name) ? member : snakeNames(member)]),
  )
}
