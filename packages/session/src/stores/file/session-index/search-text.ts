/**
 * Splits text into words, for queries and for the index. Text is case-folded; runs of letters and digits are
 * words; scripts without spaces are split into overlapping pairs of characters. Every candidate from the index
 * is checked against the real text.
 */

/** The terms of a text that are indexed. Words can be found by a part of them; pairs only match whole. */
export interface Terms {
  words: Set<string>
  pairs: Set<string>
}

/** Shorter parts match only at the start of a word. */
const minPartLength = 3

/** Normalizes text for comparison: removes case, accents and compatibility forms. */
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

/** The words of a query; an entry must contain all of them. */
export function wordsOf(query: string): string[] {
  return [...new Set(fold(query.slice(0, maxQueryLength)).split(/\s+/))].filter((word) => word !== '')
}

/** Indexed words that contain a part; incomplete if there are too many to name. */
export interface FoundTerms {
  terms: string[]
  isComplete: boolean
}

/**
 * The full-text query, or undefined if nothing can match. Every term is quoted, so queries contain no syntax.
 * It may match too much and, for very common parts of words, too little.
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

/** What the terms of a text with these words are like. */
export interface SearchPieces {
  /** Each is a term of the text, or the beginning of one. */
  terms: { term: string; isPrefix: boolean }[]
  /** Each is in a word of the text. */
  parts: string[]
}

export function searchPieces(words: readonly string[]): SearchPieces {
  const found: SearchPieces = { terms: [], parts: [] }
  for (const word of words.slice(0, maxLookedUpWords)) {
    for (const { type, text } of piecesOf(word)) {
      if (type === 'pairs') {
        const pairs = pairsOf(text)
        if (pairs.length === 1) found.terms.push({ term: text, isPrefix: true })
        else for (const term of pairs.slice(0, -1)) found.terms.push({ term, isPrefix: false })
      } else if (text.length < minPartLength) found.terms.push({ term: text, isPrefix: true })
      else found.parts.push(text)
    }
  }
  return found
}

/** Text around the first match, on one line; undefined if a word is missing. */
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

/** Prefix lengths for which the full-text index keeps separate lists. */
export const indexedPrefixes = [1, 2, 3]

const maxQueryLength = 1000
/** Further words are not looked up, only compared. */
const maxLookedUpWords = 16
/** Only this many characters of a longer word are indexed. */
const maxWordLength = 64
/** A database rejects a term that ends with it. */
const halfPairAtEnd = /[\ud800-\udbff]$/

const beyondAscii = /[\u0080-\uffff]/
const accents = /[\u0300-\u036f]/g
const betweenAsciiWords = /[^a-z0-9]+/

/** Chinese, Japanese, Korean and the scripts of Southeast Asia; each symbol (an emoji, an arrow) is its own run. */
const pieces =
  /(?<run>[[\p{L}\p{M}\p{N}]&&[\p{scx=Han}\p{scx=Hiragana}\p{scx=Katakana}\p{scx=Hangul}\p{scx=Bopomofo}\p{scx=Thai}\p{scx=Lao}\p{scx=Khmer}\p{scx=Myanmar}]]+)|(?<symbol>[\p{S}--\p{ASCII}])|[[\p{L}\p{M}\p{N}]--[\p{scx=Han}\p{scx=Hiragana}\p{scx=Katakana}\p{scx=Hangul}\p{scx=Bopomofo}\p{scx=Thai}\p{scx=Lao}\p{scx=Khmer}\p{scx=Myanmar}]]+/gv

interface Piece {
  type: 'word' | 'pairs'
  text: string
}

function* piecesOf(folded: string): Iterable<Piece> {
  for (const [text, run, symbol] of folded.matchAll(pieces)) {
    if (run === undefined && symbol === undefined)
      yield { type: 'word', text: text.slice(0, maxWordLength).replace(halfPairAtEnd, '') }
    else yield { type: 'pairs', text }
  }
}

/** Overlapping pairs, plus the last character alone, so that every character starts a term. */
function pairsOf(run: string): string[] {
  const characters = Array.from(run)
  return characters.map((character, index) => character + (characters[index + 1] ?? ''))
}

function expressionsOfRun(run: string): string[] {
  const pairs = pairsOf(run)
  return pairs.length === 1 ? pairs.map(startingWith) : pairs.slice(0, -1).map(quote)
}

/** Naming every term is faster than a prefix query, except for short prefixes, which have their own lists. */
function alternatives(part: string, terms: readonly string[], isComplete: boolean): string[] {
  if (isComplete && !indexedPrefixes.includes(part.length)) return terms.map(quote)
  return [startingWith(part), ...terms.filter((term) => !term.startsWith(part)).map(quote)]
}

function startingWith(term: string): string {
  return `${quote(term)}*`
}

/** Maps an index in the folded text to the original, within a character or two: folding changes lengths. */
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
