import { describe, expect, test } from 'vitest'
import { localProblem } from './problem-error.ts'
import { memoryStorage, Unacknowledged, type CommandStorage, type SentCommand } from './unacknowledged.ts'

const command = (id: string): SentCommand => ({ id, op: 'retry', args: {} })

describe('unacknowledged commands', () => {
  test('are sent once on each connection, in order', async () => {
    const waiting = new Unacknowledged('s', memoryStorage())
    const answers = [waiting.add(command('a'), () => undefined), waiting.add(command('b'), () => undefined)]
    await waiting.stored()
    expect([...waiting.unsent('first', { cautious: false })].map(({ id }) => id)).toEqual(['a', 'b'])
    expect([...waiting.unsent('first', { cautious: false })]).toEqual([])
    expect([...waiting.unsent('second', { cautious: false })].map(({ id }) => id)).toEqual(['a', 'b'])
    waiting.settle({ id: 'a', ok: true, result: 1 })
    waiting.settle({ id: 'b', ok: true })
    expect(await Promise.all(answers)).toEqual([1, undefined])
    expect(waiting.size).toBe(0)
  })

  test('are not sent before they are stored, and never out of order', async () => {
    const gate = Promise.withResolvers<void>()
    const storage: CommandStorage = {
      ...memoryStorage(),
      add: async (_, { id }) => (id === 'a' ? gate.promise : undefined),
    }
    const waiting = new Unacknowledged('s', storage)
    const stored: string[] = []
    void waiting.add(command('a'), () => stored.push('a'))
    void waiting.add(command('b'), () => stored.push('b'))
    expect([...waiting.unsent('c', { cautious: false })]).toEqual([])
    gate.resolve()
    await waiting.stored()
    await Promise.resolve()
    expect(stored).toEqual(['a', 'b'])
    expect([...waiting.unsent('c', { cautious: false })].map(({ id }) => id)).toEqual(['a', 'b'])
  })

  test('are sent even if nothing can be stored', async () => {
    const refuse = async (): Promise<never> => Promise.reject(new Error('no room'))
    const waiting = new Unacknowledged('s', { load: refuse, add: refuse, remove: refuse })
    const answer = waiting.add(command('a'), () => waiting.settle({ id: 'a', ok: true, result: 'done' }))
    expect(await answer).toBe('done')
  })

  test('stay in the storage when they are abandoned, unless the session is gone', async () => {
    const storage = memoryStorage()
    for (const forget of [false, true]) {
      const waiting = new Unacknowledged('s', storage)
      await waiting.restore()
      const answer = waiting.add(command(`a-${forget}`), () => undefined).catch((error: unknown) => error)
      await waiting.stored()
      waiting.abandon(localProblem('closed', 'over'), { forget })
      expect(await answer).toMatchObject({ type: 'closed' })
      await waiting.stored()
      expect((await storage.load('s')).map(({ id }) => id)).toEqual(forget ? [] : ['a-false'])
    }
  })
})
