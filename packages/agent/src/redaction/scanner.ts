import { AnchorAutomaton, type Hit } from './anchor-automaton.ts'
import { families } from './families.ts'
import { maxLookBehind, type SecretFamily } from './family.ts'
import { formsOf, minLength } from './known-values.ts'
import { partialPattern } from './partial-pattern.ts'
import { allowanceOf, type RedactionPolicy } from './redaction-policy.ts'

/** Where a scan stands in a text. */
export interface ScanPosition {
  text: string
  /** Where to begin; up to `maxLookBehind` characters that stand before it are looked at, too. */
  from: number
  /** A secret ended right there. */
  isAfterSecret: boolean
  /** False while more text may come. */
  isWhole: boolean
}

/** What is decided: everything before `end` is in `output`. */
export interface Scanned {
  output: string
  end: number
  isAfterSecret: boolean
}

/** What may stand at an anchor. */
type Candidate =
  | { type: 'family'; family: SecretFamily; whole: RegExp; partial: RegExp }
  | { type: 'value'; name: string; value: string }
  /** What was redacted before stays as it is, so that redacting twice changes nothing. */
  | { type: 'marker'; whole: RegExp; partial: RegExp }

type Finding = { start: number; end: number; replacement: string | undefined }

/** Replaces secrets by markers, from left to right: at each anchor, the first candidate that fits wins. */
export class Scanner {
  readonly #automaton: AnchorAutomaton<Candidate>
  readonly #allowances: Allowances

  constructor(candidates: readonly (readonly [anchor: string, Candidate])[], allowances: Allowances) {
    this.#automaton = new AnchorAutomaton(candidates)
    this.#allowances = allowances
  }

  scan({ text, from, isAfterSecret, isWhole }: ScanPosition): Scanned {
    const automaton = this.#automaton
    const { next, firstHit, canSkip } = automaton
    let output = ''
    let copied = from
    let afterSecret = isAfterSecret ? from : -1
    let state = 0
    for (let index = automaton.skip(text, from); index < text.length; index++) {
      // Always within the table.
      state = next[(state << 7) | (text.charCodeAt(index) & 127)] as number
      if (canSkip && state === 0) index = automaton.skip(text, index + 1) - 1
      if (state < firstHit) continue
      const finding = this.#look(automaton.hitsOf(state), { text, end: index + 1, afterSecret, isWhole })
      if (finding === 'open') {
        const end = index + 1 - automaton.depthOf(state)
        return { output: output + text.slice(copied, end), end, isAfterSecret: afterSecret === end }
      }
      if (finding === undefined) continue
      output += text.slice(copied, finding.start) + (finding.replacement ?? text.slice(finding.start, finding.end))
      copied = finding.end
      afterSecret = finding.end
      state = 0
      index = finding.end - 1
    }
    const end = isWhole ? text.length : text.length - automaton.depthOf(state)
    return { output: output + text.slice(copied, end), end, isAfterSecret: afterSecret === end }
  }

  #look(hits: readonly Hit<Candidate>[], place: Place): Finding | 'open' | undefined {
    for (const { length, value: candidate } of hits) {
      const finding = this.#try(candidate, place.end - length, place)
      if (finding !== undefined) return finding
    }
    return undefined
  }

  #try(candidate: Candidate, start: number, place: Place): Finding | 'open' | undefined {
    const { text, isWhole } = place
    switch (candidate.type) {
      case 'value':
        if (text.startsWith(candidate.value, start)) {
          const end = start + candidate.value.length
          return { start, end, replacement: markerOf(candidate.name) }
        }
        return !isWhole && candidate.value.startsWith(text.slice(start)) ? 'open' : undefined
      case 'marker': {
        const match = matchAt(isWhole ? candidate.whole : candidate.partial, text, start)
        if (match === null) return undefined
        const end = start + match[0].length
        return !isWhole && end === text.length && !match[0].endsWith(']')
          ? 'open'
          : { start, end, replacement: undefined }
      }
      case 'family':
        return this.#tryFamily(candidate, start, place)
      default:
        return candidate satisfies never
    }
  }

  #tryFamily(
    { family, whole, partial }: Candidate & { type: 'family' },
    start: number,
    { text, isWhole, afterSecret }: Place,
  ): Finding | 'open' | undefined {
    if (family.startsWord && afterSecret !== start && isInWord(text, start)) return undefined
    const match = matchAt(isWhole ? whole : partial, text, start)
    if (match === null) return undefined
    const [all, lead = '', secret = all] = match
    if (!isWhole && start + all.length === text.length) return 'open'
    if (family.check && !family.check(secret)) return undefined
    const from = start + lead.length
    const isAllowed = this.#allowances.allow(secret, () => (lead === '' ? undefined : nameAround(text, start)))
    return {
      start: from,
      end: from + secret.length,
      replacement: isAllowed ? undefined : markerOf(kindOf(secret, family)),
    }
  }
}

