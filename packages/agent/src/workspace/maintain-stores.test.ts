import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, readdir, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import type { Session } from '@tapetree/session'
import { openFileStore } from '@tapetree/session/stores/file'
import { systemClock } from '@tapetree/session/util/wait'
import { TestFolder } from '../testing/test-folder.ts'
import {
  collectSnapshots,
  eraseSnapshots,
  lastRetention,
  listSnapshotStores,
  retainSnapshots,
} from './maintain-stores.ts'
import { WorkspaceSnapshots } from './workspace-snapshots.ts'

const dayMs = 24 * 60 * 60_000

test('snapshots of an erased session are deleted unless another session names them', async () => {
  await using place = await Place.make()
  const [first, second] = [await place.session(), await place.session()]
  const shared = await place.record(first, 'shared\n')
  await place.record(second, 'shared\n')
  const own = await place.record(first, 'only in the first session\n')
  const other = await place.record(second, 'second\n')
  const store = await place.snapshots(second).store()
  const secret = await store.versionAt(own, 'a.txt')
  await place.collect({ except: first.id })
  expect([await store.has(shared), await store.has(own), await store.has(other)]).toEqual([true, false, true])
  expect(await store.hasVersion(secret?.id ?? '')).toBe(false)
})

test('nothing stays in the store if no session names it', async () => {
  await using place = await Place.make()
  const session = await place.session()
  const tree = await place.record(session, 'one\n')
  const store = await place.snapshots(session).store()
  await mkdir(join(store.path, 'kept', 'a-restore'), { recursive: true })
  await writeFile(join(store.path, 'kept', 'a-restore', 'a.txt'), 'a copy')
  await place.collect({ except: session.id })
  expect(await store.has(tree)).toBe(false)
  expect(await readdir(join(store.path, 'git', 'objects', 'pack'))).toEqual([])
  expect((await readdir(store.path)).filter((name) => name.startsWith('index-'))).toEqual([])
  expect(await readdir(join(store.path, 'kept'))).toEqual([])
  // The next snapshot stores every file again.
  expect(await store.has((await store.take()).tree)).toBe(true)
})

test('after a month only the snapshots at messages and the newest one are kept', async () => {
  await using place = await Place.make()
  const session = await place.session()
  const atMessage = await place.record(session, 'at a message\n')
  const between = await place.record(session, 'after a call\n', { when: 'after' })
  const newest = await place.record(session, 'newest\n', { when: 'after' })
  const store = await place.snapshots(session).store()
  const has = async (): Promise<boolean[]> => [
    await store.has(atMessage),
    await store.has(between),
    await store.has(newest),
  ]
  await place.collect({ now: Date.now() + 29 * dayMs })
  expect(await has()).toEqual([true, true, true])
  await place.collect({ now: Date.now() + 31 * dayMs })
  expect(await has()).toEqual([true, false, true])
})

test('the files at a message are kept if they were recorded before it', async () => {
  await using place = await Place.make()
  const session = await place.session()
  await place.record(session, 'first\n')
  const atMessage = await place.record(session, 'by the agent\n', { when: 'after' })
  await session.appendMessage('user', 'next')
  await place.record(session, 'newest\n', { when: 'after' })
  const store = await place.snapshots(session).store()
  await place.collect({ now: Date.now() + 31 * dayMs })
  expect(await store.has(atMessage)).toBe(true)
})

test('a store that is too large loses its oldest snapshots, but none at a message of the current branch', async () => {
  await using place = await Place.make()
  const session = await place.session()
  const first = await place.record(session, 'first\n')
  const root = session.leafId
  const abandoned = await place.record(session, 'on an abandoned branch\n')
  await session.branch(root)
  const between = await place.record(session, 'by the agent\n', { when: 'after' })
  const newest = await place.record(session, 'newest\n')
  const store = await place.snapshots(session).store()
  const [collected] = await place.collect({ now: Date.now() + 40 * dayMs, limits: { maxBytes: 1 } })
  const trees = { first, abandoned, between, newest }
  const left = await Promise.all(Object.entries(trees).map(async ([name, tree]) => [name, await store.has(tree)]))
  // The newest message was written when the files were those of the agent.
  expect(Object.fromEntries(left)).toEqual({ first: true, abandoned: false, between: true, newest: true })
  const kept = { branch: 3, pinned: 0, recent: 0, message: 0 }
  expect(collected).toMatchObject({ folder: place.folders.work, kept, unreadableLogs: [] })
  expect(collected?.bytes).toBeLessThan(collected?.bytesBefore ?? 0)
  expect(await listSnapshotStores(place.folders.stores)).toHaveLength(1)
})

