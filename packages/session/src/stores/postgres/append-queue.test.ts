import { expect, test } from 'vitest'
import { sealLine } from '../../line/seal-line.ts'
import { AppendQueue, type SessionBatch } from './append-queue.ts'
import type { Database, Sent } from './database.ts'

test('batches of many sessions that arrive together are one statement', async () => {
  const { queue, statements } = queueOn()
  const results = await Promise.all(Array.from({ length: 40 }, (_, index) => queue.append(batch(`${index}`))))
  expect(statements.map(({ keys }) => keys.length)).toEqual([40])
  expect(results.every(({ type }) => type === 'appended')).toBe(true)
})

test('free connections share what arrives together, unless it is little', async () => {
  const { queue, statements } = queueOn({ connections: 4 })
  await Promise.all(Array.from({ length: 200 }, (_, index) => queue.append(batch(`${index}`))))
  await Promise.all(Array.from({ length: 40 }, (_, index) => queue.append(batch(`${index}`))))
  expect(statements.map(({ keys }) => keys.length)).toEqual([50, 50, 50, 50, 32, 8])
})

test('batches that arrive during a statement share the next one', async () => {
  const gate = Promise.withResolvers<void>()
  const { queue, statements } = queueOn({ before: () => gate.promise })
  const first = queue.append(batch('a'))
  await new Promise(setImmediate)
  const rest = [queue.append(batch('b')), queue.append(batch('c'))]
  gate.resolve()
  await Promise.all([first, ...rest])
  expect(statements.map(({ keys }) => keys)).toEqual([['a'], ['b', 'c']])
})

test('a session is in a statement once, and its batches stay in order', async () => {
  const { queue, statements } = queueOn()
  await Promise.all([batch('a', 1), batch('b', 1), batch('a', 2), batch('a', 3)].map((each) => queue.append(each)))
  expect(statements.map(({ keys, heads }) => [keys, heads])).toEqual([
    [
      ['a', 'b'],
      [1, 1],
    ],
    [['a'], [2]],
    [['a'], [3]],
  ])
})

test('a statement has a limited number of lines, but at least one batch', async () => {
  const { queue, statements } = queueOn()
  await Promise.all([batch('a', 1, 300), batch('b', 1, 200), batch('c', 1, 100)].map((each) => queue.append(each)))
  expect(statements.map(({ keys }) => keys)).toEqual([['a'], ['b'], ['c']])
})

test('names of tenants are quoted', async () => {
  const { queue, statements } = queueOn()
  const tenants = ['local', 'local', 'null', String.raw`a"b\c`, '']
  await Promise.all(tenants.map((tenant, index) => queue.append({ ...batch(`${index}`), tenant })))
  expect(statements.map((each) => each.tenants)).toEqual([String.raw`{"local","local","null","a\"b\\c",""}`])
})

test('a session that the statement did not find is fenced, and the others are stored', async () => {
  const { queue } = queueOn({ answer: () => ({ type: 'done', rows: [{ place: 2, first: 7 }] }) })
  const [fenced, appended] = await Promise.all([queue.append(batch('a')), queue.append(batch('b', 6, 2))])
  expect(fenced.type).toBe('fenced')
  expect(appended).toMatchObject({ type: 'appended', positions: [{ at: 6 * 2 ** 25 }, { at: 7 * 2 ** 25 }] })
})

test.each([
  ['unsent', 'failed'],
  ['rejected', 'failed'],
  ['unknown', 'unknown'],
] as const)('a statement that is %s is %s for all of its sessions', async (type, expected) => {
  const { queue } = queueOn({ answer: () => ({ type, cause: new Error('gone') }) })
  const results = await Promise.all([queue.append(batch('a')), queue.append(batch('b'))])
  expect(results.map((each) => each.type)).toEqual([expected, expected])
})

type Answer = Sent<{ place: number; first: number }>

/** A queue on a database that stores nothing. */
function queueOn({
  before,
  answer,
  connections = 1,
}: { before?: () => Promise<void>; answer?: () => Answer; connections?: number } = {}) {
  const statements: { tenants: string; keys: string[]; heads: number[] }[] = []
  const append = async (_: string, [tenants, keyArray, , heads]: string[]): Promise<Answer> => {
    const keys = elementsOf(keyArray)
    statements.push({ tenants: tenants ?? '', keys, heads: elementsOf(heads).map(Number) })
    await before?.()
    return answer?.() ?? { type: 'done', rows: keys.map((_key, index) => ({ place: index + 1, first: 2 })) }
  }
  return { queue: new AppendQueue({ append, appendConnections: connections } as unknown as Database), statements }
}

function elementsOf(array = '{}'): string[] {
  return array.slice(1, -1).split(',')
}

function batch(key: string, head = 1, count = 1): SessionBatch {
  const lines = Array.from({ length: count }, (_, index) =>
    sealLine({ type: 'custom', id: `e${index}` }, head + 1 + index),
  )
  return { tenant: 'local', key, term: 1, head, lines }
}
