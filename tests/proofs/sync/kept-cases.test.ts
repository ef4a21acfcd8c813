import { describe, expect, test } from 'vitest'
import { temporaryFolder } from '../../support/temporary-folder.ts'
import { playHistory } from './history.ts'

/** Seeds of histories that once found something. */
const kept: [seed: number, found: string][] = [
  [4, 'a message was delivered before one that had been moved up'],
  [81, 'a message was delivered that had just been held'],
  [110, 'a tool that was stopped went on talking after its result'],
  [14, 'a screen that began in the middle went back to before it'],
]

describe('a history that found something once', () => {
  test.each(kept)('holds: seed %i, in which %s', async (seed) => {
    const { violations } = await playHistory({ seed, folder: temporaryFolder() })
    expect(violations).toEqual([])
  })
})
