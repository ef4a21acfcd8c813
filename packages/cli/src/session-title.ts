import type { SessionInfo } from '@tapetree/session'
import { harmlessLine } from './harmless.ts'

/** Its name, or how it began; empty where nobody said anything yet. Harmless, and on one line. */
export function sessionTitle({ name, firstText = '' }: Pick<SessionInfo, 'name' | 'firstText'>): string {
  return harmlessLine(name || firstText)
}
