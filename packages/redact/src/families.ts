import { contextFamilies } from './context-families.ts'
import type { SecretFamily } from './family.ts'
import { tokenFamilies } from './token-families.ts'

// Assembled from pieces, so that no secret scanner finds a key here.
const header = String.raw`-{5}BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-{5}`
const footer = String.raw`-{5}END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-{5}`
const anchors = ['-----BEGIN ']
/** The text between lines: plain, escaped, quoted, commented or in a diff. */
const between = String.raw`(?:[\s"',>|#*]|\\[nrt"\\]){1,64}`
const bodyCharacter = String.raw`(?:[A-Za-z0-9+/=\s\\"',:.>|#*()_@]|-(?!----))`

/** Private keys as text. The pattern of a complete one stops at the next five dashes, so two keys never become one. */
const privateKeyFamilies: readonly SecretFamily[] = [
  {
    name: 'private-key',
    anchors,
    pattern: new RegExp(`${header}(?=${bodyCharacter}{0,300}?[A-Za-z0-9+/]{16})${bodyCharacter}{0,32768}${footer}`),
  },
  {
    // The beginning of one: truncated, or not yet complete.
    name: 'private-key',
    anchors,
    pattern: new RegExp(
      `${header}(?:${between}[A-Z][A-Za-z-]{3,20}: [^\\n\\\\"]{1,80}){0,4}(?:${between}[A-Za-z0-9+/=]{16,128}){1,600}`,
    ),
  },
]

/** All known kinds of secrets. If several match, the first wins, so the most specific ones come first. */
export const families: readonly SecretFamily[] = [...tokenFamilies, ...privateKeyFamilies, ...contextFamilies]
