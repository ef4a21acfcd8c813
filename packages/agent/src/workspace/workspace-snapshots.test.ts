import { execFileSync } from 'node:child_process'
import { chmod, mkdir, readFile, rename, rm, stat, symlink, readlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test, vi } from 'vitest'
import { withFileLock } from '@tapetree/session/stores/file'
import { memoryStore, text, type Session } from '@tapetree/session'
import { systemClock, type Clock } from '@tapetree/session/util/wait'
import type { Access } from '../tools/tool.ts'
import { TestFolder } from '../testing/test-folder.ts'
import { WorkspaceSnapshots } from './workspace-snapshots.ts'

test('files go back to where they were at a message, and a restore can be undone', async () => {
  await using work = await Work.make({ 'a.txt': 'one\n', 'sub/b.txt': 'two\n' }, { git: true })
  const first = await work.say('change things')
  await work.call(async ({ folder }) => {
    await folder.write('a.txt', 'changed\n')
    await rm(folder.at('sub'), { recursive: true })
    await folder.write('new/c.txt', 'three\n')
  })
  const changed = { 'a.txt': 'changed\n', 'new/c.txt': 'three\n' }
  expect(await work.files()).toEqual(changed)
  const prepared = await work.snapshots.prepare(first)
  expect(prepared.restored.map(({ path }) => path)).toEqual(['a.txt', 'new/c.txt', 'sub/b.txt'])
  expect(await work.snapshots.restore(prepared)).toMatchObject({ skipped: [], kept: [], conflicts: [] })
  expect(await work.files()).toEqual({ 'a.txt': 'one\n', 'sub/b.txt': 'two\n' })
  await work.snapshots.restore(await work.snapshots.prepareUndo())
  expect(await work.files()).toEqual(changed)
})

test('what the user changed stays, and what both changed is asked', async () => {
  const lines = (name: string): string =>
    `${[1, 2, 3, 4, 5, 6, 7, 8].map((number) => `${name} ${number}`).join('\n')}\n`
  await using work = await Work.make({ 'agent.txt': lines('a'), 'user.txt': lines('u'), 'both.txt': lines('b') })
  const first = await work.say('change things')
  await work.call(async ({ folder }) => {
    await folder.write('agent.txt', 'agent\n')
    await folder.write('both.txt', lines('b').replace('b 1\n', 'by the agent\n'))
  })
  await work.folder.write('user.txt', 'user\n')
  await work.folder.write('both.txt', (await work.folder.read('both.txt')).replace('b 8\n', 'by the user\n'))
  await work.folder.write('mine.txt', 'mine\n')
  const prepared = await work.snapshots.prepare(first)
  expect(prepared.restored.map(({ path }) => path)).toEqual(['agent.txt'])
  expect(prepared.kept.map(({ path }) => path)).toEqual(['mine.txt', 'user.txt'])
  expect(prepared.conflicts.map(({ path }) => path)).toEqual(['both.txt'])
  expect(await work.snapshots.restore(prepared, new Map([['both.txt', 'merge']]))).toMatchObject({ conflicts: [] })
  expect(await work.files()).toEqual({
    'agent.txt': lines('a'),
    'user.txt': 'user\n',
    'both.txt': lines('b').replace('b 8\n', 'by the user\n'),
    'mine.txt': 'mine\n',
  })
})

test('links, executable files, binary files and line ends come back, and other modes stay', async () => {
  await using work = await Work.make({ 'run.sh': 'x\n', crlf: 'a\r\nb\r\n', bin: Buffer.from([0, 255, 10, 13]) })
  await chmod(work.folder.at('run.sh'), 0o700)
  await symlink('crlf', work.folder.at('link'))
  const first = await work.say('go')
  await work.call(async ({ folder }) => {
    await chmod(folder.at('run.sh'), 0o600)
    await rm(folder.at('link'))
    await folder.write('link', 'a file now')
    await folder.write('crlf', 'a\nb\n')
    await rm(folder.at('bin'))
    await mkdir(folder.at('bin'))
    await folder.write('bin/x', 'x')
  })
  await work.snapshots.restore(await work.snapshots.prepare(first))
  expect((await stat(work.folder.at('run.sh'))).mode & 0o777).toBe(0o700)
  expect(await readlink(work.folder.at('link'))).toBe('crlf')
  expect(await work.folder.read('crlf')).toBe('a\r\nb\r\n')
  expect(await readFile(work.folder.at('bin'))).toEqual(Buffer.from([0, 255, 10, 13]))
})

test('a link, an empty file and texts are recorded together', async () => {
  await using work = await Work.make({ 'a.txt': 'a' })
  await work.say('go')
  await work.call(async ({ folder }) => {
    await symlink('nowhere', folder.at('a link'))
    await folder.write('b empty', '')
    await folder.write('c text', 'text\n')
  })
  expect(work.snapshots.state).toEqual({ type: 'on', isSlow: false })
  expect(work.session.lastSnapshot).toMatchObject({ when: 'after', by: 'agent', added: 3 })
})

