/** What tells a random value from a word, a name in code, a path or a placeholder. */

/** Keys as programs make them: letters and digits without rhythm. */
export function looksRandom(value: string): boolean {
  if (value.length < 16 || isPlaceholder(value)) return false
  const { digits, changes, letters, distinct } = measure(value)
  if (letters === 0 || digits === 0 || distinct < 8) return false
  if (/^[\da-f-]+$/i.test(value)) return digits > 3
  if (changes < value.length / 5) return false
  return wordLetters(value) * 3 <= letters * 2
}

/** Passwords as people choose them: not a word, a name in code, a path, a type or a sentence. */
export function looksLikePassword(value: string): boolean {
  if (isPlaceholder(value) || /^(?:[\d.]+|0x[\da-f]+)$|:\/\//i.test(value)) return false
  const { digits, letters, symbols, distinct } = measure(value)
  if (letters === 0 || distinct < 5) return false
  if (symbols > 0 && /[()[\]{}<>|*^?]|::|\/\/|\.\.|=>|&&/.test(value)) {
    // Symbols of code are no sign of a password, unless the rest has no words.
    return digits > 0 && wordLetters(value) * 2 <= letters && /\d[A-Za-z]|[A-Za-z]\d/.test(value)
  }
  if (symbols > 0) {
    const isMixed = digits > 0 || (value.length >= 8 && /[a-z]/.test(value) && /[A-Z]/.test(value))
    return isMixed && !/^[#@/.$:%~]/.test(value)
  }
  return digits > 0 && (looksRandom(value) || wordLetters(value) < letters || /^[a-z]{4,}\d{2,}$/i.test(value))
}

export function isPlaceholder(value: string): boolean {
  return /example|placeholder|change.?me|replace.?me|your|redacted|dummy|insert|x{4}|\*{3}|\.{3}|<|\$\{|\$\(|%[sd({]|\{\{|process\.env|\benv\b|undefined|null\b|12345678|abcdefgh/i.test(
    value,
  )
}

/** Base64 of `user:password`. */
export function isBasicCredentials(value: string): boolean {
  return /^[\x20-\x7e]*[\x21-\x7e]:[\x20-\x7e]+$/.test(Buffer.from(value, 'base64').toString('latin1'))
}

/** The first part of a JSON web token is an object that names an algorithm. */
export function hasTokenHeader(token: string): boolean {
  const header = Buffer.from(token.slice(0, token.indexOf('.')), 'base64url').toString('latin1')
  return header.startsWith('{"') && header.includes('"alg"')
}

interface Measure {
  letters: number
  digits: number
  /** Neither letter, digit, nor what joins words. */
  symbols: number
  /** How often a character is of another class than the one before. */
  changes: number
  distinct: number
}

function measure(value: string): Measure {
  const result = { letters: 0, digits: 0, symbols: 0, changes: 0, distinct: new Set(value).size }
  let before = ''
  for (const character of value) {
    const kind = kindOf(character)
    if (kind === 'digit') result.digits++
    else if (kind === 'lower' || kind === 'upper') result.letters++
    else if (kind === 'symbol') result.symbols++
    if (before !== '' && kind !== before) result.changes++
    before = kind
  }
  return result
}

function kindOf(character: string): 'digit' | 'lower' | 'upper' | 'joint' | 'symbol' {
  if (character >= '0' && character <= '9') return 'digit'
  if (character >= 'a' && character <= 'z') return 'lower'
  if (character >= 'A' && character <= 'Z') return 'upper'
  return '-_./: '.includes(character) ? 'joint' : 'symbol'
}

/** Letters that stand in what could be words: four or more together with a vowel and a consonant, as words have them. */
function wordLetters(value: string): number {
  let count = 0
  for (const [word] of value.matchAll(/[A-Z]?[a-z]{4,}|[A-Z][a-z]{3}|[A-Z]{4,}/g)) {
    if (/[aeiouy]/i.test(word) && !/[^aeiouy]{5}|[jqxz][^aeiouy]|[^aeiouy][jqx]/i.test(word)) count += word.length
  }
  return count
}
