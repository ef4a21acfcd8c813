import { AnchorAutomaton } from './anchor-automaton.ts'
import { charactersOf, codeAt, isIn } from './family.ts'

/** Distinguishes a random value from a word, a name in code, a path or a placeholder. */

/** Generated keys: random letters and digits. */
export function looksRandom(value: string): boolean {
  if (value.length < 16) return false
  // Several families check the same value in succession.
  if (value !== lastAsked.value) {
    lastAsked = { value, isRandom: isRandom(value, measure(value)) && !isPlaceholder(value) }
  }
  return lastAsked.isRandom
}

let lastAsked = { value: '', isRandom: false }

function isRandom(value: string, { digits, changes, letters, distinct }: Measure): boolean {
  if (letters === 0 || digits === 0 || distinct < 8) return false
  if (/^[\da-f-]+$/i.test(value)) return digits > 3
  if (changes < value.length / 5) return false
  return wordLetters(value) * 3 <= letters * 2
}

/**
 * Passwords that people choose: not a word, a name in code, a path, a type or a sentence. The cheapest checks come
 * first.
 */
export function looksLikePassword(value: string): boolean {
  const measured = measure(value)
  return isPasswordMix(value, measured) && !isPlaceholder(value) && isPassword(value, measured)
}

/** Whether it has enough variety for a password, in any order. */
function isPasswordMix(value: string, { digits, capitals, letters, symbols, distinct }: Measure): boolean {
  if (letters === 0 || distinct < 5) return false
  return digits > 0 || (symbols > 0 && value.length >= 8 && capitals > 0 && capitals < letters)
}

function isPassword(value: string, measured: Measure): boolean {
  const { digits, letters, symbols, hasCode, isMixed } = measured
  if (codeAt(value, 0) === zero && /^0x[\da-f]+$/i.test(value)) return false
  if (hasCode && value.includes('://')) return false
  if (symbols > 0 && hasCode) {
    // Symbols of code do not indicate a password, unless the rest has no words.
    return digits > 0 && isMixed && wordLetters(value) * 2 <= letters
  }
  if (symbols > 0) return !isIn(firstOfCode, codeAt(value, 0))
  return (
    (value.length >= 16 && isRandom(value, measured)) ||
    wordLetters(value) < letters ||
    /^[a-z]{4,}\d{2,}$/i.test(value)
  )
}

/** A placeholder for a value: a word such as `example`, or the syntax of a template or a shell. */
export function isPlaceholder(value: string): boolean {
  const { next, firstHit } = placeholders
  let state = 0
  for (let index = 0; index < value.length; index++) {
    const code = value.charCodeAt(index)
    // Always within the tables.
    state = next[(state << 7) | (code < 128 ? (folded[code] as number) : 0)] as number
    if (state < firstHit) continue
    for (const { length, value: rest } of placeholders.hitsOf(state)) {
      if (rest === undefined) return true
      rest.lastIndex = index + 1 - length
      if (rest.test(value)) return true
    }
  }
  return false
}

/** In lower case; with a pattern if the word alone is ambiguous. */
const placeholders = new AnchorAutomaton<RegExp | undefined>([
  ...['example', 'placeholder', 'your', 'redacted', 'dummy', 'insert', 'xxxx', '***', '...', '<', '${', '$('].map(
    asWord,
  ),
  ...['%s', '%d', '%(', '%{', '{{', 'process.env', 'undefined', '12345678', 'abcdefgh'].map(asWord),
  ['change', /change.?me/iy],
  ['replace', /replace.?me/iy],
  ['env', /\benv\b/iy],
  ['null', /null\b/iy],
])

function asWord(word: string): [string, undefined] {
  return [word, undefined]
}

/** ASCII characters in lower case. */
const folded = Uint8Array.from({ length: 128 }, (_, code) => String.fromCharCode(code).toLowerCase().charCodeAt(0))

/** Base64 of `user:password`. */
export function isBasicCredentials(value: string): boolean {
  return /^[\x20-\x7e]*[\x21-\x7e]:[\x20-\x7e]+$/.test(Buffer.from(value, 'base64').toString('latin1'))
}

/** The first part of a JSON web token is an object with an algorithm. */
export function hasTokenHeader(token: string): boolean {
  const header = Buffer.from(token.slice(0, token.indexOf('.')), 'base64url').toString('latin1')
  return header.startsWith('{"') && header.includes('"alg"')
}

