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
