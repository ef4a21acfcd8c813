import { memoryStore, text, type SessionStore } from '@tapetree/session'
import { expect, test } from 'vitest'
import { findSession } from './find-session.ts'

async function storeWith(...made: { id: string; name?: string; cwd?: string; says?: string }[]): Promise<SessionStore> {
  const store = memoryStore()
  for (const { says, ...options } of made) {
    await using session = await store.create(options)
    if (says !== undefined) await session.appendMessage('user', [text(says)])
  }
  return store
}

test('a session is found by its id, the beginning of it, its name, or as the last of a folder', async () => {
  const store = await storeWith(
    { id: 'aaaa1111', name: 'bbbb', cwd: '/one', says: 'first' },
    { id: 'bbbb2222', cwd: '/two', says: 'second' },
  )
  const idOf = async (reference: string, cwd?: string): Promise<string> =>
    (await findSession(store, reference, cwd === undefined ? {} : { cwd })).id
  expect(await idOf('bbbb2222')).toBe('bbbb2222')
  expect(await idOf('aaaa')).toBe('aaaa1111')
  // A name before the beginning of an id.
  expect(await idOf('bbbb')).toBe('aaaa1111')
  expect(await idOf('last')).toBe('bbbb2222')
  expect(await idOf('last', '/one')).toBe('aaaa1111')
})

test('what is not there is told with what was meant and where it is', async () => {
  const store = await storeWith({ id: 'aaaa1111', name: 'release notes' }, { id: 'cccc3333', name: 'old' })
  await store.archive('cccc3333')
  await expect(findSession(store, 'relese notes')).rejects.toMatchObject({
    code: 5,
    why: 'Did you mean aaaa1111 (release notes)?',
    next: ['tapetree sessions list'],
  })
  await expect(findSession(store, 'old')).rejects.toMatchObject({ next: ['tapetree sessions restore cccc3333'] })
  expect((await findSession(store, 'old', { place: 'archive' })).id).toBe('cccc3333')
  // Three letters are too few for the beginning of an id.
  await expect(findSession(store, 'aaa')).rejects.toMatchObject({ code: 5 })
  await expect(findSession(memoryStore(), 'last', { cwd: '/empty' })).rejects.toMatchObject({ code: 5 })
})

test('what may be several is a mistake that lists them', async () => {
  const store = await storeWith({ id: 'aaaa1111', name: 'same' }, { id: 'aaaa2222', name: 'same' })
  for (const [reference, hint] of [
    ['aaaa', 'it takes more of the id'],
    ['same', 'Name one by its id'],
  ] as const) {
    await expect(findSession(store, reference)).rejects.toMatchObject({
      code: 2,
      type: 'session-ambiguous',
      why: expect.stringMatching(new RegExp(`aaaa2222 \\(same\\), aaaa1111 \\(same\\)\\..*${hint}`)) as string,
    })
  }
})
