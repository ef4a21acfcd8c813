/** For each character of ASCII, whether it belongs to the set. Asked in hot loops, where a pattern would be slower. */
export type CharacterSet = Uint8Array

export function charactersOf(pattern: RegExp): CharacterSet {
  return Uint8Array.from({ length: 128 }, (_, code) => (pattern.test(String.fromCharCode(code)) ? 1 : 0))
}

/** False for characters outside of ASCII, and for the `NaN` of a place outside of the text. */
export function isIn(set: CharacterSet, code: number): boolean {
  return set[code] === 1
}
