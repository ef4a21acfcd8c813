import { limits } from '@tapetree/client'

/** What a list may take of a frame: every screen is told it anew with each change. */
const maxListBytes = limits.maxFrameBytes / 4

/** As many items as fit into a frame, in their order: all as they are, or else each of them shortened, or the first of those. */
export function fitFrame<T>(items: readonly T[], { shorten = (item) => item }: { shorten?: (item: T) => T } = {}): T[] {
  if (countFitting(items) === items.length) return [...items]
  const short = items.map(shorten)
  return short.slice(0, countFitting(short))
}

function countFitting(items: readonly unknown[]): number {
  let bytes = 0
  const tooMany = items.findIndex((item) => (bytes += Buffer.byteLength(JSON.stringify(item)) + 1) > maxListBytes)
  return tooMany === -1 ? items.length : tooMany
}

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
