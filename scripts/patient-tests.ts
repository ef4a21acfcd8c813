import { vi } from 'vitest'

// A busy machine is slow, not wrong: a test waits for a condition half as long as it may take in all.
const { waitFor } = vi
const timeout = 30_000
// The test files of one worker share this object.
if (waitFor.name !== 'waitPatiently') {
  vi.waitFor = function waitPatiently(callback, options) {
    return waitFor(callback, typeof options === 'number' ? options : { timeout, ...options })
  }
}
