import type { TuiMouseEvent } from '@earendil-works/pi-tui'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { MouseSelection } from './mouse-selection.ts'

beforeEach(() => vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

interface Mouse {
  selection: MouseSelection
  /** What clicks did, and what was copied. */
  done: string[]
  press: () => void
  click: (clickCount: number) => void
}

function startMouse(): Mouse {
  const done: string[] = []
  const selection = new MouseSelection({
    scrolling: () => undefined,
    copy: (text) => done.push(`copy ${text}`),
    clickAt:
      ({ area, row }) =>
      () =>
        done.push(`click ${area} ${row}`),
    onChange: () => undefined,
  })
  selection.mark({ pane: { top: 0, rows: 0 }, main: ['', ''], side: { column: 10, rows: ['', 'count files'] } })
  const send = (type: TuiMouseEvent['type'], clickCount = 1): void => {
    const place = { x: 10, y: 1, screenX: 10, screenY: 1, width: 40, height: 2 }
    selection.handle({ type, button: 'left', ...place, shift: false, alt: false, ctrl: false, clickCount })
  }
  const press = (): void => send('press')
  const click = (clickCount: number): void => {
    press()
    send('release')
    send('click', clickCount)
  }
  return { selection, done, press, click }
}

test('a click counts once it cannot become a double click', () => {
  const { done, click } = startMouse()
  click(1)
  vi.advanceTimersByTime(499)
  expect(done).toEqual([])
  vi.advanceTimersByTime(60_000)
  expect(done).toEqual(['click side 1'])
})

test('a double click only selects a word', () => {
  const { done, click } = startMouse()
  click(1)
  vi.advanceTimersByTime(100)
  click(2)
  vi.advanceTimersByTime(60_000)
  expect(done).toEqual(['copy count'])
})

test('a click does not count if the button is pressed again or the selection ends', () => {
  const { selection, done, press, click } = startMouse()
  click(1)
  vi.advanceTimersByTime(400)
  press()
  vi.advanceTimersByTime(60_000)
  click(1)
  selection.clear()
  vi.advanceTimersByTime(60_000)
  expect(done).toEqual([])
})
