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
  /** What the pattern cannot say. */
  readonly check?: (secret: string) => boolean
}

/** How far before an anchor a pattern, or the search for a variable's name, may look. */
export const maxLookBehind = 64
