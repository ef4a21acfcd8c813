import { createHash } from 'node:crypto'
import { ProblemError } from '../util/problem-error.ts'

/** Names a state: equal for equal values, and for nothing else. */
export function etagOf(state: unknown): string {
  const hash = createHash('sha256').update(JSON.stringify(state)).digest('base64url')
  return `"${hash.slice(0, 22)}"`
}

/** Whether a list of tags, as in `If-Match`, names this one. */
export function namesTag(header: string, etag: string): boolean {
  return header.split(',').some((each) => each.trim() === '*' || each.trim() === etag)
}

export function changedMeanwhile(etag: string): ProblemError {
  return new ProblemError(412, 'changed-meanwhile', 'It is not as it was when it was read.', { etag })
}
