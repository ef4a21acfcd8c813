import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { text } from '../../line/message.ts'
import { openFileStore } from './file-store.ts'
import { nodeFilePort } from './node-file-port.ts'

function folderOfSession(): { root: string; log: string } {
  const root = mkdtempSync(join(tmpdir(), 'tapetree-odd-'))
  onTestFinished(() => rmSync(root, { recursive: true }))
  mkdirSync(join(root, 'odd'))
  return { root, log: join(root, 'odd', 'events.jsonl') }
}

test.for([{ readOnly: true }, { readOnly: false }])(
  'a folder in the place of a log is rejected (%o)',
  async (options) => {
    const { root, log } = folderOfSession()
    mkdirSync(log)
    await expect(openFileStore({ folder: root }).open('odd', options)).rejects.toMatchObject({ code: 'storage-failed' })
  },
)

test.skipIf(process.platform === 'win32').for([{ readOnly: true }, { readOnly: false }])(
  'a pipe in the place of a log is rejected at once (%o)',
  async (options) => {
    const { root, log } = folderOfSession()
    execFileSync('mkfifo', [log])
    const opening = openFileStore({ folder: root }).open('odd', options)
    await expect(opening).rejects.toMatchObject({
      code: 'storage-failed',
      message: expect.stringContaining('not a regular file'),
    })
  },
)

test.for([undefined, nodeFilePort()])(
  'files that are not sessions hide no session, with an index and without',
  async (port) => {
    const { root, log } = folderOfSession()
    mkdirSync(log)
    writeFileSync(join(root, 'stray'), 'a file')
    const store = openFileStore({ folder: root, ...(port && { port }) })
    const session = await store.create({ id: 'good' })
    await session.appendMessage('user', [text('here')])
    await session.close()
    expect((await store.list()).sessions.map(({ id }) => id)).toEqual(['good'])
    expect((await store.search({ text: 'here' })).map(({ sessionId }) => sessionId)).toEqual(['good'])
    await store.close()
  },
)

test('a file in the place of the folder of a checkpoint is replaced', async () => {
  const { root } = folderOfSession()
  const store = openFileStore({ folder: root })
  const session = await store.create({ id: 'long' })
  const pieces = join(root, 'long', 'checkpoint')
  await session.close()
  writeFileSync(pieces, 'a file')
  const again = await store.open('long')
  await Promise.all(Array.from({ length: 1600 }, () => again.appendMessage('user', [text('here')])))
  await again.close()
  expect(readdirSync(pieces)).toEqual(['1.json'])
})
