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
