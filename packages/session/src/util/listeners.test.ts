import fc from 'fast-check'
import { afterEach, expect, test, vi } from 'vitest'
import { Listeners } from './listeners.ts'

afterEach(() => void vi.unstubAllGlobals())

test('every listener is called in order, even if some throw', () => {
  fc.assert(
    fc.property(fc.array(fc.boolean(), { maxLength: 8 }), (throwing) => {
      const problems: unknown[] = []
      const called: number[] = []
      const listeners = new Listeners<string>((error) => problems.push(error))
      for (const [index, isThrowing] of throwing.entries()) {
        listeners.add(() => {
          called.push(index)
          if (isThrowing) throw new Error(`${index}`)
        })
      }
      listeners.notify('event')
      expect(called).toEqual([...throwing.keys()])
      expect(problems).toHaveLength(throwing.filter(Boolean).length)
    }),
  )
})

test('a listener added twice is called twice, and once after one registration is removed', () => {
  const heard: string[] = []
  const listeners = new Listeners<string>()
  const hear = (event: string): void => void heard.push(event)
  const stop = listeners.add(hear)
  listeners.add(hear)
  listeners.notify('both')
  stop()
  stop()
  listeners.notify('one')
  expect([heard, listeners.size]).toEqual([['both', 'both', 'one'], 1])
})

test('a listener removed by another one is not called', () => {
  const heard: string[] = []
  const listeners = new Listeners<string>()
  listeners.add(() => stop())
  const stop = listeners.add((event) => heard.push(event))
  listeners.notify('event')
  expect(heard).toEqual([])
})

test('clear removes all listeners', () => {
  const heard: string[] = []
  const listeners = new Listeners<string>()
  listeners.add((event) => heard.push(event))
  listeners.clear()
  listeners.notify('event')
  expect([heard, listeners.size]).toEqual([[], 0])
})

test('without an error handler an error is rethrown as uncaught, after the notification', () => {
  const later: (() => void)[] = []
  vi.stubGlobal('queueMicrotask', (work: () => void) => later.push(work))
  const listeners = new Listeners<void>()
  listeners.add(() => {
    throw new Error('broken')
  })
  listeners.notify()
  expect(later).toHaveLength(1)
  expect(later[0]).toThrow('broken')
})
