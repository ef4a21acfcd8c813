import { ToolProblem } from '../tool-problem.ts'

/** A compiled pattern for paths. Matching takes linear time in the length of a path for each part. */
export interface Glob {
  /** `path` is relative to the start of the search, with slashes. */
  matches(path: string): boolean
  /**
   * Name patterns, one of which every match fits, using only letters, digits, `.`, `_`, `-`, `*` and `?`; for a
   * cheap first filter.
   */
  names: string[] | undefined
}

const maxAlternatives = 256

/**
 * `*` and `?` within a name, `**` for any number of folders, `[a-z]`, `{a,b}`, `\` to escape a character, and a
 * leading `!` to negate. Without a slash the pattern applies to the name, at any depth; with one it starts at
 * the root of the search. Names that begin with a dot are not special.
 */
export function compileGlob(pattern: string): Glob {
  if (pattern.startsWith('!')) {
    const opposite = compileGlob(pattern.slice(1))
    return { matches: (path) => !opposite.matches(path), names: undefined }
  }
  const alternatives = expandBraces(pattern).map(segmentsOf)
  const compiled = alternatives.map((segments) => segments.map(compileSegment))
  const names = alternatives.map((segments) => segments.at(-1) ?? '')
  return {
    matches: (path) => {
      const parts = path.split('/')
      return compiled.some((segments) => matchSegments(segments, parts))
    },
    names: names.every((name) => /^[\w.*?-]+$/.test(name)) && !names.includes('**') ? names : undefined,
  }
}

/** `a{b,c}d` is `abd` and `acd`. Braces without a comma are literal. */
function expandBraces(pattern: string): string[] {
  const done: string[] = []
  const open = [pattern]
  while (open.length > 0) {
    if (open.length + done.length > maxAlternatives) {
      throw new ToolProblem(`The pattern ${pattern} has more than ${maxAlternatives} alternatives.`)
    }
    const next = open.pop() ?? ''
    const group = findGroup(next)
    if (!group) done.push(next)
    else open.push(...group.choices.map((choice) => group.before + choice + group.after).reverse())
  }
  return done
}

/** The first braces with a comma at their own level. */
function findGroup(pattern: string): { before: string; choices: string[]; after: string } | undefined {
  for (let start = 0; start < pattern.length; start += 1) {
    if (pattern[start] === '\\') start += 1
    else if (pattern[start] === '{') {
      const group = readGroup(pattern, start)
      if (group) return group
    }
  }
  return undefined
}

function readGroup(pattern: string, start: number): ReturnType<typeof findGroup> {
  let depth = 0
  let choiceStart = start + 1
  const choices: string[] = []
  for (let at = start; at < pattern.length; at += 1) {
    const character = pattern[at]
    if (character === '\\') at += 1
    else if (character === '{') depth += 1
    else if (character === ',' && depth === 1) {
      choices.push(pattern.slice(choiceStart, at))
      choiceStart = at + 1
    } else if (character === '}') {
      depth -= 1
      if (depth > 0) continue
      if (choices.length === 0) return undefined
      choices.push(pattern.slice(choiceStart, at))
      return { before: pattern.slice(0, start), choices, after: pattern.slice(at + 1) }
    }
  }
  return undefined
}

function segmentsOf(pattern: string): string[] {
  const anchored = pattern.replace(/^(?:\.?\/)+/, '')
  const segments = anchored.split('/').filter((segment) => segment !== '')
  if (pattern.endsWith('/')) segments.push('**')
  if (segments.length === 1 && !pattern.includes('/')) segments.unshift('**')
  return segments
}

type Step = { type: 'character'; is: (character: string) => boolean } | { type: 'any-run' }
type Segment = 'any-folders' | Step[]

function compileSegment(segment: string): Segment {
  if (segment === '**') return 'any-folders'
  const steps: Step[] = []
  const characters = Array.from(segment)
  for (let at = 0; at < characters.length; at += 1) {
    const character = characters[at] ?? ''
    const set = character === '[' ? readSet(characters, at) : undefined
    if (character === '*') {
      if (steps.at(-1)?.type !== 'any-run') steps.push({ type: 'any-run' })
    } else if (character === '?') steps.push({ type: 'character', is: () => true })
    else if (set) {
      steps.push({ type: 'character', is: set.is })
      at = set.end
    } else {
      if (character === '\\' && at + 1 < characters.length) at += 1
      const literal = characters[at]
      steps.push({ type: 'character', is: (other) => other === literal })
    }
  }
  return steps
}

/** `[abc]`, `[a-z]`, `[!a]`, `[^a]`. An unclosed bracket is literal. */
function readSet(characters: string[], start: number): { is: (character: string) => boolean; end: number } | undefined {
  const isNegated = characters[start + 1] === '!' || characters[start + 1] === '^'
  const first = start + (isNegated ? 2 : 1)
  const end = characters.indexOf(']', first + 1)
  if (end === -1) return undefined
  const ranges: [string, string][] = []
  for (let at = first; at < end; at += 1) {
    const from = characters[at] ?? ''
    const to = characters[at + 2] ?? ''
    if (characters[at + 1] === '-' && at + 2 < end) {
      ranges.push([from, to])
      at += 2
    } else ranges.push([from, from])
  }
  return { is: (other) => ranges.some(([from, to]) => from <= other && other <= to) !== isNegated, end }
}

function matchSegments(segments: Segment[], parts: string[]): boolean {
  /** How many of the parts so far the segments so far can match. */
  let reachable = new Set([0])
  for (const [index, segment] of segments.entries()) {
    const next = new Set<number>()
    if (segment === 'any-folders') {
      const first = Math.min(...reachable)
      // At the end it matches at least one name: `src/**` is the content of src, not src itself.
      const least = index === segments.length - 1 ? first + 1 : first
      for (let count = least; count <= parts.length; count += 1) next.add(count)
    } else {
      for (const count of reachable) {
        const part = parts[count]
        if (part !== undefined && matchName(segment, part)) next.add(count + 1)
      }
    }
    if (next.size === 0) return false
    reachable = next
  }
  return reachable.has(parts.length)
}

/** Backtracks only to the last run: what an earlier one could match, the last one can match as well. */
function matchName(steps: Step[], name: string): boolean {
  const characters = Array.from(name)
  let step = 0
  let at = 0
  let retry: { step: number; at: number } | undefined
  while (at < characters.length || step < steps.length) {
    const next = steps[step]
    if (next?.type === 'any-run') {
      retry = { step, at }
      step += 1
    } else if (next?.type === 'character' && at < characters.length && next.is(characters[at] ?? '')) {
      step += 1
      at += 1
    } else {
      if (!retry || retry.at >= characters.length) return false
      retry.at += 1
      at = retry.at
      step = retry.step + 1
    }
  }
  return true
}
