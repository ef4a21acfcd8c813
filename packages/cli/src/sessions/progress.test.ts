import { afterEach, expect, test, vi } from 'vitest'
import { testIo } from '../testing/test-io.ts'
import { Progress } from './progress.ts'

afterEach(() => vi.useRealTimers())

test('after a second a terminal shows the activity, and the line is erased at the end', () => {
  vi.useFakeTimers()
  const [terminal, file] = [testIo({ isTTY: true }), testIo()]
  {
    using onTerminal = new Progress(terminal.stderr, 'Reading')
    using _inFile = new Progress(file.stderr, 'Reading')
    vi.advanceTimersByTime(900)
    expect(terminal.err()).toBe('')
    vi.advanceTimersByTime(200)
    onTerminal.words = 'Still reading'
    vi.advanceTimersByTime(250)
    expect(terminal.err()).toContain('Still reading (1 s)')
  }
  expect(terminal.err().endsWith('\r\u001b[K')).toBe(true)
  expect(file.err()).toBe('')
})
