import { limits } from '@tapetree/client'

/** The share of a frame that a list may take: every screen receives it after each change. */
const maxListBytes = limits.maxFrameBytes / 4

/** As many items as fit into a frame, in order: all unchanged, or all shortened, or the first of the shortened ones. */
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

/** At most this many code units, without splitting a surrogate pair at the end. */
export function cutWhole(text: string, length: number): string {
  const cut = text.length > length ? text.slice(0, length) : text
  return isHighSurrogate(cut.charCodeAt(cut.length - 1)) ? cut.slice(0, -1) : cut
}

/** The index, or the next one if it would split a surrogate pair. */
export function wholeFrom(text: string, index: number): number {
  return isHighSurrogate(text.charCodeAt(index - 1)) ? index + 1 : index
}

function isHighSurrogate(code: number): boolean {
  return code >= 0xd800 && code < 0xdc00
}
