/** What may follow an escape in a terminal, or turn the direction of its text, and that JSON leaves as it is. */
const dangerous = /[\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ufff9-\ufffb]/g

/** One line of JSON in which nothing can mean anything to a terminal. It says the same. */
export function jsonText(value: unknown): string {
  return harmlessJson(JSON.stringify(value))
}

/** The same for JSON that is text already: these characters stand only within its strings. */
export function harmlessJson(json: string): string {
  return json.replaceAll(dangerous, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`)
}

/** What is not ours keeps its names: tool input, custom data, what a provider said, lines of others; and labels are named by entries. */
const foreign = new Set(['input', 'data', 'params', 'providerMetadata', 'inputSchema', 'line', 'labels'])

/** The same value with its members named as on disk and on the wire. */
export function snakeNames(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(snakeNames)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value).map(([name, member]) => [snakeCase(name), foreign.has(name) ? member : snakeNames(member)]),
  )
}

function snakeCase(name: string): string {
  return name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
}
