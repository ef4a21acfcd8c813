/**
 * What is a word, here as in the index: text is folded, runs of letters and digits are words, and scripts that put no spaces
 * between words are cut into overlapping pairs of characters. Whatever the index offers is checked against the real text.
 */

/** The terms of a text that go into the index. Only words can be found by their middle; pairs are found as they are. */
export interface Terms {
  words: Set<string>
  pairs: Set<string>
}

/** Parts shorter than this are only found where a word begins. */
const minPartLength = 3

/** Text as it is compared: without case, accents and forms of the same character. */
export function fold(text: string): string {
  if (!beyondAscii.test(text)) return text.toLowerCase()
  return text.normalize('NFKD').replace(accents, '').normalize('NFKC').toLowerCase()
}

export function termsOf(folded: string): Terms {
  const terms: Terms = { words: new Set(), pairs: new Set() }
  if (beyondAscii.test(folded)) {
    for (const { type, text } of piecesOf(folded)) {
      if (type === 'word') terms.words.add(text)
      else for (const pair of pairsOf(text)) terms.pairs.add(pair)
    }
  } else {
    for (const word of folded.split(betweenAsciiWords)) if (word !== '') terms.words.add(word.slice(0, maxWordLength))
  }
  return terms
}

/** What is asked for, one item for each word; an entry must have all of them. */
export function wordsOf(query: string): string[] {
  return [...new Set(fold(query.slice(0, maxQueryLength)).split(/\s+/))].filter((word) => word !== '')
}

/** The words of the index that have a part inside; not complete where there are too many to name. */
export interface FoundTerms {
  terms: string[]
  isComplete: boolean
}

/**
 * The question to the index, or undefined where the answer is nothing. Every term is quoted, so nothing in a query is syntax. It
 * may find too much and, for very common parts of words, too little.
 */
export async function matchExpression(
  words: readonly string[],
  termsWith: (part: string) => Promise<FoundTerms>,
): Promise<string | undefined> {
  const all: string[] = []
  for (const word of words.slice(0, maxLookedUpWords)) {
    for (const { type, text } of piecesOf(word)) {
      if (type === 'pairs') all.push(...expressionsOfRun(text))
      else if (text.length < minPartLength) all.push(startingWith(text))
      else {
        const { terms, isComplete } = await termsWith(text)
        if (isComplete && terms.length === 0) return undefined
        all.push(`(${alternatives(text, terms, isComplete).join(' OR ')})`)
      }
    }
  }
  return all.join(' AND ')
}

/** Some words around the first match on one line; undefined where not every word is in the text. */
export function findWords(text: string, words: readonly string[]): string | undefined {
  const folded = fold(text)
  let first = folded.length
  for (const word of words) {
    const at = folded.indexOf(word)
    if (at === -1) return undefined
    first = Math.min(first, at)
  }
  return snippetAround(text, originalIndex(text, first))
}

export function quote(term: string): string {
  return `"${term.replaceAll('"', '""')}"`
}

/** The full-text index has lists of its own for beginnings of these lengths. */
export const indexedPrefixes = [1, 2, 3]

const maxQueryLength = 1000
/** The words after these are not looked up, only compared. */
const maxLookedUpWords = 16
/** Of a longer word only the beginning is indexed. */
const maxWordLength = 64

const beyondAscii = /[\u0080-\uffff]/
const accents = /[\u0300-\u036f]/g
const betweenAsciiWords = /[^a-z0-9]+/

/** Chinese, Japanese, Korean and the scripts of south-east Asia; each symbol (an emoji, an arrow) is a run of one. */
const pieces =
  /(?<run>[[\p{L}\p{M}\p{N}]&&[\p{scx=Han}\p{scx=Hiragana}\p{scx=Katakana}\p{scx=Hangul}\p{scx=Bopomofo}\p{scx=Thai}\p{scx=Lao}\p{scx=Khmer}\p{scx=Myanmar}]]+)|(?<symbol>[\p{S}--\p{ASCII}])|[[\p{L}\p{M}\p{N}]--[\p{scx=Han}\p{scx=Hiragana}\p{scx=Katakana}\p{scx=Hangul}\p{scx=Bopomofo}\p{scx=Thai}\p{scx=Lao}\p{scx=Khmer}\p{scx=Myanmar}]]+/gv

interface Piece {
  type: 'word' | 'pairs'
  text: string
}

function* piecesOf(folded: string): Iterable<Piece> {
  for (const [text, run, symbol] of folded.matchAll(pieces)) {
    if (run === undefined && symbol === undefined) yield { type: 'word', text: text.slice(0, maxWordLength) }
    else yield { type: 'pairs', text }
  }
}

/** Overlapping pairs, and the last character alone, so that every character begins a term. */
function pairsOf(run: string): string[] {
  const characters = Array.from(run)
  return characters.map((character, index) => character + (characters[index + 1] ?? ''))
}

function expressionsOfRun(run: string): string[] {
  const pairs = pairsOf(run)
  return pairs.length === 1 ? pairs.map(startingWith) : pairs.slice(0, -1).map(quote)
}

/** Naming every word is quicker than asking for all that begin alike, but for short beginnings, which have lists of their own. */
function alternatives(part: string, terms: readonly string[], isComplete: boolean): string[] {
  if (isComplete && !indexedPrefixes.includes(part.length)) return terms.map(quote)
  return [startingWith(part), ...terms.filter((term) => !term.startsWith(part)).map(quote)]
}

function startingWith(term: string): string {
  return `${quote(term)}*`
}

/** Where a place in the folded text is in the text itself, to within a character or two: folding changes lengths. */
function originalIndex(text: string, foldedIndex: number): number {
  let at = 0
  let folded = 0
  for (const step of [4096, 64, 1]) {
    for (;;) {
      const length = fold(text.slice(at, at + step)).length
      if (folded + length > foldedIndex || at + step >= text.length) break
      folded += length
      at += step
    }
  }
  return at
}

const snippetBefore = 40
const snippetAfter = 120

function snippetAround(text: string, at: number): string {
  const start = Math.max(0, at - snippetBefore)
  const end = at + snippetAfter
  const part = text.slice(start, end).toWellFormed().replace(/\s+/g, ' ').trim()
  return `${start > 0 ? '…' : ''}${part}${end < text.length ? '…' : ''}`
}
