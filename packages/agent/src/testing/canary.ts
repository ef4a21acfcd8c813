import { randomBytes } from 'node:crypto'

/** Part of every canary. Assembled from pieces, so that no file of ours contains it. */
export const canaryMark = ['cAnarY', 'Bq7Xw2'].join('')

/** A key to plant in tests that must not leak it: after all tests, no remaining file may contain one. */
export function canary(): string {
  return `ghp_${canaryMark}${randomBytes(12).toString('hex')}`
}
