import { contextFamilies } from './context-families.ts'
import type { SecretFamily } from './family.ts'
import { tokenFamilies } from './token-families.ts'

// Written in pieces, so that no scanner takes this file for a key.
const header = String.raw`-{5}BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-{5}`
const footer = String.raw`-{5}END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-{5}`
const anchors = ['-----BEGIN ']
/** What stands between lines: as they are, escaped, quoted, commented or in a diff. */
const between = String.raw`(?:[\s"',>|#*]|\\[nrt"\\]){1,64}`
const bodyCharacter = String.raw`(?:[A-Za-z0-9+/=\s\\"',:.>|#*()_@]|-(?!----))`

/** Private keys as text. The pattern of a whole one stops at the next five dashes, so two keys never become one. */
const privateKeyFamilies: readonly SecretFamily[] = [
  {
    name: 'private-key',
    anchors,
    pattern: new RegExp(`${header}(?=${bodyCharacter}{0,300}?[A-Za-z0-9+/]{16})${bodyCharacter}{0,32768}${footer}`),
  },
  {
    // The beginning of one: cut off, or not yet ended.
    name: 'private-key',
    anchors,
    pattern: new RegExp(
      `${header}(?:${between}[A-Z][A-Za-z-]{3,20}: [^\\n\\\\"]{1,80}){0,4}(?:${between}[A-Za-z0-9+/=]{16,128}){1,600}`,
    ),
  },
]

/** All kinds of secrets that are known. Where several fit, the first wins: what says most about a secret stands first. */
export const families: readonly SecretFamily[] = [...tokenFamilies, ...privateKeyFamilies, ...contextFamilies]
