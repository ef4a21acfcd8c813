import { contextFamilies } from './context-families.ts'
import type { SecretFamily } from './family.ts'
import { privateKeyFamilies } from './private-key-families.ts'
import { tokenFamilies } from './token-families.ts'

/** All kinds of secrets that are known. Where several fit, the first wins: what says most about a secret stands first. */
export const families: readonly SecretFamily[] = [...tokenFamilies, ...privateKeyFamilies, ...contextFamilies]
