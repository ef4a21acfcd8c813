import type { SessionInfo } from '@tapetree/session'
import { harmlessLine } from './harmless.ts'

/** Its name, or how it began; empty where nobody said anything yet. Marks the session of a subagent. Harmless, and on one line. */
export function sessionTitle({ name, firstText = '', subagent }: SessionInfo): string {
  const title = harmlessLine(name || firstText)
  return subagent ? `subagent: ${title}` : title
}

/** Nothing was said in it, nothing waits in it, and nobody named it. */
export function isEmptySession({ messageCount, queueLength, name, damaged }: SessionInfo): boolean {
  return messageCount === 0 && queueLength === 0 && name === '' && !damaged
}
