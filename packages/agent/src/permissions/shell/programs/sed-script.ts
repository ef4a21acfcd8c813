/**
 * Whether a sed script only prints: addresses, `p`, `d`, `q`, `s` and similar commands. Commands that write (`w`), run
 * (`e`), read other files (`r`), or take text or labels are rejected, and so are the flags of `s` that do so.
 */
export function sedOnlyPrints(script: string): boolean {
  const rest = new Scanner(script)
  let depth = 0
  while (!rest.isAtEnd) {
    if (rest.skip(/[\s;]+/y)) continue
    if (rest.skip(/\}/y)) {
      depth -= 1
      if (depth < 0) return false
      continue
    }
    if (!skipAddresses(rest)) return false
    if (rest.skip(/\{/y)) {
      depth += 1
      continue
    }
    if (!skipCommand(rest) || !rest.looksAt(/\s*(?:[;}\n]|$)/y)) return false
  }
  return depth === 0
}

class Scanner {
  readonly #text: string
  #at = 0

  constructor(text: string) {
    this.#text = text
  }

  get isAtEnd(): boolean {
    return this.#at === this.#text.length
  }

  /** Skips the match of a sticky expression at the current position. */
  skip(sticky: RegExp): boolean {
    sticky.lastIndex = this.#at
    const found = sticky.exec(this.#text)
    if (found) this.#at += found[0].length
    return found !== null
  }

  looksAt(sticky: RegExp): boolean {
    sticky.lastIndex = this.#at
    return sticky.test(this.#text)
  }

  take(): string {
    const letter = this.#text[this.#at] ?? ''
    this.#at += letter.length
    return letter
  }
}

function skipAddresses(rest: Scanner): boolean {
  if (skipAddress(rest) === 'broken') return false
  if (rest.skip(/\s*,\s*/y) && !rest.skip(/[+~][0-9]+/y) && skipAddress(rest) !== 'found') return false
  rest.skip(/\s*!?\s*/y)
  return true
}

function skipAddress(rest: Scanner): 'found' | 'none' | 'broken' {
  if (rest.skip(/[0-9]+(?:~[0-9]+)?|\$/y)) return 'found'
  if (!rest.skip(/\//y)) return 'none'
  if (!skipPattern(rest, '/')) return 'broken'
  rest.skip(/[IM]+/y)
  return 'found'
}

function skipCommand(rest: Scanner): boolean {
  if (rest.skip(/[pdDPgGhHxnNl=]/y)) return true
  if (rest.skip(/[qQ] *[0-9]*/y)) return true
  if (rest.skip(/y/y)) {
    const delimiter = rest.take()
    return isDelimiter(delimiter) && skipText(rest, delimiter) && skipText(rest, delimiter)
  }
  if (!rest.skip(/s/y)) return false
  const delimiter = rest.take()
  if (!isDelimiter(delimiter) || !skipPattern(rest, delimiter) || !skipText(rest, delimiter)) return false
  return rest.skip(/[gpiI0-9]*/y)
}

function isDelimiter(letter: string): boolean {
  return /^[/|,#:@!%_~+]$/.test(letter)
}

/** A regular expression up to its delimiter, which may be inside brackets. Ambiguous brackets are rejected. */
function skipPattern(rest: Scanner, delimiter: string): boolean {
  while (!rest.isAtEnd) {
    if (rest.skip(/\[\^?(?:[^\][\\\n]|\[:[a-z]+:\])+\]/y)) continue
    const letter = rest.take()
    if (letter === delimiter) return true
    if (letter === '[' || letter === '\n' || (letter === '\\' && !rest.skip(/[^c\n]/y))) return false
  }
  return false
}

function skipText(rest: Scanner, delimiter: string): boolean {
  while (!rest.isAtEnd) {
    const letter = rest.take()
    if (letter === delimiter) return true
    if (letter === '\n' || (letter === '\\' && !rest.skip(/[^c\n]/y))) return false
  }
  return false
}
