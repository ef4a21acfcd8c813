import type {
  Word as WordNode,
  WordPart,
  ArithmeticExpansionPart,
  CommandExpansionPart,
  ParameterExpansionPart,
  ProcessSubstitutionPart,
} from 'unbash'
import { isHarmlessArithmetic } from './arithmetic.ts'
import { anything, severalThings, textOf, literal, type Piece, type Output, type Word } from './word.ts'

/** What a word may refer to. */
export interface Surroundings {
  readonly home: string
  /** The value of a variable, a number or a special parameter. Undefined if only the environment has it. */
  variable: (name: string) => Word | undefined
  /** Reads a command inside the word and returns what is known of its output. */
  substitute: (part: CommandExpansionPart | ProcessSubstitutionPart) => Output
  /** Determines what the wildcards of a word may find. */
  lookUp: (word: Word) => Word
  /** Reports that something cannot be analyzed. */
  object: (problem: string) => void
}

/**
 * The words that a word expands to. One word may become many (`{a,b}`), and a variable without quotes may become none.
 * Text that cannot be read with certainty counts as unknown.
 */
export function expandWord(node: WordNode, surroundings: Surroundings): Word[] {
  const parts = partsOf(node, surroundings)
  let words: Fragment[] = [noFragment]
  for (const [index, part] of parts.entries()) {
    const alternatives = fragmentsOf(part, { surroundings, isFirst: index === 0 })
    if (words.length * alternatives.length > maxWords) return [unreadableWord(node.text, surroundings)]
    words = words.flatMap((word) => alternatives.map((fragment) => join(word, fragment)))
  }
  return words.filter(({ mayVanish }) => !mayVanish).map((fragment) => surroundings.lookUp(toWord(fragment)))
}

/** More than a person would read, or a machine should. */
const maxWords = 256

function unreadableWord(text: string, { object }: Surroundings): Word {
  object(`\`${text}\` expands to too many words`)
  return severalThings
}

/** The value of an assignment: it stays one word, and its wildcards are literal. */
export function expandAssigned(node: WordNode, surroundings: Surroundings): Word {
  const fragments = partsOf(node, surroundings).map((part, index): Fragment => {
    // A value is not split into names, but commands and variables in it are expanded.
    if (part.type === 'Glob' || part.type === 'BraceExpansion')
      return isPlain(part.text) ? of(anything) : unreadable(part.text, surroundings)
    return fragmentsOf(part, { surroundings, isFirst: index === 0 }).reduce(join)
  })
  const { pieces } = fragments.reduce(join, noFragment)
  // Values like `PATH` also expand `~` after colons.
  const isList = node.text.includes(':~')
  return isList ? anything : { pieces, isSeveral: false }
}

/** What one part of a word contributes. */
interface Fragment {
  readonly pieces: readonly Piece[]
  readonly isSeveral: boolean
  /** It was split at blanks, so it is unknown where a word begins. */
  readonly isSplit: boolean
  /** There is no word if nothing else is added. */
  readonly mayVanish: boolean
}

const noFragment: Fragment = { pieces: [], isSeveral: false, isSplit: false, mayVanish: true }

function fixed(text: string): Fragment {
  return { ...noFragment, pieces: text === '' ? [] : [{ type: 'text', text }], mayVanish: false }
}

function of({ pieces, isSeveral }: Word): Fragment {
  return { pieces, isSeveral, isSplit: isSeveral, mayVanish: false }
}

function join(left: Fragment, right: Fragment): Fragment {
  return {
    pieces: [...left.pieces, ...right.pieces],
    isSeveral: left.isSeveral || right.isSeveral,
    isSplit: left.isSplit || right.isSplit,
    mayVanish: left.mayVanish && right.mayVanish,
  }
}

function toWord({ pieces, isSeveral, isSplit }: Fragment): Word {
  const isOneName = pieces.length === 1 && pieces[0]?.type === 'names'
  return !isSplit || isOneName ? { pieces, isSeveral } : severalThings
}

/** What is known of the output of a command when it is split into lines. */
export function asLines(output: Output): Output {
  return output === 'anything' || output.isNul ? 'anything' : output
}

/** The output of a command, as a part of a word. */
export function pieceOf(output: Output): Piece {
  return output === 'anything' ? { type: 'anything' } : { type: 'names', found: output }
}

/** The parts, if together they are the whole word. */
function partsOf(node: WordNode, { object }: Surroundings): readonly WordPart[] {
  const { parts, text, pos, end } = node
  if (!parts) return [{ type: 'Literal', text, value: text, pos, end }]
  if (parts.map((part) => part.text).join('') !== text) object(`\`${text}\` is a word that cannot be parsed`)
  return parts
}

interface Reading {
  surroundings: Surroundings
  isFirst: boolean
}

