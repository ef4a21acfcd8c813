import { createHash } from 'node:crypto'

/** The same for equal values, whatever the order of their members. */
export function hashOf(value: unknown): string {
  return createHash('sha256').update(canonicalJson(value)).digest('hex')
}

function canonicalJson(value: unknown): string {
  return JSON.stringify(value, (_, member: unknown) => (isPlainObject(member) ? sortMembers(member) : member))
}

function sortMembers(value: Record<string, unknown>): Record<string, unknown> {
  const names = Object.keys(value)
  // A null prototype keeps a member called `__proto__` a member. Numeric names come first, as in every object.
  const sorted: Record<string, unknown> = Object.create(null) as Record<string, unknown>
  for (const name of names.sort()) sorted[name] = value[name]
  return sorted
}

function isPlainObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
