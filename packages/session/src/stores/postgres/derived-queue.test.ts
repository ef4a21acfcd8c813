import { expect, test } from 'vitest'
import type { SessionInfo } from '../../state/session-info.ts'
import type { Database } from './database.ts'
import { DerivedQueue, type SessionDerived } from './derived-queue.ts'

test('sessions that save together are one statement, and those that wait for it are the next', async () => {
  const gate = Promise.withResolvers<void>()
  const { queue, statements } = queueOn({ before: () => gate.promise })
  const first = ['a', 'b'].map((key) => queue.save(derived(key)))
  await new Promise(setImmediate)
  const rest = ['c', 'd', 'e'].map((key) => queue.save(derived(key)))
  gate.resolve()
  await Promise.all([...first, ...rest])
  expect(statements.map(({ keys }) => keys)).toEqual([
    ['a', 'b'],
    ['c', 'd', 'e'],
  ])
})

test('a session is in a statement once, and its saves stay in order', async () => {
  const { queue, statements } = queueOn()
  await Promise.all(['a', 'b', 'a', 'c'].map((key, index) => queue.save(derived(key, [`${index}`]))))
  expect(statements.map(({ keys, body }) => [keys, body])).toEqual([
    [['a', 'b'], '0\u{1e}1'],
    [['a', 'c'], '2\u{1e}3'],
  ])
})

test('a statement has a limited length and number of sessions', async () => {
  const { queue, statements } = queueOn()
  const large = 'x'.repeat(3 * 1024 * 1024)
  await Promise.all(['a', 'b', 'c'].map((key) => queue.save(derived(key, [large]))))
  await Promise.all(Array.from({ length: 300 }, (_, index) => queue.save(derived(`${index}`))))
  expect(statements.map(({ keys }) => keys.length)).toEqual([2, 1, 256, 44])
})

test('pieces and rows are sent as columns', async () => {
  const { queue, statements } = queueOn()
  const row = { lines: 7, info: { name: 'N', modified: 'm', status: 'idle', cwd: '/C' } as SessionInfo }
  await Promise.all([
    queue.save({ ...derived('a', ['0', '1']), row }),
    queue.save({ tenant: 't', key: 'b', term: 1, row }),
  ])
  expect(statements).toMatchObject([
    {
      keys: ['a'],
      owners: [1, 1],
      pieces: [0, 1],
      body: '0\u{1e}1',
      rowKeys: ['a', 'b'],
      haystacks: [haystack, haystack],
    },
  ])
})

const haystack = 'n\u{1}\u{1}/c'

test('a session whose term has changed is fenced, and the others are saved', async () => {
  const { queue } = queueOn({ stored: [2] })
  const results = await Promise.allSettled([queue.save(derived('a')), queue.save(derived('b'))])
  expect(results).toMatchObject([{ status: 'rejected', reason: { code: 'fenced' } }, { status: 'fulfilled' }])
})

test('if the database rejects a statement, all of its sessions learn of it, and the next ones are saved', async () => {
  let calls = 0
  const { queue } = queueOn({
    before: async () => {
      if (++calls === 1) throw new Error('full')
    },
  })
  const results = await Promise.allSettled([queue.save(derived('a')), queue.save(derived('b'))])
  expect(results.map(({ status }) => status)).toEqual(['rejected', 'rejected'])
  await queue.save(derived('c'))
})

test('a piece with the separator is rejected alone', async () => {
  const { queue } = queueOn()
  const results = await Promise.allSettled([queue.save(derived('a', ['x\u{1e}'])), queue.save(derived('b'))])
  expect(results.map(({ status }) => status)).toEqual(['rejected', 'fulfilled'])
})

/** A queue on a database that stores nothing. */
function queueOn({ before, stored }: { before?: () => Promise<void>; stored?: number[] } = {}) {
  const statements: { keys: unknown[]; [column: string]: unknown }[] = []
  const call = async (_: string, values: unknown[]): Promise<unknown[]> => {
    const [, keys = [], , , owners, pieces, body, , rowKeys, , , , , haystacks] = values as unknown[][]
    statements.push({ keys, owners, pieces, body, rowKeys, haystacks })
    await before?.()
    return [{ stored: stored ?? keys.map((_key, index) => index + 1) }]
  }
  return { queue: new DerivedQueue({ call } as unknown as Database), statements }
}

function derived(key: string, contents: readonly string[] = ['x']): SessionDerived {
  return { tenant: 't', key, term: 1, checkpoint: { count: contents.length, changed: new Map(contents.entries()) } }
}
