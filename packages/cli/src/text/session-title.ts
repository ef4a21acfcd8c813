import type { SessionInfo } from '@tapetree/session'
import { harmlessLine } from './harmless.ts'

/** Its name or first message; empty if there are no messages. Marks the session of a subagent. Harmless, and on one line. */
export function sessionTitle({ name, firstText = '', subagent }: SessionInfo): string {
  const title = harmlessLine(name || firstText)
  return subagent ? `subagent: ${title}` : title
}

/** A session without messages, queued messages or name. */
export function isEmptySession({ messageCount, queueLength, name, damaged }: SessionInfo): boolean {
  return messageCount === 0 && queueLength === 0 && name === '' && !damaged
}

const minLength = 8

/** The shortest distinct prefix of each id. Ids begin with the time, so eight characters may be shared. */
export function shortIds(ids: readonly string[]): Map<string, string> {
  const sorted = [...new Set(ids)].sort()
  return new Map(
    sorted.map((id, index) => {
      const shared = Math.max(sharedLength(id, sorted[index - 1]), sharedLength(id, sorted[index + 1]))
      return [id, id.slice(0, Math.max(minLength, shared + 1))]
    }),
  )
}

function sharedLength(left: string, right: string | undefined): number {
  if (right === undefined || left === right) return 0
  let length = 0
  while (length < left.length && left[length] === right[length]) length++
  return length
}
