import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { SessionError } from '@tapetree/session'
import { nodeFilePort, openFileStore } from '@tapetree/session/stores/file'
import { describe, expect } from 'vitest'
import { filePlace, inEveryStore } from '../support/places.ts'
import { answer, ask, saidIn } from '../support/said.ts'
import { storedIn, textsOf } from '../support/stored.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { verifies } from '../support/verifies.ts'

inEveryStore((place) => {
  verifies(
    ['session-manager/6 manager-new', 'session-manager/6.1 new', 'session-manager/6 session-id'],
    'a new session has an id, a header, no entries and no leaf',
    async () => {
      const store = place().store()
      const [session, other] = [await store.create(), await store.create()]
      expect(session.id).not.toBe(other.id)
      expect({ leafId: session.leafId, said: await saidIn(session), tree: await session.getTree() }).toEqual({
        leafId: null,
        said: [],
        tree: [],
      })
      expect((await storedIn(session)).map(({ type, id }) => ({ type, id }))).toEqual([
        { type: 'session', id: session.id },
      ])
    },
  )

  verifies(
    ['session-manager/6.1 new-parent-session-id', 'session-manager/6.1 new-signature'],
    'a new session may name the session it was branched from, and need not',
    async () => {
      const store = place().store()
      const child = await store.create({ parentSession: 'sess-1' })
      const orphan = await store.create()
      expect([child.header?.parentSession, orphan.header?.parentSession]).toEqual(['sess-1', undefined])
      await expect(store.create({ id: child.id })).rejects.toMatchObject({ code: 'session-exists' })
    },
  )

  verifies(
    [
      'session-manager/6 session-manages-state',
      'session-manager/6 session-entries',
      'session-manager/6 session-leaf-id',
    ],
    'an open session knows its leaf and finds every entry by its id',
    async () => {
      const session = await place().store().create()
      const first = await ask(session, 'hello')
      expect(session.leafId).toBe(first)
      const second = await answer(session, 'hi')
      expect(session.leafId).toBe(second)
      expect((await Promise.all([first, second].map((id) => session.getEntry(id)))).map(({ id }) => id)).toEqual([
        first,
        second,
      ])
      await expect(session.getEntry('nobody')).rejects.toMatchObject({ code: 'entry-not-found' })
    },
  )

  verifies(
    ['session-manager/6.1 continue-recent', 'session-manager/6.1 continue-recent-signature'],
    'the session with the newest message is the one to continue, also where another one was made later',
    async () => {
      const here = place()
      let now = new Date('2026-01-01T00:00:00Z')
      const store = here.store({ now: () => now })
      const first = await store.create()
      now = new Date('2026-01-02T00:00:00Z')
      const second = await store.create()
      await ask(second, 'second')
      now = new Date('2026-01-03T00:00:00Z')
      await ask(first, 'first')
      const recent = await store.continueRecent()
      expect({ id: recent.id, said: await saidIn(recent) }).toEqual({ id: first.id, said: ['user: first'] })
    },
  )

  verifies(
    ['session-manager/6.1 fork-from', 'session-manager/6.1 fork-from-signature'],
    'a fork has all branches, labels and the leaf of its source under the same ids, and nothing about running',
    async () => {
      const store = place().store()
      const source = await store.create({ name: 'Original', cwd: '/project' })
      const root = await ask(source, 'hello')
      const left = await answer(source, 'one way')
      await source.branch(root)
      await answer(source, 'another way')
      await source.setLabel(left, 'left')
      await source.submit('waiting')
      await source.branch(left)
      const fork = await store.forkFrom(source.id)
      const shape = async (session: typeof fork): Promise<unknown> => ({
        tree: JSON.stringify(await session.getTree(), (name, value: unknown) => (name === 'seq' ? 0 : value)),
        labels: session.getLabels(),
        leafId: session.leafId,
        name: session.name,
        said: await saidIn(session),
      })
      expect(await shape(fork)).toEqual(await shape(source))
      expect(fork.header).toMatchObject({ parentSession: source.id, parentEntry: left, cwd: '/project' })
      expect({ messages: fork.inbox.messages, id: fork.id === source.id }).toEqual({ messages: [], id: false })
    },
  )

  verifies(
    ['session-manager/6.1 list', 'session-manager/6.1 list-signature', 'session-manager/6.1 session-info-id'],
    'the list has every session once, the newest first',
    async () => {
      let now = new Date('2026-01-01T00:00:00Z')
      const store = place().store({ now: () => now })
      const ids: string[] = []
      for (const day of ['02', '04', '03']) {
        now = new Date(`2026-01-${day}T00:00:00Z`)
        const session = await store.create({ id: `sess-${day}` })
        await ask(session, day)
        ids.push(session.id)
      }
      const { sessions } = await store.list()
      expect(sessions.map(({ id }) => id)).toEqual(['sess-04', 'sess-03', 'sess-02'])
      expect(sessions.map(({ id }) => id).toSorted()).toEqual(ids.toSorted())
    },
  )

  verifies(
    [
      'session-manager/6.1 session-info-created',
      'session-manager/6.1 session-info-modified',
      'session-manager/6.1 session-info-message-count',
    ],
    'a row of the list says when the session began, when the last message came, and how many there are',
    async () => {
      let now = new Date('2026-01-01T00:00:00.000Z')
      const store = place().store({ now: () => now })
      const session = await store.create()
      now = new Date('2026-01-02T00:00:00.000Z')
      await ask(session, 'hello')
      await answer(session, 'hi')
      now = new Date('2026-01-03T00:00:00.000Z')
      await session.setLabel(session.leafId ?? '', 'later')
      expect((await store.list()).sessions).toMatchObject([
        { created: '2026-01-01T00:00:00.000Z', modified: '2026-01-02T00:00:00.000Z', messageCount: 2 },
      ])
    },
  )

  verifies(['session-manager/6.1 session-info-name'], 'a row of the list has the latest name', async () => {
    const store = place().store()
    const session = await store.create({ name: 'First' })
    await session.appendSessionInfo('Second')
    expect((await store.list()).sessions.map(({ name }) => name)).toEqual(['Second'])
  })

  verifies(
    ['session-manager/13 close'],
    'a closed session takes nothing more, closing it twice is one closing, and it opens again',
    async () => {
      const store = place().store()
      const session = await store.create()
      await ask(session, 'hello')
      await session.close()
      await session.close()
      await expect(ask(session, 'more')).rejects.toMatchObject({ code: 'session-closed' })
      expect(await saidIn(await store.open(session.id))).toEqual(['user: hello'])
    },
  )

  verifies(
    ['session-manager/13 continue-recent', 'session-manager/13 new-if-there-is-none'],
    'where there is nothing to continue, the store says so and a new session can be made',
    async () => {
      const store = place().store()
      const session = await store.continueRecent().catch(async (error: unknown) => {
        expect(error).toBeInstanceOf(SessionError)
        expect(error).toMatchObject({ code: 'session-not-found' })
        return store.create()
      })
      await ask(session, 'hello')
      expect((await store.continueRecent()).id).toBe(session.id)
    },
  )
})

