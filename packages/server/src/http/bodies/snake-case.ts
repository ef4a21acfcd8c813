/** What is not ours keeps its names: tool input, custom data, what a provider said. */
const foreign = new Set(['input', 'data', 'params', 'providerMetadata', 'inputSchema'])

/** The same value with members as they are named on the wire. */
export function toWire(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(toWire)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value).map(([name, member]) => [snakeCase(name), foreign.has(name) ? member : toWire(member)]),
  )
}

function snakeCase(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
}
