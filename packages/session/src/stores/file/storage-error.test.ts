import { expect, test } from 'vitest'
import { storageError } from './storage-error.ts'

test('a storage failure says what failed, and why', () => {
  const cause = new Error('ENOSPC: no space left on device')
  expect(storageError('A blob could not be stored', cause)).toMatchObject({
    code: 'storage-failed',
    message: 'A blob could not be stored: ENOSPC: no space left on device',
    cause,
  })
  expect(storageError('It failed', 'for no reason').message).toBe('It failed: for no reason')
})
