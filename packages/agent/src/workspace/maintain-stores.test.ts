import { mkdir, readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import type { Session } from '@tapetree/session'
import { openFileStore } from '@tapetree/session/stores/file'
import { systemClock } from '@tapetree/session/util/wait'
import { TestFolder } from '../testing/test-folder.ts'
import { collectSnapshots, eraseSnapshots, listSnapshotStores } from './maintain-stores.ts'
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

test('a store that is too large loses its oldest snapshots', async () => {
  await using place = await Place.make()
  const session = await place.session()
  const old = await place.record(session, 'old\n')
  const newest = await place.record(session, 'newest\n')
  const store = await place.snapshots(session).store()
  const [collected] = await place.collect({ now: Date.now() + 40 * dayMs, maxBytes: 1 })
  expect([await store.has(old), await store.has(newest)]).toEqual([false, true])
  expect(collected).toMatchObject({ folder: place.folders.work, trees: 1 })
  expect(collected?.bytes).toBeLessThan(collected?.bytesBefore ?? 0)
  expect(await listSnapshotStores(place.folders.stores)).toHaveLength(1)
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
    return new Place(await TestFolder.make({ 'work/a.txt': 'a\n' }))
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