test('secrets, large new files and ignored files are left out and never touched', async () => {
  await using work = await Work.make(
    { '.gitignore': 'out/\n', 'out/x': '1', '.env': 'A=1', 'a.txt': 'a' },
    { git: true },
  )
  await writeFile(work.folder.at('large'), Buffer.alloc(6 * 1024 * 1024))
  const first = await work.say('go')
  await work.call(async ({ folder }) => {
    await folder.write('out/x', '2')
    await folder.write('.env', 'A=2')
    await folder.write('a.txt', 'b')
    await rename(folder.at('large'), folder.at('larger'))
  })
  expect(work.session.lastSnapshot?.leftOut).toEqual([
    { path: '.env', reason: 'secret' },
    { path: 'larger', reason: 'large' },
  ])
  await work.snapshots.restore(await work.snapshots.prepare(first))
  expect(await work.folder.read('a.txt')).toBe('a')
  expect([await work.folder.read('out/x'), await work.folder.read('.env')]).toEqual(['2', 'A=2'])
  expect((await stat(work.folder.at('larger'))).size).toBe(6 * 1024 * 1024)
})

test('a file that was ignored at the target is not deleted, though it is not ignored now', async () => {
  await using work = await Work.make({ '.gitignore': 'out/\n', 'out/x': '1', 'a.txt': 'a' })
  const first = await work.say('go')
  await work.call(async ({ folder }) => {
    await rm(folder.at('.gitignore'))
    await folder.write('b.txt', 'b')
  })
  await work.snapshots.restore(await work.snapshots.prepare(first))
  const before = { '.gitignore': 'out/\n', 'out/x': '1', 'a.txt': 'a' }
  expect(await work.files()).toEqual(before)
  await work.snapshots.restore(await work.snapshots.prepare(first))
  expect(await work.files()).toEqual(before)
})

test('a file comes back where a folder with nothing but empty folders is now', async () => {
  await using work = await Work.make({ 'a.bin': 'a', 'b.txt': 'b' })
  const first = await work.say('go')
  await work.call(async ({ folder }) => {
    await rm(folder.at('a.bin'))
    await mkdir(folder.at('a.bin/inside/deeper'), { recursive: true })
    await mkdir(folder.at('a.bin/other'))
    await rm(folder.at('b.txt'))
    await mkdir(folder.at('b.txt/inside'), { recursive: true })
    await folder.write('b.txt/.env', 'A=1')
  })
  const done = await work.snapshots.restore(await work.snapshots.prepare(first))
  expect(done.skipped).toEqual(['b.txt'])
  expect(await work.folder.read('a.bin')).toBe('a')
  // No snapshot holds the secret, so nothing beside it is touched either.
  expect((await stat(work.folder.at('b.txt/inside'))).isDirectory()).toBe(true)
  expect(await work.folder.read('b.txt/.env')).toBe('A=1')
})

test('a call that only reads is not recorded, and a snapshot without changes writes no line', async () => {
  await using work = await Work.make({ 'a.txt': 'a' })
  await work.say('go')
  await work.call(async () => undefined)
  const { seq } = work.session.head
  const reading: Access[] = [{ type: 'command', command: 'cat a.txt', cwd: work.folder.path }]
  await work.call(({ folder }) => folder.write('a.txt', 'b'), reading)
  // Only the result of the call.
  expect(work.session.head.seq).toBe(seq + 1)
})

test('a folder that takes long to look through is recorded only at the start and the end of a run', async () => {
  const clock = new SlowClock()
  await using work = await Work.make({ 'a.txt': 'start\n' }, { clock })
  const first = await work.say('go')
  clock.stepMs = 2500
  await work.call(({ folder }) => folder.write('a.txt', 'one\n'))
  expect(work.snapshots.state).toEqual({ type: 'on', isSlow: true })
  const { seq } = work.session.head
  await work.call(({ folder }) => folder.write('a.txt', 'two\n'))
  await work.call(({ folder }) => folder.write('b.txt', 'new\n'))
  // Only the results of the calls.
  expect(work.session.head.seq).toBe(seq + 2)
  await work.snapshots.runEnded({ runId: 'r' })
  expect(work.session.lastSnapshot).toMatchObject({ when: 'after', by: 'agent', runId: 'r', added: 1, changed: 1 })
  const afterRun = work.session.head.seq

  await work.folder.write('mine.txt', 'mine\n')
  await work.say('more')
  expect(work.session.lastSnapshot).toMatchObject({ when: 'start', by: 'outside', added: 1 })
  expect(work.session.head.seq).toBe(afterRun + 2)
  const prepared = await work.snapshots.prepare(first)
  expect(prepared.kept.map(({ path }) => path)).toEqual(['mine.txt'])
  await work.snapshots.restore(prepared)
  expect(await work.files()).toEqual({ 'a.txt': 'start\n', 'mine.txt': 'mine\n' })

  // As soon as a look is quick again, so are the calls.
  clock.stepMs = 10
  await work.say('again')
  await work.call(({ folder }) => folder.write('a.txt', 'three\n'))
  expect(work.session.lastSnapshot).toMatchObject({ when: 'after', by: 'agent', changed: 1 })
})

