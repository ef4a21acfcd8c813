import { rm, symlink, writeFile } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { memoryStore } from '@tapetree/session'
import { systemClock } from '@tapetree/session/util/wait'
import { TestFolder } from '../testing/test-folder.ts'
import { compareSession } from './compare-files.ts'
import { WorkspaceSnapshots } from './workspace-snapshots.ts'

test('the files at two entries are compared with counts of lines, and with diffs on request', async () => {
  await using folder = await TestFolder.make({ 'a.txt': 'one\ntwo\n', 'gone.txt': 'x\n', link: 'text\n', same: 's' })
  await using stores = await TestFolder.make()
  const session = await memoryStore().create({ cwd: folder.path })
  const snapshots = new WorkspaceSnapshots({
    session,
    folder: folder.path,
    storesFolder: stores.path,
    clock: systemClock,
  })
  const say = async (text: string): Promise<string> => {
    const entryId = await session.appendMessage('user', text)
    snapshots.runStarted({ runId: 'r', entryId })
    await snapshots.settled()
    return entryId
  }
  const left = await say('before')
  await folder.write('a.txt', 'one\n2\nthree\n')
  await folder.write('new é\t.txt', 'diff --git a b\n')
  await writeFile(folder.at('bin'), Buffer.from([0, 1, 2, 255]))
  await rm(folder.at('gone.txt'))
  await rm(folder.at('link'))
  await symlink('a.txt', folder.at('link'))
  const right = await say('after')
  const files = { folder: folder.path, storesFolder: stores.path }
  const { files: found } = await compareSession(session, { left, right, files: { ...files, diff: {} } })
  const counts = found?.changes.map(({ path, change, addedLines, removedLines, isBinary }) =>
    [path, change, addedLines, removedLines, isBinary].join(' '),
  )
  expect(counts).toEqual([
    'a.txt changed 2 1 false',
    'bin added 0 0 true',
    'gone.txt removed 0 1 false',
    'link changed 1 1 false',
    'new é\t.txt added 1 0 false',
  ])
  expect(found).toMatchObject({ changedCount: 5, addedLines: 4, removedLines: 3 })
  const patches = found?.changes.map(({ patch = '' }) => patch)
  expect(patches?.[0]).toContain(' one\n-two\n+2\n+three\n')
  expect(patches?.[3]?.match(/^diff --git/gm)).toHaveLength(2)
  expect(patches?.[4]).toContain('\n+diff --git a b\n')
  const one = await compareSession(session, { left, right, files: { ...files, diff: { path: 'gone.txt' } } })
  expect(one.files).toMatchObject({ changedCount: 5, changes: [{ path: 'gone.txt' }] })
  expect((await compareSession(session, { left, right, files })).files?.changes[0]).not.toHaveProperty('patch')
  expect((await compareSession(session, { left, right: left, files })).files?.changes).toEqual([])
})

test('a session without snapshots says why its files are not compared', async () => {
  const session = await memoryStore().create({ cwd: '/' })
  const left = await session.appendMessage('user', 'one')
  const compared = await compareSession(session, {
    left,
    right: left,
    files: { folder: '/tmp', storesFolder: '/nowhere' },
  })
  expect(compared.files).toMatchObject({ changes: [], problem: expect.stringContaining('not recorded') })
})