describe('in files', () => {
  verifies(
    ['session-manager/6 config-dir', 'session-manager/6.1 new-dir', 'session-manager/13 new-manager'],
    'the store keeps each session in a folder of its own below the one it was given',
    async () => {
      const folder = join(temporaryFolder(), 'sessions')
      const session = await filePlace(folder).store().create()
      await ask(session, 'hello')
      expect(readdirSync(folder)).toContain(session.id)
      const log = readFileSync(join(folder, session.id, 'events.jsonl'), 'utf8')
      expect(log).toBe((await textsOf(session)).map((line) => `${line}\n`).join(''))
    },
  )

  verifies(
    ['session-manager/6.1 load', 'session-manager/6.1 load-path', 'session-manager/6.1 load-signature'],
    'a session is loaded by its folder, by its log, or by any .jsonl file, and goes on there',
    async () => {
      const folder = temporaryFolder()
      const { store } = filePlace(folder)
      const session = await store().create()
      await ask(session, 'hello')
      await session.close()
      const home = join(folder, session.id)
      mkdirSync(join(folder, 'elsewhere'))
      const elsewhere = join(folder, 'elsewhere', 'copy.jsonl')
      writeFileSync(elsewhere, readFileSync(join(home, 'events.jsonl')))
      for (const path of [home, join(home, 'events.jsonl'), elsewhere]) {
        await using loaded = await store().load(path)
        expect(await saidIn(loaded)).toEqual(['user: hello'])
      }
      await using loaded = await store().load(elsewhere)
      await answer(loaded, 'hi from elsewhere')
      expect(readFileSync(elsewhere, 'utf8').split('\n').at(-2)).toContain('hi from elsewhere')
      await expect(store().load(join(folder, 'nowhere.jsonl'))).rejects.toMatchObject({ code: 'session-not-found' })
    },
  )

  verifies(
    ['session-manager/6 manager-load', 'session-manager/6 session-file-path', 'session-manager/6.1 session-info-path'],
    'a session knows its path, the list gives the same one, and loading it opens that session',
    async () => {
      const { store } = filePlace(temporaryFolder())
      const session = await store().create()
      await ask(session, 'hello')
      await session.close()
      const [row] = (await store().list()).sessions
      expect(row?.path).toBe(session.path)
      const loaded = await store().load(row?.path ?? '')
      expect({ id: loaded.id, said: await saidIn(loaded) }).toEqual({ id: session.id, said: ['user: hello'] })
      await loaded.close()
    },
  )

  verifies(
    ['session-manager/6 session-file-handle'],
    'an open session holds one descriptor of its log for appending and opens no other for its lines',
    async () => {
      const folder = temporaryFolder()
      const opened: string[] = []
      const port = nodeFilePort()
      const store = openFileStore({
        folder,
        port: { ...port, openAppend: (path) => (opened.push(path), port.openAppend(path)) },
      })
      const session = await store.create()
      for (let index = 0; index < 20; index++) await ask(session, `message ${index}`)
      await session.close()
      expect(opened).toEqual([join(folder, session.id, 'events.jsonl')])
    },
  )

  verifies(
    ['session-manager/6.1 continue-recent-dir', 'session-manager/6.1 list-dir'],
    'continuing and listing look into the folder of the store and no other',
    async () => {
      const [here, there] = [filePlace(temporaryFolder()), filePlace(temporaryFolder())]
      const session = await here.store().create()
      await ask(session, 'hello')
      await session.close()
      expect((await here.store().list()).sessions.map(({ id }) => id)).toEqual([session.id])
      expect(await there.store().list()).toEqual({ sessions: [] })
      await expect(there.store().continueRecent()).rejects.toMatchObject({ code: 'session-not-found' })
    },
  )

  verifies(
    ['session-manager/6.1 fork-from-source-path', 'session-manager/6.1 fork-from-target-dir'],
    'a fork of a file that lies elsewhere is made in the store that forks, and the file stays as it is',
    async () => {
      const [source, target] = [temporaryFolder(), temporaryFolder()]
      const session = await filePlace(source).store().create()
      await ask(session, 'hello')
      await session.close()
      const path = join(source, session.id, 'events.jsonl')
      const before = readFileSync(path)
      const fork = await filePlace(target).store().forkFrom(path)
      expect(await saidIn(fork)).toEqual(['user: hello'])
      expect(existsSync(join(target, fork.id, 'events.jsonl'))).toBe(true)
      expect(readFileSync(path)).toEqual(before)
    },
  )

  verifies(
    ['session-manager/11.1 persistence-configuration'],
    'folders and files are made as they are needed, and only their user can read them',
    async () => {
      const folder = join(temporaryFolder(), 'deep', 'below', 'sessions')
      const session = await filePlace(folder).store().create()
      await session.putBlob(Uint8Array.of(1))
      await ask(session, 'hello')
      await session.close()
      const modes = ['', 'events.jsonl', 'blobs', 'checkpoint.json', 'queue.json', 'metadata.json'].map(
        (name) => statSync(join(folder, session.id, name)).mode & 0o777,
      )
      expect(modes).toEqual([0o700, 0o600, 0o700, 0o600, 0o600, 0o600])
    },
  )
})