/** More than one if the part has alternatives. */
function fragmentsOf(part: WordPart, reading: Reading): Fragment[] {
  const { surroundings } = reading
  switch (part.type) {
    case 'Literal':
      return [bareFragment(part.text, reading)]
    case 'Glob':
      if (part.kind === 'bracket' && !/^\[[A-Za-z0-9_.!^-]+\]$/.test(part.text))
        return [unreadable(part.text, surroundings)]
      return [{ ...noFragment, pieces: [{ type: 'glob', text: part.text }], isSeveral: true, mayVanish: false }]
    case 'SingleQuoted':
      return [fixedOrUnreadable(readSingleQuoted(part.text), part.text, surroundings)]
    case 'AnsiCQuoted':
      return [ansiQuoted(part.text, surroundings)]
    case 'DoubleQuoted':
      return [doubleQuoted(part.parts, part.text, surroundings)]
    case 'SimpleExpansion':
    case 'ParameterExpansion':
    case 'CommandExpansion':
    case 'ArithmeticExpansion':
      return [splitAtBlanks(valueOf(part, surroundings))]
    case 'ProcessSubstitution':
      surroundings.substitute(part)
      return [{ ...noFragment, pieces: [{ type: 'pipe' }], mayVanish: false }]
    case 'BraceExpansion':
      return braceFragments(part.text, surroundings)
    case 'ExtendedGlob':
    case 'LocaleString':
      return [unreadable(part.text, surroundings)]
    default:
      part satisfies never
      return [unreadable('', surroundings)]
  }
}

function braceFragments(source: string, surroundings: Surroundings): Fragment[] {
  if (!isPlain(source)) return [unreadable(source, surroundings)]
  return (expandBraces(source) ?? [severalThings]).map(({ pieces, isSeveral }): Fragment => ({
    ...noFragment,
    pieces,
    isSeveral,
    mayVanish: false,
  }))
}

function isPlain(source: string): boolean {
  return !/[$`'"\\()<>~]/.test(source)
}

function unreadable(text: string, { object }: Surroundings): Fragment {
  object(`\`${text}\` cannot be analyzed`)
  return of(severalThings)
}

function fixedOrUnreadable(text: string | undefined, source: string, surroundings: Surroundings): Fragment {
  return text === undefined ? unreadable(source, surroundings) : fixed(text)
}

function ansiQuoted(source: string, surroundings: Surroundings): Fragment {
  const text = readAnsiQuoted(source)
  return text === unknownEscapes ? of(anything) : fixedOrUnreadable(text, source, surroundings)
}

function bareFragment(source: string, { surroundings, isFirst }: Reading): Fragment {
  // `[` is a program of that name.
  if (source === '[') return fixed(source)
  if (/[$`'"()<>|&;]/.test(source.replace(/\\[\s\S]/g, ''))) return unreadable(source, surroundings)
  const [tilde, rest] = isFirst ? cutTilde(source) : [undefined, source]
  const home = tilde === undefined ? '' : tilde === '~' ? surroundings.home : undefined
  const text = readBare(rest)
  return home === undefined || text === undefined ? of(severalThings) : fixed(home + text)
}

/** `~`, `~name` or nothing, and the rest. */
function cutTilde(source: string): [string | undefined, string] {
  const tilde = /^~[^/]*/.exec(source)?.[0]
  return [tilde, tilde === undefined ? source : source.slice(tilde.length)]
}

function doubleQuoted(parts: readonly WordPart[], source: string, surroundings: Surroundings): Fragment {
  if (`"${parts.map(({ text }) => text).join('')}"` !== source) return unreadable(source, surroundings)
  const fragments = parts.map((part): Fragment => {
    if (part.type === 'Literal') return fixedOrUnreadable(readDoubleQuoted(part.text), part.text, surroundings)
    const value = valueOf(part as ValuePart, surroundings)
    return of(value)
  })
  return fragments.reduce(join, fixed(''))
}

type ValuePart =
  | Extract<WordPart, { type: 'SimpleExpansion' }>
  | ParameterExpansionPart
  | CommandExpansionPart
  | ArithmeticExpansionPart

/** The value between double quotes. */
function valueOf(part: ValuePart, surroundings: Surroundings): Word {
  switch (part.type) {
    case 'SimpleExpansion':
      return parameter(part.text.slice(1), surroundings)
    case 'ParameterExpansion':
      return expandParameter(part, surroundings)
    case 'CommandExpansion':
      return { pieces: [pieceOf(asLines(surroundings.substitute(part)))], isSeveral: false }
    case 'ArithmeticExpansion':
      if (!isHarmlessArithmetic(part, surroundings))
        surroundings.object(`\`${part.text}\` is arithmetic that may run something`)
      return { pieces: [{ type: 'number' }], isSeveral: false }
    default:
      part satisfies never
      return anything
  }
}

function parameter(name: string, { variable }: Surroundings): Word {
  return variable(name) ?? (name === '@' || name === '*' ? severalThings : anything)
}

/**
 * `${x%.*}` and similar forms. Only the plain forms are read: `${!x}`, `${x@P}`, `${x:=…}` and anything with another
 * expansion inside can run commands or set variables.
 */
