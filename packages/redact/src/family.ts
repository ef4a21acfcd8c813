/** A kind of secret, recognized by its shape or by the text before it. */
export interface SecretFamily {
  /** The name in the marker: `[redacted: name]`. Lower case and dashes. */
  readonly name: string
  /** The pattern is tried only at these texts. Case-sensitive. */
  readonly anchors: readonly string[]
  /**
   * Tried at the start of the anchor. Without groups the whole match is the secret; with two, the first is the lead and
   * the second the secret. Repetitions are bounded and unambiguous, so that matching takes linear time. Looks back at
   * most `maxLookBehind` characters, and ahead one.
   */
  readonly pattern: RegExp
  /** The anchor is short or common: no letter, digit, dash or underscore may precede it. */
  readonly startsWord?: boolean
  /**
   * At most this many of these characters may directly precede the anchor. For patterns of thousands of characters,
   * which may contain more anchors: without this, matching would take quadratic time. The text after the characters may
   * be given, too.
   */
  readonly maxRunBefore?: { readonly characters: CharacterSet; readonly length: number; readonly isFollowedBy?: string }
  /**
   * The pattern begins with a name, and whether it matches depends only on the text after that name. Lets the scanner
   * reject an anchor without running the pattern, and run the pattern once for a name with many anchors.
   */
  readonly nameShape?: NameShape
  /** A check that the pattern cannot express. */
  readonly check?: (secret: string) => boolean
}

/** A name before a value, like `password` in `password = "value"`. */
export interface NameShape {
  /** A unique number, from 0. */
  readonly index: number
  /** Dots belong to the name, in addition to letters, digits, `_` and `-`. */
  readonly hasDots: boolean
  /** Longer names are not matched. */
  readonly maxLength: number
  /**
   * Another anchor in the same name may match where this one does not, for other reasons than the length of the name.
   */
  readonly dependsOnAnchor: boolean
  /** The text between the name and its value: an assignment, or one space as after an option of a command. */
  readonly joint: 'assignment' | 'space'
  /** An `=` follows the name, without a space. */
  readonly isDirect: boolean
  /** The value consists of letters, digits and `+/_.~%!@#$^*=-`. */
  readonly isToken: boolean
  /** The value is between quotes, and has at most 128 characters. */
  readonly isQuoted: boolean
  /**
   * The same family was tried before for a quoted value, and the check of this one rejects everything that the other
   * rejects. It also rejects what begins with another name and its sign, and URLs.
   */
  readonly isAfterQuoted: boolean
  /** Shorter values are not matched. A value has neither spaces, quotes nor backslashes. */
  readonly minValueLength: number
  /**
   * The maximum length of a value that may itself contain names and signs. It has no spaces, quotes, brackets,
   * `,;&\\$`.
   */
  readonly maxValueLength: number | undefined
  /** Characters that are not part of such a value, and must not follow it either: `pass=pass=pass(` has none. */
  readonly notAfterValue: CharacterSet | undefined
  /** `looksLikePassword` checks the value. What it would reject at once, for want of digits and capitals, is not matched. */
  readonly isPassword: boolean
}

/** How far before an anchor a pattern, or the search for the name of a variable, may look. */
export const maxLookBehind = 64

/** For each ASCII character, whether it belongs to the set. Used in hot loops, where a pattern would be slower. */
export type CharacterSet = Uint8Array

export function charactersOf(pattern: RegExp): CharacterSet {
  return Uint8Array.from({ length: 128 }, (_, code) => (pattern.test(String.fromCharCode(code)) ? 1 : 0))
}

/** False for characters outside of ASCII, and for the -1 that `codeAt` returns outside of the text. */
export function isIn(set: CharacterSet, code: number): boolean {
  return code >= 0 && code < 128 && set[code] === 1
}

/** The character at an index, or -1. The `NaN` of `charCodeAt` outside of the text makes the whole loop slow. */
export function codeAt(text: string, index: number): number {
  return index >= 0 && index < text.length ? text.charCodeAt(index) : -1
}
