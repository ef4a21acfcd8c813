import { isObject } from '@tapetree/session/util/json'

/** A request for the rules of its format. */
export interface CheckedRequest {
  body: Json
  model: string
  /** The compatible host that the provider imitates, such as `groq`. */
  host: string | undefined
}

/** A rule of a provider for every request. */
interface RequestRule {
  /** The rule, in one sentence. */
  demand: string
  /** Returns the path of the first member that breaks the rule, or undefined if the request complies. */
  violation: (request: CheckedRequest) => string | undefined
}

export type RuleTable = Readonly<Record<string, RequestRule>>

export interface BrokenRule {
  /** The key of the rule in the table of its format. */
  rule: string
  /** The path of the member that breaks it. */
  at: string
  demand: string
}

export function brokenRules(rules: RuleTable, request: CheckedRequest): BrokenRule[] {
  return Object.entries(rules).flatMap(([rule, { demand, violation }]) => {
    const at = violation(request)
    return at === undefined ? [] : [{ rule, at, demand }]
  })
}

export type Json = Readonly<Record<string, unknown>>

/** A member of a list with its path in the request. */
export interface Placed {
  at: string
  value: Json
}

/** The objects of a list with their paths. Empty if it is not a list. */
export function placed(list: unknown, at: string): Placed[] {
  return Array.isArray(list) ? list.map((value, index) => ({ at: `${at}.${index}`, value: asObject(value) })) : []
}

export function firstAt<Item extends { at: string }>(
  items: readonly Item[],
  isBroken: (item: Item) => boolean,
): string | undefined {
  return items.find(isBroken)?.at
}

/** The first path that `find` returns. */
export function firstOf(
  items: Placed[],
  find: (item: Placed, place: number) => string | undefined,
): string | undefined {
  for (const [place, item] of items.entries()) {
    const at = find(item, place)
    if (at !== undefined) return at
  }
  return undefined
}

/** The path of the first item with the same key as an earlier item. */
export function firstRepeated<Item extends { at: string }>(
  items: readonly Item[],
  keyOf: (item: Item) => unknown,
): string | undefined {
  const seen = new Set<unknown>()
  return firstAt(items, (item) => {
    const key = keyOf(item)
    if (key === undefined) return false
    const isRepeated = seen.has(key)
    seen.add(key)
    return isRepeated
  })
}

export { isObject }

export function asObject(value: unknown): Json {
  return isObject(value) ? value : {}
}

export function isEmptyList(value: unknown): boolean {
  return !Array.isArray(value) || value.length === 0
}

export function matches(pattern: RegExp, value: unknown): boolean {
  return typeof value === 'string' && pattern.test(value)
}

/** Whether a string is the JSON of an object. */
export function isJsonOfObject(text: unknown): boolean {
  if (typeof text !== 'string') return false
  try {
    return isObject(JSON.parse(text))
  } catch {
    return false
  }
}