interface Measure {
  letters: number
  capitals: number
  digits: number
  /** Neither letters, digits, nor word separators. */
  symbols: number
  /** How often a character has another class than the previous one. */
  changes: number
  distinct: number
  /** Brackets or operators of code: one of `()[]{}<>|*^?`, `::`, `//`, `..`, `=>` or `&&`. */
  hasCode: boolean
  /** A digit beside a letter. */
  isMixed: boolean
}

function measure(value: string): Measure {
  const result = {
    letters: 0,
    capitals: 0,
    digits: 0,
    symbols: 0,
    changes: 0,
    distinct: 0,
    hasCode: false,
    isMixed: false,
  }
  let others: Set<number> | undefined
  let before = -1
  let codeBefore = -1
  seen.fill(0)
  for (let index = 0; index < value.length; index++) {
    let code = value.charCodeAt(index)
    let kind = symbol
    if (code < 128) {
      kind = kinds[code] as number
      if (seen[code] === 0) {
        seen[code] = 1
        result.distinct++
      }
    } else {
      code = value.codePointAt(index) as number
      if (code > 0xffff) index++
      ;(others ??= new Set()).add(code)
    }
    if (kind === digit) result.digits++
    else if (kind === lower) result.letters++
    else if (kind === upper) {
      result.letters++
      result.capitals++
    } else if (kind === symbol) result.symbols++
    if (before !== -1 && kind !== before) {
      result.changes++
      if (isLetterAndDigit(before, kind)) result.isMixed = true
    }
    if (isIn(codeCharacters, code) || (code === codeBefore && isIn(doubledInCode, code))) result.hasCode = true
    before = kind
    codeBefore = code
  }
  result.distinct += others?.size ?? 0
  return result
}

function isLetterAndDigit(left: number, right: number): boolean {
  const other = left === digit ? right : right === digit ? left : symbol
  return other === lower || other === upper
}

/** A `>` of `=>` is one of them. */
const codeCharacters = charactersOf(/[()[\]{}<>|*^?]/)
const doubledInCode = charactersOf(/[:/.&]/)
const firstOfCode = charactersOf(/[#@/.$:%~]/)
const zero = 0x30

/** The ASCII characters that occurred; reused for every value. */
const seen = new Uint8Array(128)
const [symbol, digit, lower, upper, joint] = [0, 1, 2, 3, 4]

/** The kind of each ASCII character. */
const kinds = Uint8Array.from({ length: 128 }, (_, code) => {
  const character = String.fromCharCode(code)
  if (/\d/.test(character)) return digit
  if (/[a-z]/.test(character)) return lower
  if (/[A-Z]/.test(character)) return upper
  return '-_./: '.includes(character) ? joint : symbol
})

/**
 * Letters in possible words: four or more together with a vowel and a consonant. A word is in lower case, with an
 * optional capital, or all in capitals.
 */
function wordLetters(value: string): number {
  let count = 0
  let start = 0
  while (start < value.length) {
    const isCapital = isIn(capitalLetters, codeAt(value, start))
    let end = start + (isCapital ? 1 : 0)
    while (isIn(smallLetters, codeAt(value, end))) end++
    if (isCapital && end - start < 4) {
      end = start
      while (isIn(capitalLetters, codeAt(value, end))) end++
    }
    const length = end - start
    if (length >= 4) {
      if (isPronounceable(value, start, end)) count += length
      start = end
    } else {
      start += isCapital ? 1 : Math.max(1, length)
    }
  }
  return count
}

function isPronounceable(value: string, start: number, end: number): boolean {
  let hasVowel = false
  let consonants = 0
  let before = 0
  for (let index = start; index < end; index++) {
    const code = folded[value.charCodeAt(index)] as number
    if (isIn(vowels, code)) {
      hasVowel = true
      consonants = 0
    } else {
      consonants++
      if (consonants === 5 || isIn(neverBeforeConsonants, before)) return false
      if (consonants > 1 && isIn(neverAfterConsonants, code)) return false
    }
    before = code
  }
  return hasVowel
}

const smallLetters = charactersOf(/[a-z]/)
const capitalLetters = charactersOf(/[A-Z]/)
const vowels = charactersOf(/[aeiouy]/)
const neverBeforeConsonants = charactersOf(/[jqxz]/)
const neverAfterConsonants = charactersOf(/[jqx]/)
