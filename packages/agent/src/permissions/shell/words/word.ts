import { resolve } from 'node:path'
import { expandPattern } from '../../paths/expand-pattern.ts'
import { exactPath, many, meets, one, type NamePattern, type Token } from '../../paths/path-pattern.ts'
import type { PathUse } from '../../paths/path-use.ts'
import { joinRaw, realPath } from '../../paths/real-path.ts'
import { isSecretPath } from '../../paths/secret-files.ts'

/** What is known of a word of a command before the shell has expanded it: some of its text, and what kind of text the rest is. */
export interface Word {
  readonly pieces: readonly Piece[]
  /** It may become no word, or several. Each of them begins with the text that this one begins with. */
  readonly isSeveral: boolean
}

export type Piece =
  | { type: 'text'; text: string }
  /** A wildcard that the shell replaces by names of files that exist. */
  | {
      type: 'glob'
      text: string
      /** No file that is there and that it may find has a name with blanks or wildcards. */
      isPlain?: boolean
      /** No such file has a name that begins with a dash. */
      isNoOption?: boolean
      /** There is no such file, so that the shell leaves the word as it is written. */
      isUnmatched?: boolean
    }
  /** At least one digit. */
  | { type: 'digits' }
  /** A number that may be negative. */
  | { type: 'number' }
  /** Names of files, as a program lists them that was itself judged. */
  | { type: 'names'; found: FoundNames }
  /** What a command writes to a pipe, where the shell puts the name of that pipe. */
  | { type: 'pipe' }
  | { type: 'anything' }

/** Names that a command lists. */
export interface FoundNames {
  /** Tells one listing from another. */
  readonly id: number
  /** Where the shell was: they mean these files only as long as it is still there. Compared by identity. */
  readonly folders: readonly string[]
  /** Each ends with a NUL, and is cut there. */
  readonly isNul: boolean
  /** Looks at the files. Undefined if names may be taken for something else: for options, or for several words. */
  readonly look: () => LookedUp | undefined
}

/** What is known of text that a command prints. */
export type Output = FoundNames | 'anything'

export interface LookedUp {
  /** Absolute paths of the folders that the files are in or below. */
  readonly roots: readonly string[]
  /** Those among the files that must be judged one by one: links that lead elsewhere, and secrets. */
  readonly touched: readonly string[]
}

export function literal(text: string): Word {
  return { pieces: [{ type: 'text', text }], isSeveral: false }
}

export const anything: Word = { pieces: [{ type: 'anything' }], isSeveral: false }
export const severalThings: Word = { pieces: [{ type: 'anything' }], isSeveral: true }

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
  const [first, ...others] = word.pieces.filter((piece) => piece.type !== 'text' || piece.text !== '')
  if (first === undefined || first.type === 'digits' || first.type === 'pipe') return false
  if (first.type === 'glob') return first.isNoOption !== true
  // A name may be empty, and then the rest is what counts.
  return first.type !== 'names' || others.length > 0 || first.found.look() === undefined
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

/** Whether it may become none, or more than one. */
export function maySplit({ pieces, isSeveral }: Word): boolean {
  return isSeveral && !pieces.every((piece) => piece.type === 'text' || (piece.type === 'glob' && piece.isUnmatched))
}

/** Names of files, if the word is such a name and nothing else. */
export function namesOf({ pieces }: Word): FoundNames | undefined {
  const [name, ...others] = pieces.filter((piece) => piece.type !== 'text' || piece.text !== './')
  return name?.type === 'names' && others.length === 0 && pieces.at(-1) === name ? name.found : undefined
}

/** Whether the word is the name of a pipe and nothing else. */
export function isPipe({ pieces }: Word): boolean {
  return pieces.length === 1 && pieces[0]?.type === 'pipe'
}

/**
 * The files that a word names, seen from a folder: as it is written, and where that leads. `unknown` may be any file. A word that goes
 * up from a wildcard is unknown: what is above depends on links.
 */
export function pathsOf(word: Word, cwd: string): Paths | 'unknown' {
  const parts = wildParts(word, cwd)
  if (parts === undefined) return 'unknown'
  const { folder, names } = parts
  return {
    written: [...exactPath(resolve(cwd, folder)), ...names],
    real: [...exactPath(realPath(joinRaw(cwd, folder))), ...names],
  }
}

export type Paths = Pick<PathUse, 'written' | 'real'>

/** The paths that exist and that the wildcards of a word may find, seen from a folder; undefined if there are too many to tell. */
export function matchesOf(word: Word, cwd: string): string[] | undefined {
  const parts = wildParts(word, cwd)
  if (parts === undefined) return undefined
  return parts.names.length === 0 ? [] : expandPattern(joinRaw(cwd, parts.folder), parts.names)
}

/** Those among the files that the wildcards of a word may find which are secrets, or which links lead to. */
export function specialMatchesOf(word: Word, cwd: string): string[] | undefined {
  return matchesOf(word, cwd)?.filter((path) => isSecretPath(path) || realPath(path) !== resolve(path))
}

/** What the wildcards of a word may find, from the first name with a wildcard on. */
export function wildNamesOf(word: Word, cwd: string): string[] | undefined {
  const folder = joinRaw(cwd, wildParts(word, cwd)?.folder ?? '')
  return matchesOf(word, cwd)?.map((path) => path.slice(folder.length + 1))
}

/** Cuts a word into the folder that is certain and the names from the first wildcard on. */
function wildParts(word: Word, cwd: string): { folder: string; names: NamePattern[] } | undefined {
  const { pieces } = word
  if (pieces.some(({ type }) => type === 'anything' || type === 'names' || type === 'pipe')) return undefined
  const text = textOf(word)
  if (text !== undefined) return { folder: text === '' ? cwd : text, names: [] }
  const start = startOf(word)
  const folder = start.slice(0, start.lastIndexOf('/') + 1)
  const names = splitNames(withoutStart(word, folder.length).pieces)
    .filter((tokens) => tokens.length > 0 && tokens.join('') !== '.')
    .map(namePattern)
  const goesUp = names.some(({ tokens }) => tokens.join('') === '..')
  return goesUp ? undefined : { folder: folder === '' ? cwd : folder, names }
}

/** Whether a wildcard in it may find `..`: some shells take `.?` for that too. */
export function mayFindParent(word: Word): boolean {
  const names = wildParts(word, '/')?.names ?? []
  return names.some((name) => name.tokens[0] === '.' && meets([name], [parent]))
}

const parent: NamePattern = { tokens: ['.', '.'], skipsHidden: false }

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
