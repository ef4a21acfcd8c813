/** A kind of secret, known by its shape or by what stands before it. */
export interface SecretFamily {
  /** What the marker says: `[redacted: name]`. Lower case and dashes. */
  readonly name: string
  /** The pattern is tried where one of these stands, and nowhere else. As they are written: case counts. */
  readonly anchors: readonly string[]
  /**
   * Tried at the anchor's start. Without groups the whole match is the secret; with two, the first is what leads to it and the second
   * is the secret. What may be repeated is bounded and cannot match in two ways, so that time grows with the text and no faster. Looks
   * back at most `maxLookBehind` characters, and ahead one.
   */
  readonly pattern: RegExp
  /** The anchor is short or common: no letter, digit, dash or underscore may stand before it. */
  readonly startsWord?: boolean
  /**
   * At most so many of these characters may stand right before the anchor. For patterns that go on for thousands of characters, among
   * which there may be more anchors: without this, time would grow with the square of their length. What stands behind all of them may
   * be given, too.
   */
  readonly maxRunBefore?: { readonly characters: CharacterSet; readonly length: number; readonly isFollowedBy?: string }
  /**
   * The pattern begins with a name, and whether it matches depends only on what follows that name. Lets the scanner reject an anchor
   * without running the pattern, and run the pattern once for a name that contains many anchors.
   */
  readonly nameShape?: NameShape
  /** What the pattern cannot say. */
  readonly check?: (secret: string) => boolean
}

/** A name before a value, as `password` in `password = "value"`. */
export interface NameShape {
  /** A number of its own, from 0. */
  readonly index: number
  /** Dots belong to the name, beside letters, digits, `_` and `-`. */
  readonly hasDots: boolean
  /** Longer names are not matched. */
  readonly maxLength: number
  /** Another anchor in the same name may match where this one does not, for more than the length of the name. */
  readonly dependsOnAnchor: boolean
  /** What stands between the name and its value: an assignment, or one space as after an option of a command. */
  readonly joint: 'assignment' | 'space'
  /** An `=` follows the name, without a space. */
  readonly isDirect: boolean
  /** The value consists of letters, digits and `+/_.~%!@#$^*=-`. */
  readonly isToken: boolean
  /** The value stands between quotes, and has at most 128 characters. */
  readonly isQuoted: boolean
  /** The same family was tried before for a value between quotes, and this one's check rejects all that the other rejects. */
  readonly isAfterQuoted: boolean
  /** Shorter values are not matched. A value has neither spaces, quotes nor backslashes. */
  readonly minValueLength: number
  /** If the value may itself contain names and signs: the longest that is matched. It has no spaces, quotes, brackets, `,;&\\$`. */
  readonly maxValueLength: number | undefined
}

/** How far before an anchor a pattern, or the search for a variable's name, may look. */
export const maxLookBehind = 64

/** For each character of ASCII, whether it belongs to the set. Asked in hot loops, where a pattern would be slower. */
export type CharacterSet = Uint8Array

export function charactersOf(pattern: RegExp): CharacterSet {
  return Uint8Array.from({ length: 128 }, (_, code) => (pattern.test(String.fromCharCode(code)) ? 1 : 0))
}

/** False for characters outside of ASCII, and for what `codeAt` gives outside of the text. */
export function isIn(set: CharacterSet, code: number): boolean {
  return code >= 0 && code < 128 && set[code] === 1
}

/** The character at an index, or -1. The `NaN` of `charCodeAt` for a place outside of the text makes the whole loop around it slow. */
export function codeAt(text: string, index: number): number {
  return index >= 0 && index < text.length ? text.charCodeAt(index) : -1
}
