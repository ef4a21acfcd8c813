import { memoryStore, text, type SessionStore } from '@tapetree/session'
import fc from 'fast-check'
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

test('a session is found by id, id prefix, name, or as the last of a folder', async () => {
  const store = await storeWith(
    { id: 'aaaa1111', name: 'bbbb', cwd: '/one', says: 'first' },
    { id: 'bbbb2222', cwd: '/two', says: 'second' },
  )
  const idOf = async (reference: string, cwd?: string): Promise<string> =>
    (await findSession(store, reference, cwd === undefined ? {} : { cwd })).id
  expect(await idOf('bbbb2222')).toBe('bbbb2222')
  expect(await idOf('aaaa')).toBe('aaaa1111')
  // A name takes precedence over an id prefix.
  expect(await idOf('bbbb')).toBe('aaaa1111')
  expect(await idOf('last')).toBe('bbbb2222')
  expect(await idOf('last', '/one')).toBe('aaaa1111')
})

test('a missing session is an error with suggestions and its location', async () => {
  const store = await storeWith({ id: 'aaaa1111', name: 'release notes' }, { id: 'cccc3333', name: 'old' })
  await store.archive('cccc3333')
  await expect(findSession(store, 'relese notes')).rejects.toMatchObject({
    code: 5,
    why: 'Did you mean aaaa1111 (release notes)?',
    next: ['tapetree sessions list'],
  })
  await expect(findSession(store, 'old')).rejects.toMatchObject({ next: ['tapetree sessions restore cccc3333'] })
  expect((await findSession(store, 'old', { place: 'archive' })).id).toBe('cccc3333')
  // Three letters are too short for an id prefix.
  await expect(findSession(store, 'aaa')).rejects.toMatchObject({ code: 5 })
  await expect(findSession(memoryStore(), 'last', { cwd: '/empty' })).rejects.toMatchObject({ code: 5 })
})

test('an ambiguous reference is an error that lists the matches', async () => {
  const store = await storeWith({ id: 'aaaa1111', name: 'same' }, { id: 'aaaa2222', name: 'same' })
  for (const [reference, hint] of [
    ['aaaa', 'use more of the id'],
    ['same', 'Use an id'],
  ] as const) {
    await expect(findSession(store, reference)).rejects.toMatchObject({
      code: 2,
      type: 'session-ambiguous',
      why: expect.stringMatching(new RegExp(`aaaa2222 \\(same\\), aaaa1111 \\(same\\)\\..*${hint}`)) as string,
    })
  }
})

interface MadeSession {
  cwd: '/here' | '/elsewhere'
  kind: 'person' | 'fork' | 'subagent'
  /** Events of a session, each later than everything before. */
  life: 'said' | 'queued' | 'named' | 'empty'
  place: 'active' | 'archive' | 'trash'
}

test('`last` is the newest conversation of a user in this folder, whatever other sessions there are', async () => {
  const anySession: fc.Arbitrary<MadeSession> = fc.record({
    cwd: fc.constantFrom('/here', '/elsewhere'),
    kind: fc.constantFrom('person', 'fork', 'subagent'),
    life: fc.constantFrom('said', 'queued', 'named', 'empty'),
    place: fc.constantFrom('active', 'active', 'active', 'archive', 'trash'),
  })
  await fc.assert(
    fc.asyncProperty(fc.array(anySession, { maxLength: 40 }), async (all) => {
      let seconds = 0
      const store = memoryStore({ now: () => new Date(1_000_000 + ++seconds * 1000) })
      for (const [index, made] of all.entries()) await makeSession(store, `session-${index}`, made)
      // A message makes a session newer than one created after it; a name does not.
      const isMeant = ({ cwd, kind, life, place }: MadeSession): boolean =>
        cwd === '/here' && kind !== 'subagent' && life !== 'empty' && place === 'active'
      const meant = all.findLastIndex(isMeant)
      const found = await findSession(store, 'last', { cwd: '/here' }).then(
        ({ id }) => id,
        (error: unknown) => (error as { type?: string }).type,
      )
      expect(found).toBe(meant === -1 ? 'session-not-found' : `session-${meant}`)
    }),
    { numRuns: 200 },
  )
})

async function makeSession(store: SessionStore, id: string, { cwd, kind, life, place }: MadeSession): Promise<void> {
  const parent =
    kind === 'person' ? {} : { parentSession: 'session-0', ...(kind === 'subagent' && { subagent: true as const }) }
  const session = await store.create({ id, cwd, ...parent })
  if (life === 'said') await session.appendMessage('user', [text('hi')])
  if (life === 'queued') await session.submit('later', { delivery: 'follow-up' })
  if (life === 'named') await session.appendSessionInfo('a name')
  await session.close()
  if (place === 'archive') await store.archive(id)
  if (place === 'trash') await store.delete(id)
}
