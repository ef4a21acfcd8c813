import { resolve } from 'node:path'
import { exactPath, many, one, type NamePattern, type Token } from '../paths/path-pattern.ts'
import type { PathUse } from '../paths/path-use.ts'
import { joinRaw, realPath } from '../paths/real-path.ts'

/** What is known of a word of a command before the shell has expanded it: some of its text, and what kind of text the rest is. */
export interface Word {
  readonly pieces: readonly Piece[]
  /** It may become no word, or several. Each of them begins with the text that this one begins with. */
  readonly isSeveral: boolean
}

export type Piece =
  | { type: 'text'; text: string }
  /** A wildcard that the shell replaces by names of files that exist. */
  | { type: 'glob'; text: string }
  /** At least one digit. */
  | { type: 'digits' }
  /** A number that may be negative. */
  | { type: 'number' }
  /** Names of files, as a program lists them that was itself judged. */
  | { type: 'names' }
  /** What a command writes to a pipe, where the shell puts the name of that pipe. */
  | { type: 'pipe' }
  | { type: 'anything' }

export function literal(text: string): Word {
  return { pieces: [{ type: 'text', text }], isSeveral: false }
}

export const anything: Word = { pieces: [{ type: 'anything' }], isSeveral: false }
export const severalThings: Word = { pieces: [{ type: 'anything' }], isSeveral: true }
export const severalNames: Word = { pieces: [{ type: 'names' }], isSeveral: true }

/** Its text, where all of it is known. */
export function textOf({ pieces, isSeveral }: Word): string | undefined {
  if (isSeveral) return undefined
  let text = ''
  for (const piece of pieces) {
    if (piece.type !== 'text') return undefined
    text += piece.text
  }
  return text
}

/** The text it begins with, as far as that is known. */
export function startOf({ pieces }: Word): string {
  let start = ''
  for (const piece of pieces) {
    if (piece.type !== 'text') return start
    start += piece.text
  }
  return start
}

/** Whether a program may take it for an option. */
export function mayBeOption(word: Word): boolean {
  const start = startOf(word)
  if (start !== '') return start.startsWith('-')
  const first = word.pieces.find((piece) => piece.type !== 'text')
  return first !== undefined && first.type !== 'digits' && first.type !== 'pipe'
}

/** Its text with every number in it written as 1. */
export function textWithNumbers({ pieces, isSeveral }: Word): string | undefined {
  return textOf({
    pieces: pieces.map((piece) => (piece.type === 'digits' ? { type: 'text', text: '1' } : piece)),
    isSeveral,
  })
}

/** What is left of a word without its first letters, which must be known. */
export function withoutStart(word: Word, length: number): Word {
  let left = length
  const pieces = word.pieces.flatMap((piece): Piece[] => {
    if (piece.type !== 'text' || left === 0) return [piece]
    const text = piece.text.slice(left)
    left -= piece.text.length - text.length
    return text === '' ? [] : [{ type: 'text', text }]
  })
  return { pieces, isSeveral: word.isSeveral }
}

/**
 * The files that a word names, seen from a folder: as it is written, and where that leads. `names` are files that a listing
 * found; `unknown` may be any file. A word that goes up from a wildcard is unknown: what is above depends on links.
 */
export function pathsOf(word: Word, cwd: string): Paths | 'names' | 'unknown' {
  const { pieces } = word
  if (pieces.some(({ type }) => type === 'anything')) return 'unknown'
  if (pieces.some(({ type }) => type === 'names' || type === 'pipe'))
    return pieces.every(isNameOrDot) ? 'names' : 'unknown'
  const text = textOf(word)
  if (text !== undefined) {
    return { written: exactPath(resolve(cwd, text)), real: exactPath(realPath(joinRaw(cwd, text))) }
  }
  const start = startOf(word)
  const folder = start.slice(0, start.lastIndexOf('/') + 1)
  const names = splitNames(withoutStart(word, folder.length).pieces)
  if (names.some((tokens) => tokens.join('') === '..')) return 'unknown'
  const name = names.filter((tokens) => tokens.length > 0 && tokens.join('') !== '.').map(namePattern)
  const real = realPath(joinRaw(cwd, folder))
  return { written: [...exactPath(resolve(cwd, folder)), ...name], real: [...exactPath(real), ...name] }
}

export type Paths = Pick<PathUse, 'written' | 'real'>

function isNameOrDot(piece: Piece): boolean {
  return piece.type === 'names' || piece.type === 'pipe' || (piece.type === 'text' && piece.text === './')
}

function splitNames(pieces: readonly Piece[]): Token[][] {
  const names: Token[][] = [[]]
  for (const token of pieces.flatMap(tokensOf)) {
    if (token === '/') names.push([])
    else names.at(-1)?.push(token)
  }
  return names
}

function tokensOf(piece: Piece): Token[] {
  if (piece.type === 'text') return [...piece.text]
  return [piece.type === 'glob' && !piece.text.startsWith('*') ? one : many]
}

function namePattern(tokens: Token[]): NamePattern {
  return { tokens, skipsHidden: typeof tokens[0] !== 'string' }
}
