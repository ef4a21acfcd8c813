import { charactersOf, codeAt, isIn, type CharacterSet, type NameShape } from './family.ts'

/**
 * Rejects anchors inside names without running a pattern. A name such as `tokentokentoken` contains many anchors, and
 * the text after it is the same for all of them: it is examined once, and each family's pattern runs at most once for
 * it. Without this, a text full of names takes a hundred times as long as ordinary text. Belongs to one text; `moveTo`
 * continues with its next part.
 */
export class NameMemo {
  #text = ''
  #isWhole = true
  /** The offset of `#text` in the whole text. */
  #offset = 0
  readonly #plain = new Runs(plainNames)
  readonly #dotted = new Runs(dottedNames)
  readonly #words = new Runs(words)
  readonly #tokens = new Runs(tokens)
  readonly #values = new Runs(values)
  readonly #joined = new Runs(joined)
  /** Up to the next digit, and up to the next capital. */
  readonly #digits = new Runs(notDigits)
  readonly #capitals = new Runs(notCapitals)
  /** Up to the next symbol. */
  readonly #plainText = new Runs(notSymbols)
  readonly #letters = new Runs(underscoredLetters)
  readonly #runs = [
    ...[this.#plain, this.#dotted, this.#words, this.#tokens],
    ...[this.#values, this.#joined, this.#digits, this.#capitals, this.#plainText, this.#letters],
  ]
  /** The end of the last examined name, and the start of its value. */
  #nameEnd = -1
  #valueStart: ValueStart = 'none'
  /** The last value that a check rejected. */
  #rejectedStart = -1
  #rejectedEnd = -1
  /** For each shape, the end of the last name after which its pattern did not match, plus one. */
  readonly #unmatched = new Uint32Array(maxShapes)
  /** For each shape, the end of the run of the last rejected value in the whole text, and how many were rejected. */
  readonly #rejectedEnds = new Float64Array(maxShapes)
  readonly #rejectedCounts = new Uint32Array(maxShapes)

  moveTo(text: string, { offset, isWhole }: { offset: number; isWhole: boolean }): void {
    this.#text = text
    this.#offset = offset
    this.#isWhole = isWhole
    this.#nameEnd = -1
    this.#rejectedStart = -1
    for (const runs of this.#runs) runs.moveTo(text)
    this.#unmatched.fill(0)
    if (offset === 0) this.#rejectedCounts.fill(0)
  }

  /** False if the family's pattern cannot match at an anchor that starts here. */
  mayMatch(shape: NameShape, start: number): boolean {
    return this.#mayBeName(shape, start) && this.#mayBeValue(shape, start)
  }

  #mayBeName(shape: NameShape, start: number): boolean {
    const { maxLength, joint, minValueLength, isAfterQuoted } = shape
    const end = this.#nameEndOf(shape, start)
    if (this.#isOpen(end)) return true
    if (end - start > maxLength || this.#unmatched[shape.index] === end + 1) return false
    if (shape.isDirect && (codeAt(this.#text, end) !== equals || isIn(spaces, codeAt(this.#text, end + 1))))
      return false
    const valueStart = joint === 'space' ? this.#afterSpace(end) : this.#afterSign(end)
    if (valueStart === 'none') return false
    if (valueStart === 'unknown') return true
    if (isAfterQuoted && (this.#wasRejected(valueStart) || this.#beginsAnother(valueStart))) return false
    if (this.#cannotEnd(shape, valueStart)) return false
    const valueEnd = this.#valuesOf(shape).endOf(valueStart)
    if (shape.isPassword && !this.#mayBePassword(valueStart, valueEnd)) return false
    if (shape.isQuoted && !this.#isBetweenQuotes(valueStart, valueEnd)) return false
    return this.#isOpen(valueEnd) || valueEnd - valueStart >= minValueLength
  }

  #valuesOf({ isToken, maxValueLength }: NameShape): Runs {
    if (isToken) return this.#tokens
    return maxValueLength === undefined ? this.#words : this.#joined
  }

  #isBetweenQuotes(start: number, end: number): boolean {
    if (!isIn(quotes, codeAt(this.#text, start - 1))) return false
    return this.#isOpen(end) || (end - start <= maxQuoted && isIn(afterQuoted, codeAt(this.#text, end)))
  }

  /**
   * Whether the value was found between quotes, consists of characters that are also allowed without quotes, and was
   * rejected.
   */
  #wasRejected(valueStart: number): boolean {
    return valueStart === this.#rejectedStart && this.#values.endOf(valueStart) >= this.#rejectedEnd
  }

  /** Whether no value can end where its characters do, or it is too long. Many names can be in the same value. */
  #cannotEnd({ notAfterValue, maxValueLength = Infinity }: NameShape, valueStart: number): boolean {
    if (notAfterValue === undefined) return false
    const end = this.#values.endOf(valueStart)
    return end - valueStart > maxValueLength || isIn(notAfterValue, codeAt(this.#text, end))
  }

  /** A password has a digit, or eight characters with a capital and a symbol that do not begin like code. */
  #mayBePassword(start: number, end: number): boolean {
    if (this.#isOpen(end) || this.#digits.endOf(start) < end) return true
    const isExact = this.#isAfterOneSign(start)
    if (end - start < (isExact ? minCapitalized : minCapitalized - maxSign)) return false
    if (isExact && isIn(firstOfCode, codeAt(this.#text, start))) return false
    // The signs that a value may begin with are symbols, too.
    if (isExact && this.#plainText.endOf(start) >= end) return false
    return this.#capitals.endOf(start) < end
  }

  /** Whether the value begins with another name and its sign, as in `pass=pass=`, or with the slashes of a URL. */
  #beginsAnother(start: number): boolean {
    if (!this.#isAfterOneSign(start)) return false
    const code = codeAt(this.#text, start)
    if (code === slash) return codeAt(this.#text, start + 1) === slash
    const end = this.#letters.endOf(start)
    return end > start && isIn(afterName, codeAt(this.#text, end))
  }

  /** Otherwise the value may begin with the later signs, as in `pass::a1b2`. */
  #isAfterOneSign(start: number): boolean {
    const first = codeAt(this.#text, start - 3)
    const second = codeAt(this.#text, start - 2)
    const third = codeAt(this.#text, start - 1)
    if (!isIn(signs, third) || !isIn(signs, second)) return true
    if (isIn(signs, first)) return first === equals && second === equals && third === equals
    return third === equals ? second === equals || second === colon : second === equals && third === greater
  }

  #afterSpace(nameEnd: number): ValueStart {
    if (codeAt(this.#text, nameEnd) !== space) return 'none'
    return isIn(quotes, codeAt(this.#text, nameEnd + 1)) ? nameEnd + 2 : nameEnd + 1
  }

  #afterSign(nameEnd: number): ValueStart {
    if (nameEnd !== this.#nameEnd) {
      this.#nameEnd = nameEnd
      this.#valueStart = this.#findValue(nameEnd)
    }
    return this.#valueStart
  }

  /** The start of the value if one is assigned. The patterns define an assignment more exactly. */
  #findValue(nameEnd: number): ValueStart {
    const text = this.#text
    const sign = this.#skip(beforeSign, nameEnd, maxBeforeSign)
    if (this.#isOpen(sign)) return 'unknown'
    if (!isIn(signs, codeAt(text, sign))) return 'none'
    if (this.#mayBeType(sign)) return 'unknown'
    const signEnd = this.#skip(signs, sign, maxSign)
    // What follows a space or a quote belongs to no value that begins with a sign.
    if (isIn(beforeValue, codeAt(text, signEnd)) && !wholeSigns.has(text.slice(sign, signEnd))) return 'none'
    return this.#skip(beforeValue, signEnd, maxBeforeSign)
  }

  /** Whether a type precedes the sign: `token: string = "value"`. */
  #mayBeType(colon: number): boolean {
    const text = this.#text
    if (text.charAt(colon) !== ':') return false
    const start = text.charAt(colon + 1) === ' ' ? colon + 2 : colon + 1
    const end = this.#skip(letters, text.charAt(start) === '&' ? start + 1 : start, maxTypeLength)
    const sign = this.#skip(spaces, end, maxBeforeSign)
    return this.#isOpen(sign) || (end > start && text.charAt(sign) === '=')
  }

  #skip(characters: CharacterSet, start: number, limit: number): number {
    let index = start
    while (index - start < limit && isIn(characters, codeAt(this.#text, index))) index++
    return index
  }

  /** Names and signs can be part of a value, as in `pwd=pwd=pwd=`, so that many values end at the same position. */
  #mayBeValue({ maxLength, maxValueLength, index }: NameShape, start: number): boolean {
    if (maxValueLength === undefined) return true
    if (this.#values.endOf(start) - start > maxLength + maxTypedSign + maxValueLength) return false
    // Always within the table.
    if ((this.#rejectedCounts[index] as number) < maxRejected) return true
    return this.#rejectedEnds[index] !== this.#offset + this.#joined.endOf(start)
  }

  /** Records that the pattern ran at this anchor and did not match. */
  unmatched(shape: NameShape, start: number): void {
    if (!shape.dependsOnAnchor) this.#unmatched[shape.index] = this.#nameEndOf(shape, start) + 1
  }

  /** Records that the pattern matched at this anchor, and that the check of the family rejected the value. */
  rejected(shape: NameShape, start: number, value: { start: number; end: number }): void {
    const { index } = shape
    this.#unmatched[index] = this.#nameEndOf(shape, start) + 1
    this.#rejectedStart = value.start
    this.#rejectedEnd = value.end
    if (shape.maxValueLength === undefined) return
    const end = this.#offset + this.#joined.endOf(start)
    this.#rejectedCounts[index] = this.#rejectedEnds[index] === end ? (this.#rejectedCounts[index] as number) + 1 : 1
    this.#rejectedEnds[index] = end
  }

  #nameEndOf({ hasDots }: NameShape, start: number): number {
    return (hasDots ? this.#dotted : this.#plain).endOf(start)
  }

  #isOpen(index: number): boolean {
    return index >= this.#text.length && !this.#isWhole
  }
}

type ValueStart = number | 'none' | 'unknown'

/** Finds the ends of runs of some characters; remembers the last one. */
class Runs {
  readonly #characters: RunCharacters
  #text = ''
  #start = 0
  #end = 0

  constructor(characters: RunCharacters) {
    this.#characters = characters
  }

  moveTo(text: string): void {
    this.#text = text
    this.#start = 0
    this.#end = 0
  }

  endOf(start: number): number {
    if (start >= this.#start && start < this.#end) return this.#end
    const { ascii, hasOthers } = this.#characters
    let end = start
    for (; end < this.#text.length; end++) {
      const code = this.#text.charCodeAt(end)
      if (code < 128 ? !isIn(ascii, code) : !hasOthers || isWideSpace(code)) break
    }
    this.#start = start
    this.#end = end
    return end
  }
}

interface RunCharacters {
  ascii: CharacterSet
  /** Whether all other characters but spaces belong to them, too. */
  hasOthers: boolean
}

/** The spaces outside of ASCII that `\s` matches. */
function isWideSpace(code: number): boolean {
  // Most text outside of ASCII is below or above all of them but two.
  if (code < 0x1680 || code > 0x3000) return code === 0xa0 || code === 0xfeff
  return (code >= 0x2000 && code <= 0x200a) || wideSpaces.has(code)
}

const wideSpaces = new Set([0x1680, 0x2028, 0x2029, 0x202f, 0x205f, 0x3000])

/** More than the number of families with a name. */
const maxShapes = 64
const plainNames = { ascii: charactersOf(/[A-Za-z0-9_-]/), hasOthers: false }
const dottedNames = { ascii: charactersOf(/[A-Za-z0-9_.-]/), hasOthers: false }
/** Every value is part of one. */
const words = { ascii: charactersOf(/[^\s"'`\\]/), hasOthers: true }
/** Values of letters, digits and a few other characters. */
const tokens = { ascii: charactersOf(/[A-Za-z0-9+/_.~%!@#$^*=-]/), hasOthers: false }
/** Unquoted passwords. */
const values = { ascii: charactersOf(/[^\s"'`\\,;&(){}<>[\]$]/), hasOthers: true }
/** Unquoted passwords including `&` in a query: `a=1&b=2`. */
const joined = { ascii: charactersOf(/[^\s"'`\\,;(){}<>[\]$]/), hasOthers: true }
const notDigits = { ascii: charactersOf(/\D/), hasOthers: true }
const notCapitals = { ascii: charactersOf(/[^A-Z]/), hasOthers: true }
/** As `value-shape.ts` counts them: letters, digits and the separators of words. */
const notSymbols = { ascii: charactersOf(/[A-Za-z0-9_./: -]/), hasOthers: false }
const underscoredLetters = { ascii: charactersOf(/[A-Za-z_]/), hasOthers: false }
const afterName = charactersOf(/[.=:]/)
const firstOfCode = charactersOf(/[#@/.$:%~]/)
const beforeSign = charactersOf(/[\\"'`\] \t]/)
const signs = charactersOf(/[=:,>]/)
const wholeSigns = new Set(['=', '==', '===', '=>', ':=', ':', ',', '>'])
const beforeValue = charactersOf(/[\\"'` \t]/)
const quotes = charactersOf(/["'`]/)
const spaces = charactersOf(/[ \t]/)
const letters = charactersOf(/[A-Za-z]/)
const afterQuoted = charactersOf(/["'`\\]/)
const [space, equals, slash, colon, greater] = [0x20, 0x3d, 0x2f, 0x3a, 0x3e]
const maxQuoted = 128
/** Three backslashes, a quote, a bracket and sixteen spaces. */
const maxBeforeSign = 21
/** `===` */
const maxSign = 3
const maxTypeLength = 6
/** `looksLikePassword` takes a value without digits only from this length on. */
const minCapitalized = 8
/** A type and a sign without spaces: `:string===`. */
const maxTypedSign = 16
/** If this many values with the same end are not secrets, shorter ones are not examined. */
const maxRejected = 3