interface Place {
  text: string
  /** Where the anchor ends. */
  end: number
  afterSecret: number
  isWhole: boolean
}

function markerOf(name: string): string {
  return `[redacted: ${name}]`
}

const familyCandidates = families.map((family) => ({
  type: 'family' as const,
  family,
  whole: new RegExp(family.pattern, 'y'),
  partial: new RegExp(partialPattern(family.pattern), 'y'),
}))

/** What a user lets pass. */
interface Allowances {
  allow(secret: string, name: () => string | undefined): boolean
}

/**
 * The scanners that a text goes through, one after the other. What is known by its value goes first: a pattern might see only a part
 * of it.
 */
export function scannersFor({ secrets = {}, allow = [] }: RedactionPolicy): readonly Scanner[] {
  const allowed = new Set(allow)
  const allowedValues = new Set(
    Object.entries(secrets)
      .filter(([name]) => allowed.has(name))
      .map(([, value]) => value),
  )
  const isAllowedValue = (value: string): boolean =>
    allowed.size > 0 && (allowedValues.has(value) || allowed.has(allowanceOf(value)))
  const allowances: Allowances = {
    allow: (secret, name) => allowed.size > 0 && (isAllowedValue(secret) || allowed.has(name() ?? '')),
  }
  const known = Object.entries(secrets)
    .filter(([, value]) => !isAllowedValue(value))
    .map(([name, value]) => [name.replaceAll(/[^\w-]/g, '_').slice(0, 64), value] as const)
  const names = [...new Set([...families.map(({ name }) => name), ...known.map(([name]) => name)])]
  const marker = markerCandidate(names)
  const values = known
    .flatMap(([name, value]) => formsOf(value).map((form) => ({ name, form })))
    .filter(({ form }) => !names.some((name) => markerOf(name).includes(form)))
    // One that begins with another comes before it: their anchors end in the same place.
    .sort((left, right) => right.form.length - left.form.length)
    .map(({ name, form }) => [form.slice(0, minLength), { type: 'value', name, value: form }] as const)
  const shapes = familyCandidates.flatMap((candidate) =>
    candidate.family.anchors.map((anchor) => [anchor, candidate] as const),
  )
  return [...(values.length > 0 ? [[marker, ...values]] : []), [marker, ...shapes]].map(
    (candidates) => new Scanner(candidates, allowances),
  )
}

function markerCandidate(names: readonly string[]): readonly [string, Candidate] {
  const whole = new RegExp(String.raw`\[redacted: (?:${names.join('|')})\]`, 'y')
  return ['[redacted: ', { type: 'marker', whole, partial: partialPattern(whole) }]
}

function matchAt(pattern: RegExp, text: string, start: number): RegExpExecArray | null {
  pattern.lastIndex = start
  return pattern.exec(text)
}

/** What it is by its own shape, where only its place gave it away. */
function kindOf(secret: string, family: SecretFamily): string {
  if (!family.pattern.source.startsWith('(')) return family.name
  for (const { family: other, whole } of familyCandidates) {
    if (other.pattern.source.startsWith('(') || !other.anchors.some((anchor) => secret.startsWith(anchor))) continue
    if (matchAt(whole, secret, 0)?.[0].length === secret.length) return other.name
  }
  return family.name
}

/** The name of the variable that has an anchor in it. */
function nameAround(text: string, anchor: number): string {
  const [before] = /[\w.-]*$/.exec(text.slice(Math.max(0, anchor - maxLookBehind), anchor)) ?? ['']
  const [after] = /^[\w.-]*/.exec(text.slice(anchor, anchor + maxLookBehind)) ?? ['']
  return before + after
}

/** A letter or digit stands before, unless it ends an escape: of a string, a URL or a terminal's colour. */
function isInWord(text: string, start: number): boolean {
  if (start === 0 || !/[A-Za-z0-9_-]/.test(text.charAt(start - 1))) return false
  const before = text.slice(Math.max(0, start - 16), start)
  // oxlint-disable-next-line no-control-regex
  return !/(?:\\[abefnrtv0]|\\[ux][\da-f]{2,4}|%[\da-f]{2}|\x1b\[[\d;]{0,12}[a-z]|--?)$/i.test(before)
}
