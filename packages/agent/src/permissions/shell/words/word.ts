import { resolve } from 'node:path'
import { expandPattern } from '../../paths/expand-pattern.ts'
import { exactPath, many, meets, one, type NamePattern, type Token } from '../../paths/path-pattern.ts'
import type { PathUse } from '../../paths/path-use.ts'
import { joinRaw, realPath } from '../../paths/real-path.ts'
import { isSecretPath } from '../../paths/secret-files.ts'

/** What is known of a word before the shell expands it: some of its text, and the kind of the rest. */
export interface Word {
  readonly pieces: readonly Piece[]
  /** It may become no word, or several. Each of them begins with the same text as this one. */
  readonly isSeveral: boolean
}

export type Piece =
  | { type: 'text'; text: string }
  /** A wildcard that the shell replaces by the names of existing files. */
  | {
      type: 'glob'
      text: string
      /** No existing file that it may find has a name with blanks or wildcards. */
      isPlain?: boolean
      /** No such file has a name that begins with a dash. */
      isNoOption?: boolean
      /** There is no such file, so the shell leaves the word unchanged. */
      isUnmatched?: boolean
    }
  /** At least one digit. */
  | { type: 'digits' }
  /** A number that may be negative. */
  | { type: 'number' }
  /** Names of files from the output of a program that was judged itself. */
  | { type: 'names'; found: FoundNames }
  /** The name of a pipe that the shell inserts for the output of a command. */
  | { type: 'pipe' }
  | { type: 'anything' }

/** Names that a command lists. */
export interface FoundNames {
  /** Identifies the listing. */
  readonly id: number
  /** The folders of the shell: the names refer to these files only while it stays there. Compared by identity. */
  readonly folders: readonly string[]
  /** Each name ends with a NUL and is split there. */
  readonly isNul: boolean
  /** Inspects the files. Undefined if names may be parsed as options or as several words. */
  readonly look: () => LookedUp | undefined
}

/** What is known of the output of a command. */
export type Output = FoundNames | 'anything'

export interface LookedUp {
  /** Absolute paths of the folders that the files are in or below. */
  readonly roots: readonly string[]
  /** The files that must be judged one by one: links that lead elsewhere, and secrets. */
  readonly touched: readonly string[]
}

export function literal(text: string): Word {
  return { pieces: [{ type: 'text', text }], isSeveral: false }
}

export const anything: Word = { pieces: [{ type: 'anything' }], isSeveral: false }
export const severalThings: Word = { pieces: [{ type: 'anything' }], isSeveral: true }

/** Its text, if all of it is known. */
export function textOf({ pieces, isSeveral }: Word): string | undefined {
  if (isSeveral) return undefined
  let text = ''
  for (const piece of pieces) {
    if (piece.type !== 'text') return undefined
    text += piece.text
  }
  return text
}

/** The text it begins with, as far as it is known. */
export function startOf({ pieces }: Word): string {
  let start = ''
  for (const piece of pieces) {
    if (piece.type !== 'text') return start
    start += piece.text
  }
  return start
}

/** Whether a program may parse it as an option. */
export function mayBeOption(word: Word): boolean {
  const start = startOf(word)
  if (start !== '') return start.startsWith('-')
  const [first, ...others] = word.pieces.filter((piece) => piece.type !== 'text' || piece.text !== '')
  if (first === undefined || first.type === 'digits' || first.type === 'pipe') return false
  if (first.type === 'glob') return first.isNoOption !== true
  // A name may be empty, and then the rest counts.
  return first.type !== 'names' || others.length > 0 || first.found.look() === undefined
}

/** Its text with every number in it written as 1. */
export function textWithNumbers({ pieces, isSeveral }: Word): string | undefined {
  return textOf({
    pieces: pieces.map((piece) => (piece.type === 'digits' ? { type: 'text', text: '1' } : piece)),
    isSeveral,
  })
}

/** The rest of a word after its first characters, which must be known. */
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

/** Whether it may become no word, or more than one. */
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
 * The files that a word names, relative to a folder: as written, and with links resolved. `unknown` may be any file. A
 * word that goes up from a wildcard is unknown: its parent depends on links.
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

/** The existing paths that the wildcards of a word may find, relative to a folder. Undefined if there are too many. */
export function matchesOf(word: Word, cwd: string): string[] | undefined {
  const parts = wildParts(word, cwd)
  if (parts === undefined) return undefined
  return parts.names.length === 0 ? [] : expandPattern(joinRaw(cwd, parts.folder), parts.names)
}

/** The secrets and links among the files that the wildcards of a word may find. */
export function specialMatchesOf(word: Word, cwd: string): string[] | undefined {
  return matchesOf(word, cwd)?.filter((path) => isSecretPath(path) || realPath(path) !== resolve(path))
}

/** What the wildcards of a word may find, from the first name with a wildcard on. */
export function wildNamesOf(word: Word, cwd: string): string[] | undefined {
  const folder = joinRaw(cwd, wildParts(word, cwd)?.folder ?? '')
  return matchesOf(word, cwd)?.map((path) => path.slice(folder.length + 1))
}

/** Splits a word into the certain folder and the names from the first wildcard on. */
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

/** Whether a wildcard in it may find `..`: in some shells `.?` does. */
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
