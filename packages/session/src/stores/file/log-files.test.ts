import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { openFileStore } from './file-store.ts'
import { logFilesIn } from './log-files.ts'

test('the logs of all places are found, and no other files', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'tapetree-logs-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  const store = openFileStore({ folder })
  const ids: string[] = []
  for (let index = 0; index < 3; index++) {
    await using session = await store.create()
    ids.push(session.id)
  }
  const [kept = '', archived = '', deleted = ''] = ids
  await store.archive(archived)
  await store.delete(deleted)
  await store.list()
  await store.close()
  expect(await logFilesIn(folder)).toEqual([
    { id: kept, place: 'active', path: join(folder, kept, 'events.jsonl') },
    { id: archived, place: 'archive', path: join(folder, '.archive', archived, 'events.jsonl') },
    { id: deleted, place: 'trash', path: join(folder, '.trash', deleted, 'events.jsonl') },
  ])
  expect(await logFilesIn(join(folder, 'nowhere'))).toEqual([])
})

test('a file in place of the folder is an error, not an empty store', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'tapetree-logs-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  const file = join(folder, 'file')
  await writeFile(file, '')
  await expect(logFilesIn(file)).rejects.toMatchObject({ code: 'ENOTDIR' })
})
