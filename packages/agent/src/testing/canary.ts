import { randomBytes } from 'node:crypto'

/** Every canary has it inside. In pieces here, so that no file of ours holds it. */
export const canaryMark = ['cAnarY', 'Bq7Xw2'].join('')

/** A key to plant where it must not come out again: when all tests are over, no file that they left may hold one. */
export function canary(): string {
  return `ghp_${canaryMark}${randomBytes(12).toString('hex')}`
}
