import { isObject } from '@tapetree/session/util/json'
import { createHash } from 'node:crypto'

/** The same for equal values, whatever the order of their members. */
export function hashOf(value: unknown): string {
  return sha256Of(canonicalJson(value))
}

/** In hex. */
export function sha256Of(content: Uint8Array | string): string {
  return createHash('sha256').update(content).digest('hex')
}

function canonicalJson(value: unknown): string {
  return JSON.stringify(value, (_, member: unknown) => (isObject(member) ? sortMembers(member) : member))
}

function sortMembers(value: Record<string, unknown>): Record<string, unknown> {
  const names = Object.keys(value)
  // A null prototype keeps a member called `__proto__` a member. Numeric names come first, as in every object.
  const sorted: Record<string, unknown> = Object.create(null) as Record<string, unknown>
  for (const name of names.sort()) sorted[name] = value[name]
  return sorted
}