test('snapshots that only a log elsewhere names are kept, also if it is archived, until it is deleted', async () => {
  await using place = await Place.make()
  const sessions = openFileStore({ folder: place.root.at('elsewhere') })
  const session = await sessions.create({ cwd: place.folders.work })
  const tree = await place.record(session, 'named elsewhere\n')
  const store = await place.snapshots(session).store()
  await place.collect({})
  expect(await store.has(tree)).toBe(true)
  await session.close()
  await sessions.archive(session.id)
  await place.collect({})
  expect(await store.has(tree)).toBe(true)
  await rm(place.root.at(`elsewhere/.archive/${session.id}`), { recursive: true })
  await place.collect({})
  expect(await store.has(tree)).toBe(false)
})

test('snapshots that a log file outside of any store names are kept', async () => {
  await using place = await Place.make()
  await place.root.write('loose/talk.jsonl', '')
  const session = await openFileStore({ folder: place.folders.sessions }).load(place.root.at('loose/talk.jsonl'))
  const tree = await place.record(session, 'named by a file\n')
  const store = await place.snapshots(session).store()
  await place.collect({})
  expect(await store.has(tree)).toBe(true)
  await session.close()
})

test('nothing is deleted while the disk with a log is missing', async () => {
  await using place = await Place.make()
  const sessions = openFileStore({ folder: place.root.at('disk/sessions') })
  const session = await sessions.create({ cwd: place.folders.work })
  const tree = await place.record(session, 'on a disk\n')
  const store = await place.snapshots(session).store()
  await session.close()
  await rename(place.root.at('disk'), place.root.at('unmounted'))
  const [collected] = await place.collect({})
  expect(await store.has(tree)).toBe(true)
  expect(collected?.unreadableLogs).toEqual([place.root.at(`disk/sessions/${session.id}`)])
})

test('the trees of a working copy are kept, however old they are', async () => {
  await using place = await Place.make()
  const session = await place.session()
  await place.record(session, 'one\n')
  const store = await place.snapshots(session).store()
  await place.root.write('work/a.txt', 'of the copy\n')
  const { tree } = await store.take()
  const { work } = place.folders
  const workingCopy = { folder: work, root: work, copyOf: work, tree }
  await session.append({ type: 'working_copy', workingCopy })
  await place.collect({ now: Date.now() + 31 * dayMs, limits: { maxBytes: 1 } })
  expect(await store.has(tree)).toBe(true)
})

test('old snapshots are deleted in the background once a day, and other stores are left alone', async () => {
  await using place = await Place.make()
  const session = await place.session()
  await place.record(session, 'at a message\n')
  const between = await place.record(session, 'after a call\n', { when: 'after' })
  await place.record(session, 'newest\n', { when: 'after' })
  const store = await place.snapshots(session).store()
  const { stores, sessions } = place.folders
  const retain = (days: number): ReturnType<typeof retainSnapshots> =>
    retainSnapshots({ storesFolder: stores, sessionsFolder: sessions, now: Date.now() + days * dayMs })
  expect(lastRetention(stores)).toBeUndefined()
  expect(await retain(0)).toEqual([])
  expect(lastRetention(stores)).toBeInstanceOf(Date)
  expect([await retain(0.9), await retain(29)]).toEqual([undefined, []])
  expect(await store.has(between)).toBe(true)
  expect(await retain(31)).toMatchObject([{ folder: place.folders.work }])
  expect(await store.has(between)).toBe(false)
  expect(await retain(33)).toEqual([])
})

