import {
  charactersOf,
  codeAt,
  isIn,
  maxLookBehind,
  type CharacterSet,
  type NameShape,
  type SecretFamily,
} from './family.ts'
import { AnchorAutomaton, type Hit } from './anchor-automaton.ts'
import { families } from './families.ts'
import { NameMemo } from './name-memo.ts'
import { formsOf, minLength, allowanceOf, type RedactionPolicy } from './redaction-policy.ts'
import { partialPattern } from './partial-pattern.ts'

/** The position of a scan in a text. */
export interface ScanPosition {
  text: string
  /** The length of the text before `text`. */
  offset: number
  /** Where to begin; up to `maxLookBehind` characters before it are also read. */
  from: number
  /** Where the last secret ended, or a negative number if there was none nearby. */
  afterSecret: number
  /** False while more text may follow. */
  isWhole: boolean
  /** The same object for all parts of a text that arrives in pieces. */
  names?: NameMemo
}

/** The decided text: everything before `end` is in `output`. */
export interface Scanned {
  output: string
  end: number
  /** Where the last secret ended, or a negative number. */
  afterSecret: number
}

/** What may be at an anchor. */
type Candidate =
  | FamilyCandidate
  | { type: 'value'; name: string; value: string }
  /** Existing markers stay, so that redacting twice changes nothing. */
  | { type: 'marker' }

/** A family for the scanner. All objects have all properties, because access to objects of many shapes is slow. */
interface FamilyCandidate {
  type: 'family'
  name: string
  whole: RegExp
  partial: RegExp
  hasLead: boolean
  startsWord: boolean
  maxRunBefore: RunBefore | undefined
  nameShape: NameShape | undefined
  check: ((secret: string) => boolean) | undefined
}

type RunBefore = NonNullable<SecretFamily['maxRunBefore']>

type Finding = { start: number; end: number; replacement: string | undefined }

/** Replaces secrets by markers, from left to right: at each anchor, the first matching candidate wins. */
export class Scanner {
  readonly #automaton: AnchorAutomaton<Candidate>
  readonly #marker: MarkerPatterns
  readonly #allowances: Allowances
  readonly #names = new NameMemo()
  readonly #runs: Place['runs'] = new Map()

  constructor(
    automaton: AnchorAutomaton<Candidate>,
    { marker, allowances }: { marker: MarkerPatterns; allowances: Allowances },
  ) {
    this.#automaton = automaton
    this.#marker = marker
    this.#allowances = allowances
  }