test('a snapshot waits for minutes while another process works on the store', async () => {
  await using work = await Work.make({ 'a.txt': 'one' })
  await work.say('go')
  await work.folder.write('a.txt', 'two')
  const store = await work.snapshots.store()
  const realNow = Date.now.bind(Date)
  let later = 0
  const clock = vi.spyOn(Date, 'now').mockImplementation(() => realNow() + later)
  const held = Promise.withResolvers<void>()
  const holding = withFileLock(join(store.path, 'store'), () => held.promise)
  const recorded = work.say('more')
  await vi.waitFor(() => expect(clock.mock.calls.length).toBeGreaterThan(4))
  later = 2 * 60_000
  const calls = clock.mock.calls.length
  await vi.waitFor(() => expect(clock.mock.calls.length).toBeGreaterThan(calls + 4))
  held.resolve()
  await Promise.all([holding, recorded])
  clock.mockRestore()
  expect(work.session.lastSnapshot).toMatchObject({ when: 'start', by: 'outside', changed: 1 })
})

test('a store that could not be opened is opened again for the next call', async () => {
  await using work = await Work.make({ 'a.txt': 'one' })
  await rm(work.stores.path, { recursive: true })
  await writeFile(work.stores.path, 'in the way')
  await work.say('go')
  expect(work.snapshots.state).toMatchObject({ type: 'on', problem: expect.stringContaining('ENOTDIR') as string })
  await expect(work.snapshots.prepare(null)).rejects.toThrow('ENOTDIR')
  await rm(work.stores.path)
  await work.call(({ folder }) => folder.write('a.txt', 'two'))
  expect(work.snapshots.state).toEqual({ type: 'on', isSlow: false })
  expect(work.session.lastSnapshot).toMatchObject({ when: 'after', by: 'agent', changed: 1 })
})

/** Advances with every look at it. */
class SlowClock implements Clock {
  stepMs = 1
  #now = 0

  now(): number {
    return (this.#now += this.stepMs)
  }

  wait(ms: number, signal?: AbortSignal): Promise<void> {
    return systemClock.wait(ms, signal)
  }
}

/** A session in a folder, with calls that a test performs itself. */
class Work implements AsyncDisposable {
  readonly folder: TestFolder
  readonly stores: TestFolder
  readonly session: Session
  readonly snapshots: WorkspaceSnapshots
  #calls = 0

  private constructor({
    folder,
    stores,
    session,
    clock,
  }: Pick<Work, 'folder' | 'stores' | 'session'> & { clock: Clock }) {
    this.folder = folder
    this.stores = stores
    this.session = session
    this.snapshots = new WorkspaceSnapshots({ session, folder: folder.path, storesFolder: stores.path, clock })
  }

  static async make(
    files: Record<string, string | Uint8Array>,
    { git = false, clock = systemClock }: { git?: boolean; clock?: Clock } = {},
  ): Promise<Work> {
    const folder = await TestFolder.make(files)
    if (git) {
      execFileSync('git', ['init', '--quiet', folder.path])
      execFileSync('git', ['-C', folder.path, 'add', '.'])
      execFileSync('git', ['-C', folder.path, '-c', 'user.name=A', '-c', 'user.email=a@b', 'commit', '-qm', 'x'])
    }
    const store = memoryStore()
    const session = await store.create({ cwd: folder.path })
    return new Work({ folder, stores: await TestFolder.make(), session, clock })
  }

  async say(message: string): Promise<string> {
    const entryId = await this.session.appendMessage('user', message)
    this.snapshots.runStarted({ runId: 'r', entryId })
    await this.snapshots.settled()
    return entryId
  }

  async call(
    work: (place: Work) => Promise<unknown>,
    access: Access[] = [{ type: 'tool', name: 'x', readOnly: false }],
  ): Promise<void> {
    const call = { runId: 'r', callId: `c${++this.#calls}`, access }
    await this.snapshots.beforeCall(call)
    await work(this)
    await this.session.appendMessage('tool', [
      { type: 'tool_result', toolResult: { toolUseId: call.callId, content: [text('done')] } },
    ])
    this.snapshots.afterCall(call)
    await this.snapshots.settled()
  }

  /** The text files, without those of git. */
  async files(): Promise<Record<string, string>> {
    const listed = execFileSync('find', ['.', '-name', '.git', '-prune', '-o', '-type', 'f', '-print'], {
      cwd: this.folder.path,
    })
    const names = listed
      .toString('utf8')
      .split('\n')
      .filter(Boolean)
      .map((name) => name.slice(2))
    return Object.fromEntries(await Promise.all(names.map(async (name) => [name, await this.folder.read(name)])))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.session.close()
    await this.folder[Symbol.asyncDispose]()
    await this.stores[Symbol.asyncDispose]()
  }
}
