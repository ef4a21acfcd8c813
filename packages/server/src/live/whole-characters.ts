/** At most so many code units, and no half of a character at the end. */
export function cutWhole(text: string, length: number): string {
  const cut = text.length > length ? text.slice(0, length) : text
  return isHighSurrogate(cut.charCodeAt(cut.length - 1)) ? cut.slice(0, -1) : cut
}

/** The index, or the one behind it where that would part a character. */
export function wholeFrom(text: string, index: number): number {
  return isHighSurrogate(text.charCodeAt(index - 1)) ? index + 1 : index
}

function isHighSurrogate(code: number): boolean {
  return code >= 0xd800 && code < 0xdc00
}