test('without snapshots, nothing is marked as looked through', async () => {
  await using place = await Place.make()
  const { stores, sessions } = place.folders
  expect(await retainSnapshots({ storesFolder: stores, sessionsFolder: sessions })).toBeUndefined()
  expect(lastRetention(stores)).toBeUndefined()
})

test('a store of sessions erases the snapshots together with a session', async () => {
  await using place = await Place.make()
  const session = await place.session()
  const tree = await place.record(session, 'one\n')
  const store = await place.snapshots(session).store()
  const { sessions, stores } = place.folders
  const erasing = (id: string): ReturnType<typeof eraseSnapshots> =>
    eraseSnapshots(id, { sessionsFolder: sessions, storesFolder: stores })
  await session.close()
  await openFileStore({ folder: sessions, erasing }).erase(session.id)
  expect(await store.has(tree)).toBe(false)
})

test('stores are listed while git makes and removes folders in one of them', async () => {
  await using root = await TestFolder.make()
  const objects = root.at('stores/one/git/objects')
  await mkdir(objects, { recursive: true })
  await writeFile(root.at('stores/one/folder'), `${root.at('work')}\n`)
  await writeFile(join(objects, 'pack'), 'x'.repeat(5000))
  // Ended, not killed: none of its commands may be at work when the folder is removed.
  const wanted = root.at('wanted')
  await writeFile(wanted, '')
  const script =
    'while test -e ../../../../wanted; do mkdir -p tmp_objdir-1/a tmp_objdir-2/a; rm -r tmp_objdir-1 tmp_objdir-2; done'
  const busy = spawn('sh', ['-c', script], { cwd: objects, stdio: 'ignore' })
  try {
    for (let time = 0; time < 300; time++) {
      const [store] = await listSnapshotStores(root.at('stores'))
      expect(store?.bytes).toBeGreaterThanOrEqual(5000)
    }
  } finally {
    await rm(wanted)
    await once(busy, 'close')
  }
})

class Place implements AsyncDisposable {
  readonly root: TestFolder
  readonly folders: { work: string; stores: string; sessions: string }
  readonly #snapshots = new Map<string, WorkspaceSnapshots>()
  readonly #sessions: Session[] = []
  #calls = 0

  private constructor(root: TestFolder) {
    this.root = root
    this.folders = { work: root.at('work'), stores: root.at('stores'), sessions: root.at('sessions') }
  }

  static async make(): Promise<Place> {
    const place = new Place(await TestFolder.make({ 'work/a.txt': 'a\n' }))
    await mkdir(place.folders.sessions)
    return place
  }

  async session(): Promise<Session> {
    const session = await openFileStore({ folder: this.folders.sessions }).create({ cwd: this.folders.work })
    this.#sessions.push(session)
    return session
  }

  snapshots(session: Session): WorkspaceSnapshots {
    const { work, stores } = this.folders
    const known = this.#snapshots.get(session.id)
    if (known) return known
    const made = new WorkspaceSnapshots({ session, folder: work, storesFolder: stores, clock: systemClock })
    this.#snapshots.set(session.id, made)
    return made
  }

  /** Writes a file and records it. Returns the tree. */
  async record(session: Session, content: string, { when = 'start' } = {}): Promise<string> {
    await this.root.write('work/a.txt', content)
    const snapshots = this.snapshots(session)
    if (when === 'start') {
      snapshots.runStarted({ runId: 'r', entryId: await session.appendMessage('user', 'next') })
    } else {
      const access = [{ type: 'tool' as const, name: 'x', readOnly: false }]
      snapshots.afterCall({ runId: 'r', callId: `c${++this.#calls}`, access })
    }
    await snapshots.selfContained()
    return session.lastSnapshot?.tree ?? ''
  }

  collect(options: Partial<Parameters<typeof collectSnapshots>[0]>): ReturnType<typeof collectSnapshots> {
    const { stores, sessions } = this.folders
    return collectSnapshots({ storesFolder: stores, sessionsFolder: sessions, ...options })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const session of this.#sessions) await session.close()
    await this.root[Symbol.asyncDispose]()
  }
}
