/**
 * A path with wildcards, split at its slashes. Rules, secret paths and the words of a shell command are all such
 * patterns, so that one function compares them: is there a path that two patterns both match?
 */
export type PathPattern = readonly Component[]

/** `**` matches any number of components, also none. */
type Component = '**' | NamePattern

export interface NamePattern {
  readonly tokens: readonly Token[]
  /** A shell wildcard at the start of a name does not match names that start with a dot. */
  readonly skipsHidden: boolean
}

/** One character, or a wildcard for one or for many. */
export type Token = string | typeof one | typeof many

export const one = 1
export const many = 2

/** The pattern that matches exactly one path. */
export function exactPath(path: string): PathPattern {
  return componentsOf(path).map((name) => ({ tokens: [...name], skipsHidden: false }))
}

/** Parses `*` and `?` within a name, and `**` as a whole name. Everything else is literal, also brackets and braces. */
export function parsePathPattern(glob: string): PathPattern {
  return componentsOf(glob).map((name) => {
    if (name === '**') return name
    const tokens = [...name].map((letter): Token => (letter === '*' ? many : letter === '?' ? one : letter))
    return { tokens, skipsHidden: false }
  })
}

/** Whether some path matches both. */
export function meets(left: PathPattern, right: PathPattern): boolean {
  return sequencesMeet(left, right, {
    isRepeated: (component) => component === '**',
    areEqual: (a, b) => a === '**' || b === '**' || namesMeet(a, b),
  })
}

/** Whether it may match this path or something below it. */
export function meetsBelow(pattern: PathPattern, place: PathPattern): boolean {
  return meets(pattern, [...place, '**'])
}

/** Its text, if it matches exactly one path. */
export function exactText(pattern: PathPattern): string | undefined {
  let text = ''
  for (const component of pattern) {
    if (component === '**' || component.tokens.some((token) => typeof token !== 'string')) return undefined
    text += `/${component.tokens.join('')}`
  }
  return text
}

function namesMeet(left: NamePattern, right: NamePattern): boolean {
  if (left.skipsHidden && right.tokens[0] === '.') return false
  if (right.skipsHidden && left.tokens[0] === '.') return false
  return sequencesMeet(left.tokens, right.tokens, {
    isRepeated: (token) => token === many,
    areEqual: (a, b) => a === b || a === one || b === one,
  })
}

interface Comparison<Item> {
  isRepeated: (item: Item) => boolean
  areEqual: (left: Item, right: Item) => boolean
}

/**
 * Compares two sequences in which an item may match any number of others. The time is bounded by the product of their
 * lengths.
 */
function sequencesMeet<Item>(left: readonly Item[], right: readonly Item[], comparison: Comparison<Item>): boolean {
  const { isRepeated, areEqual } = comparison
  // reached[j]: the items of `left` so far can match the first j items of `right`.
  let reached = [true]
  for (const [index, item] of right.entries()) reached.push(isRepeated(item) && reached[index] === true)
  for (const item of left) {
    const next = [isRepeated(item) && reached[0] === true]
    for (const [index, other] of right.entries()) {
      const repeats = (isRepeated(item) || isRepeated(other)) && (reached[index + 1] || next[index])
      next.push(repeats === true || (areEqual(item, other) && reached[index] === true))
    }
    reached = next
  }
  return reached[right.length] === true
}

function componentsOf(path: string): string[] {
  return path.split('/').filter((name) => name !== '' && name !== '.')
}