  scan({ text, offset, from, afterSecret: afterLast, isWhole, names = this.#names }: ScanPosition): Scanned {
    const automaton = this.#automaton
    const { next, firstHit, canSkip } = automaton
    let output = ''
    let copied = from
    let afterSecret = afterLast
    let state = 0
    const runs = this.#runs
    if (runs.size > 0) runs.clear()
    names.moveTo(text, { offset, isWhole })
    for (let index = automaton.skip(text, from); index < text.length; index++) {
      // Always within the table.
      state = next[(state << 7) | (text.charCodeAt(index) & 127)] as number
      if (canSkip && state === 0) index = automaton.skip(text, index + 1) - 1
      if (state < firstHit) continue
      const finding = this.#look(automaton.hitsOf(state), { text, end: index + 1, afterSecret, isWhole, names, runs })
      if (finding === 'open') {
        const end = index + 1 - automaton.depthOf(state)
        return { output: output + text.slice(copied, end), end, afterSecret }
      }
      if (finding === undefined) continue
      output += text.slice(copied, finding.start) + (finding.replacement ?? text.slice(finding.start, finding.end))
      copied = finding.end
      afterSecret = finding.end
      state = 0
      index = finding.end - 1
    }
    const end = isWhole ? text.length : text.length - automaton.depthOf(state)
    return { output: output + text.slice(copied, end), end, afterSecret }
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
        const match = matchAt(isWhole ? this.#marker.whole : this.#marker.partial, text, start)
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

  #tryFamily(candidate: FamilyCandidate, start: number, place: Place): Finding | 'open' | undefined {
    const { maxRunBefore, nameShape, check } = candidate
    const { text, isWhole, afterSecret, names } = place
    if (candidate.startsWord && afterSecret !== start && isInWord(text, start)) return undefined
    if (maxRunBefore && isRunWrong(maxRunBefore, start, place)) return undefined
    if (nameShape && !names.mayMatch(nameShape, start)) return undefined
    const match = matchAt(isWhole ? candidate.whole : candidate.partial, text, start)
    if (match === null) {
      if (nameShape) names.unmatched(nameShape, start)
      return undefined
    }
    const all = match[0]
    const lead = match[1] ?? ''
    const secret = match[2] ?? all
    if (!isWhole && start + all.length === text.length) return 'open'
    const from = start + lead.length
    if (check && !check(secret)) {
      if (nameShape) names.rejected(nameShape, start, { start: from, end: from + secret.length })
      return undefined
    }
    const isAllowed = this.#allowances.allow(secret, () => (lead === '' ? undefined : nameAround(text, start)))
    return {
      start: from,
      end: from + secret.length,
      replacement: isAllowed ? undefined : markerOf(kindOf(secret, candidate)),
    }
  }
}

interface Place {
  text: string
  /** The end of the anchor. */
  end: number
  afterSecret: number
  isWhole: boolean
  names: NameMemo
  /**
   * For families with a limit on preceding characters: how many of them precede the last anchor, and where they end.
   */
  runs: Map<CharacterSet, { start: number; length: number; end: number }>
}

function markerOf(name: string): string {
  return `[redacted: ${name}]`
}

const familyCandidates = families.map(
  ({ name, pattern, startsWord, maxRunBefore, nameShape, check }): FamilyCandidate => ({
    type: 'family',
    name,
    whole: new RegExp(pattern, 'y'),
    partial: new RegExp(partialPattern(pattern), 'y'),
    hasLead: pattern.source.startsWith('(') && !pattern.source.startsWith('(?'),
    startsWord: startsWord === true,
    maxRunBefore,
    nameShape,
    check,
  }),
)

/** Values that the user allows. */
interface Allowances {
  allow(secret: string, name: () => string | undefined): boolean
}

/** The scanners for a text, in order. Known values go first: a pattern might match only a part of one. */
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
  const marker = markerPatterns(names)
  const values = known
    .flatMap(([name, value]) => formsOf(value).map((form) => ({ name, form })))
    .filter(({ form }) => !names.some((name) => markerOf(name).includes(form)))
    // A value that begins with another one comes before it: their anchors end at the same position.
    .sort((left, right) => right.form.length - left.form.length)
    .map(({ name, form }) => [form.slice(0, minLength), { type: 'value', name, value: form }] as const)
  const knownValues = values.length > 0 ? [new AnchorAutomaton<Candidate>([markerAnchor, ...values])] : []
  return [...knownValues, shapeAutomaton()].map((automaton) => new Scanner(automaton, { marker, allowances }))
}

let sharedShapes: AnchorAutomaton<Candidate> | undefined

/** Built once per process: it takes some milliseconds and a megabyte, and is the same for every policy. */
function shapeAutomaton(): AnchorAutomaton<Candidate> {
  sharedShapes ??= new AnchorAutomaton<Candidate>([
    markerAnchor,
    ...familyCandidates.flatMap((candidate, index) => anchorsOf(index).map((anchor) => [anchor, candidate] as const)),
  ])
  return sharedShapes
}

const markerAnchor: readonly [string, Candidate] = ['[redacted: ', { type: 'marker' }]

interface MarkerPatterns {
  whole: RegExp
  partial: RegExp
}

function markerPatterns(names: readonly string[]): MarkerPatterns {
  const whole = new RegExp(String.raw`\[redacted: (?:${names.join('|')})\]`, 'y')
  return { whole, partial: partialPattern(whole) }
}

function matchAt(pattern: RegExp, text: string, start: number): RegExpExecArray | null {
  pattern.lastIndex = start
  return pattern.exec(text)
}

/** The kind by its own shape, if only its context revealed it. */
function kindOf(secret: string, family: FamilyCandidate): string {
  if (!family.hasLead) return family.name
  for (const { anchor, candidate } of shapesByStart.get(secret.slice(0, 2)) ?? []) {
    if (!secret.startsWith(anchor)) continue
    if (matchAt(candidate.whole, secret, 0)?.[0].length === secret.length) return candidate.name
  }
  return family.name
}

/** Families with their own shape, by the first two characters of their anchors. */
const shapesByStart = Map.groupBy(
  familyCandidates.flatMap((candidate, index) =>
    candidate.hasLead ? [] : anchorsOf(index).map((anchor) => ({ anchor, candidate })),
  ),
  ({ anchor }) => anchor.slice(0, 2),
)

function anchorsOf(index: number): readonly string[] {
  return families[index]?.anchors ?? []
}

/** The name of the variable that contains an anchor. */
function nameAround(text: string, anchor: number): string {
  const [before] = /[\w.-]*$/.exec(text.slice(Math.max(0, anchor - maxLookBehind), anchor)) ?? ['']
  const [after] = /^[\w.-]*/.exec(text.slice(anchor, anchor + maxLookBehind)) ?? ['']
  return before + after
}

/**
 * Whether too many of the characters precede the anchor, not counting those of a secret, or other text follows them
 * than required. The count for the last anchor is reused: `-eyJ-eyJ-eyJ` has one at every fourth character.
 */
function isRunWrong({ characters, length, isFollowedBy }: RunBefore, start: number, place: Place): boolean {
  const { text, afterSecret, isWhole, runs } = place
  const before = runs.get(characters) ?? { start: -1, length: 0, end: -1 }
  const isKnown = before.start > afterSecret && before.start <= start
  const first = isKnown ? before.start : Math.max(afterSecret, 0)
  let from = start
  while (start - from <= length && from > first && isIn(characters, codeAt(text, from - 1))) from--
  const run = { start, length: start - from + (isKnown && from === first ? before.length : 0), end: before.end }
  runs.set(characters, run)
  if (run.length > length) return true
  if (isFollowedBy === undefined) return false
  if (run.end < start) {
    run.end = start
    while (isIn(characters, codeAt(text, run.end))) run.end++
  }
  return run.end < text.length ? text[run.end] !== isFollowedBy : isWhole
}

const nameCharacters = charactersOf(/[A-Za-z0-9_-]/)
const escaped = charactersOf(/[abefnrtv0]/i)
const hexDigits = charactersOf(/[\da-f]/i)
const hexSigns = charactersOf(/[ux]/i)
const letters = charactersOf(/[a-z]/i)
const colorDigits = charactersOf(/[\d;]/)
const [backslash, percent, dash, bracket, escape] = [0x5c, 0x25, 0x2d, 0x5b, 0x1b]

/** Whether a letter or digit precedes it, unless that ends an escape: of a string, a URL or a terminal color. */
function isInWord(text: string, start: number): boolean {
  if (start === 0) return false
  const before = codeAt(text, start - 1)
  return isIn(nameCharacters, before) && before !== dash && !endsEscape(text, start)
}

/** `\n`, `\x41`, `\u0041`, `%41` or the end of a color, right before `end`. */
function endsEscape(text: string, end: number): boolean {
  const last = codeAt(text, end - 1)
  if (isIn(escaped, last) && codeAt(text, end - 2) === backslash) return true
  for (let digits = 1; digits <= 4 && isIn(hexDigits, codeAt(text, end - digits)); digits++) {
    const sign = codeAt(text, end - digits - 1)
    if (digits === 2 && sign === percent) return true
    if (digits >= 2 && isIn(hexSigns, sign) && codeAt(text, end - digits - 2) === backslash) return true
  }
  if (!isIn(letters, last)) return false
  let open = end - 2
  while (end - 2 - open < 12 && isIn(colorDigits, codeAt(text, open))) open--
  return codeAt(text, open) === bracket && codeAt(text, open - 1) === escape
}
