import { WorkspaceSnapshots } from '@tapetree/agent/workspace'
import type { Session } from '@tapetree/session'
import { systemClock } from '@tapetree/session/util/wait'
import { readdir, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test, vi } from 'vitest'
import { retainInBackground } from '../../host/retain-snapshots.ts'
import { SessionHome } from '../../testing/session-home.ts'
import { testIo } from '../../testing/test-io.ts'
import { ChatProblems } from '../chat/problems.ts'
import { openChatHost } from '../chat/session.ts'

test('the size of file snapshots is shown, and gc deletes those that no session names', async () => {
  await using home = await SessionHome.make()
  for (const command of ['size', 'gc'])
    expect(await home.run(['workspace', command])).toMatchObject({ code: 0, err: 'There are no file snapshots yet.\n' })
  const id = await home.session((session) => record(home, session, 'x'.repeat(100_000)))
  const { out, err } = await home.run(['workspace', 'size'])
  expect(out).toMatch(/^SIZE +FOLDER\n\d+\.\d MB +\S+work\n$/)
  expect(err).toContain('in all. To delete old snapshots: tapetree workspace gc')
  expect(err).toContain('deleted by themselves after 30 days, or above 2147 MB a folder; not yet.')
  const collected = await home.run(['workspace', 'gc'])
  expect(collected.err).toContain(`${home.cwd}: kept 1 snapshot: 1 at messages of current branches.\n`)
  expect(await storedFiles(home)).toBeGreaterThan(0)
  await rm(join(home.root, 'tapetree', 'sessions', id), { recursive: true })
  expect(await home.json('workspace', 'gc')).toMatchObject({
    workspaces: [{ folder: home.cwd, kept: { branch: 0, pinned: 0, recent: 0, message: 0 } }],
  })
  expect(await storedFiles(home)).toBe(0)
})

test('deleting a session for good deletes the files that only it names', async () => {
  await using home = await SessionHome.make()
  const id = await home.session((session) => record(home, session, 'one'))
  const kept = await home.session((session) => record(home, session, 'two'))
  expect(await home.run(['sessions', 'delete', id, '--forever', '--yes'])).toMatchObject({ code: 0 })
  expect(await home.json('workspace', 'gc')).toMatchObject({ workspaces: [{ kept: { branch: 1 } }] })
  await home.run(['sessions', 'delete', kept, '--forever', '--yes'])
  expect(await storedFiles(home)).toBe(0)
})

test('doctor reports an interrupted restore and a damaged store, and --fix repairs the store', async () => {
  await using home = await SessionHome.make()
  const id = await home.session(async (session) => {
    await record(home, session, 'one')
    const tree = session.lastSnapshot?.tree ?? ''
    await session.append({ type: 'restore', restore: { restoreId: 'r', phase: 'start', from: tree, to: tree } })
  })
  expect(await checksOf(home)).toContain(`open restore: Putting files back was interrupted in session ${id}.`)
  const [store = ''] = await readdir(join(home.root, 'tapetree', 'workspaces'))
  await rm(join(home.root, 'tapetree', 'workspaces', store, 'git', 'objects', 'pack'), { recursive: true })
  const damaged = `snapshot stores: The file snapshots of ${home.cwd} are damaged: the newest one cannot be read completely.`
  expect(await checksOf(home)).toContain(damaged)
  await home.run(['doctor', '--fix'])
  await home.session((session) => record(home, session, 'two'))
  expect(await checksOf(home)).not.toContain(damaged)
})

test('doctor says why there are no file snapshots', async () => {
  await using home = await SessionHome.make()
  const { out } = await home.run(['doctor', '--json'], { cwd: home.root })
  expect(out).toContain('There are no file snapshots of the home folder.')
})

test('deleting old snapshots in the background follows the limits of the settings, and doctor tells', async () => {
  await using home = await SessionHome.make()
  await home.session((session) => record(home, session, 'one'))
  const io = {
    env: { ...home.env, TAPETREE_SNAPSHOTS_MAX_BYTES: '1', TAPETREE_SNAPSHOTS_MAX_AGE_DAYS: '3' },
    home: home.root,
  }
  await retainInBackground(io, new AbortController().signal)
  const today = new Date().toISOString().slice(0, 10)
  const { checks } = JSON.parse((await home.run(['doctor', '--json'], { env: io.env })).out) as {
    checks: { name: string; says: string }[]
  }
  const said = checks.find(({ name }) => name === 'snapshot retention')?.says
  expect(said).toMatch(new RegExp(`MB. Old snapshots are deleted .* after 3 days, or above 0 MB .* last on ${today}`))
  expect(await storedFiles(home)).toBeGreaterThan(0)
})

test('a server and a terminal look for old snapshots once they have started', async () => {
  await using home = await SessionHome.make()
  await home.session((session) => record(home, session, 'one'))
  const mark = join(home.root, 'tapetree', 'workspaces', 'last-retention')
  const isMarked = (): Promise<unknown> => vi.waitFor(() => stat(mark), { timeout: 40_000, interval: 50 })
  const stop = new AbortController()
  const serving = home.run(['serve', '--port', '0'], { signal: stop.signal })
  await isMarked()
  stop.abort()
  expect(await serving).toMatchObject({ code: 0 })

  await rm(mark)
  const io = testIo({ ...home, home: home.root, isTTY: true })
  await using host = await openChatHost({ io, store: home.store, flags: {}, problems: new ChatProblems() })
  await host.listen()
  await isMarked()
})

/** Writes a file and records it in a session. */
async function record(home: SessionHome, session: Session, content: string): Promise<void> {
  await writeFile(join(home.cwd, 'a.txt'), content)
  const storesFolder = join(home.root, 'tapetree', 'workspaces')
  const snapshots = new WorkspaceSnapshots({ session, folder: home.cwd, storesFolder, clock: systemClock })
  snapshots.runStarted({ runId: 'r', entryId: await session.appendMessage('user', 'go') })
  await snapshots.selfContained()
}

async function storedFiles(home: SessionHome): Promise<number> {
  const [store = ''] = await readdir(join(home.root, 'tapetree', 'workspaces'))
  return (await readdir(join(home.root, 'tapetree', 'workspaces', store, 'git', 'objects', 'pack'))).length
}

async function checksOf(home: SessionHome): Promise<string[]> {
  const { checks } = (await home.json('doctor')) as { checks: { name: string; says: string }[] }
  return checks.map(({ name, says }) => `${name}: ${says}`)
}