function expandParameter(part: ParameterExpansionPart, surroundings: Surroundings): Word {
  const { text, parameter: name, prefix, index, operation } = part
  const isKnown = isPlainParameter(text) && prefix !== '!' && (!operation || isHarmlessOperation(operation))
  if (!isKnown) {
    surroundings.object(`\`${text}\` may run something`)
    return anything
  }
  if (prefix === '#') return operation ? anything : { pieces: [{ type: 'digits' }], isSeveral: false }
  if (index) return index.text === '@' || index.text === '*' ? severalThings : anything
  return operation ? anything : parameter(name, surroundings)
}

/** Checks the text itself, so that it does not depend on the parser. */
function isPlainParameter(text: string): boolean {
  if (!/^\$\{[^$`'"\\(){}<>]*\}$/.test(text)) return false
  if (text.includes('[') && !/^\$\{#?[A-Za-z0-9_]+\[(?:[0-9]+|@|\*)\]/.test(text)) return false
  return !/^\$\{(?:!|[A-Za-z0-9_]+(?::?=|@[^QULu]))/.test(text)
}

function isHarmlessOperation(operation: NonNullable<ParameterExpansionPart['operation']>): boolean {
  switch (operation.type) {
    case 'Default':
      return !operation.operator.endsWith('=')
    case 'Remove':
    case 'Replace':
    case 'CaseModification':
      return true
    case 'Slice':
      return /^ *-?[0-9]+$/.test(operation.offset.text) && /^ *-?[0-9]*$/.test(operation.length?.text ?? '')
    case 'Transform':
      return /^[QULu]$/.test(operation.operand.text)
    case 'Names':
    case 'Unknown':
      return false
    default:
      operation satisfies never
      return false
  }
}

/** Without quotes a value is split at blanks, and its wildcards match files. */
function splitAtBlanks(word: Word): Fragment {
  const text = textOf(word)
  if (text !== undefined) {
    if (text === '') return noFragment
    return unsplit.test(text) ? fixed(text) : of(severalThings)
  }
  const [piece] = word.pieces
  if (piece?.type === 'names' && word.pieces.length === 1) return of({ pieces: word.pieces, isSeveral: true })
  return word.pieces.every(isOneWord) ? of(word) : of(severalThings)
}

/** Whether this stays one word without quotes. */
function isOneWord(piece: Piece): boolean {
  if (piece.type === 'text') return unsplit.test(piece.text)
  return /^(?:digits|number|pipe)$/.test(piece.type) || (piece.type === 'glob' && piece.isPlain === true)
}

const unsplit = /^[A-Za-z0-9_.,:=@%+/-]*$/

/** The words that `{a,b}` or `{1..9}` expands to. Undefined for any other form. */
function expandBraces(source: string): Word[] | undefined {
  if (/^\{[0-9]+\.\.[0-9]+\}$/.test(source)) return [{ pieces: [{ type: 'digits' }], isSeveral: true }]
  if (!/^\{[A-Za-z0-9_./-]*(?:,[A-Za-z0-9_./-]*)+\}$/.test(source)) return undefined
  const texts = source.slice(1, -1).split(',')
  return texts.length > maxAlternatives ? undefined : texts.map(literal)
}

/** A word may have several braces, and their counts multiply. */
const maxAlternatives = 16

/**
 * Literal text, read from the source and not from the parser. If the two could differ, the result is `undefined`, and
 * the caller must not rely on it.
 */

/** Outside of quotes: characters without a special meaning, and characters after a backslash. */
function readBare(source: string): string | undefined {
  if (!bare.test(source) || /(?:^|[:=])~/.test(source) || (source.includes('{') && /,|\.\./.test(source)))
    return undefined
  return unescape(source, /\\([\s\S])/g)
}

/** `~` only if it is literal, braces only if they do not expand. */
const bare = /^(?:[A-Za-z0-9_.,:=@%+/^#{}!~\]-]|[^\x00-\x7f]|\\[\x20-\x7e\n])*$/

function readSingleQuoted(source: string): string | undefined {
  return /^'[^']*'$/.test(source) ? source.slice(1, -1) : undefined
}

/** Text between double quotes, without the quotes. */
function readDoubleQuoted(source: string): string | undefined {
  return /^(?:[^"$`\\]|\\[\s\S])*$/.test(source) ? unescape(source, /\\([$`"\\\n])/g) : undefined
}

/** Escapes of `$'…'` that shells interpret differently: some text, and nothing but text. */
const unknownEscapes = Symbol('unknown escapes')

function readAnsiQuoted(source: string): string | typeof unknownEscapes | undefined {
  if (!/^\$'(?:[^'\\]|\\[\s\S])*'$/.test(source)) return undefined
  if (/\\[^nt\\'"]/.test(source.replaceAll('\\\\', ''))) return unknownEscapes
  return source
    .slice(2, -1)
    .replace(/\\(.)/g, (_, letter: string) => (letter === 'n' ? '\n' : letter === 't' ? '\t' : letter))
}

function unescape(source: string, escape: RegExp): string {
  return source.replace(escape, (_, letter: string) => (letter === '\n' ? '' : letter))
}
