import type { LinePosition } from '../../log/log-store.ts'

/** The position of a line that is found by its number: each line has a slot that is longer than any line. */
export function positionOf(number: number, size: number): LinePosition {
  return { at: (number - 1) * slot, size, next: number * slot }
}

/** The number of the first line at or after a position. */
export function numberAt(at: number): number {
  return Math.ceil(at / slot) + 1
}

/** Twice the longest line that a reader accepts. More than a quarter of a billion lines fit below the safe integers. */
const slot = 2 ** 25
