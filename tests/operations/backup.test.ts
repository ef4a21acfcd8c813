import { execFile } from 'node:child_process'
import { cp, mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect, onTestFinished, test } from 'vitest'
import type { FakeAnswer } from '@tapetree/agent/testing'
import { openFileStore } from '@tapetree/session/stores/file'
import { fakeHome, type FakeHome } from '../../packages/cli/src/testing/fake-home.ts'
import { call, say, sayAndWait } from '../peers/answers.ts'
import { sessionsFolder, untilWritten } from '../peers/session-files.ts'
import { serve, untilLine } from './served.ts'

const script = fileURLToPath(new URL('../../deploy/backup.sh', import.meta.url))

async function home(): Promise<FakeHome> {
  const made = await fakeHome({ settings: { permissions: { mode: 'auto' } } })
  onTestFinished(() => made[Symbol.asyncDispose]())
  return made
}

async function backUp(from: FakeHome): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'tapetree-backup-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  await promisify(execFile)('sh', [script, sessionsFolder(from), folder])
  return folder
}

/** Contents of files that lines name, and that the backup does not have. */
async function missingBlobs(folder: string, id: string, log: string): Promise<string[]> {
  await using store = openFileStore({ folder })
  await using session = await store.open(id, { readOnly: true })
  const named = Array.from(log.matchAll(/"sha256_after":"([\da-f]{64})"/g), ([, sha256 = '']) => sha256)
  const found = await Promise.all(named.map((sha256) => session.getBlob(sha256).catch(() => undefined)))
  return named.filter((_sha256, index) => found[index] === undefined)
}

test('a backup of a session that streams is a prefix of it, and continues in an empty home', async () => {
  const first = await home()
  // The content of changed files is stored in blobs.
  const write = (id: string): FakeAnswer =>
    call({ id, name: 'write', input: { path: `${id}.txt`, content: `${id}\n`.repeat(5000) } })
  first.provider.script(
    write('call-1'),
    sayAndWait(['Half ', 'an ', 'answer '], 'one', ['and the rest.']),
    write('call-2'),
    sayAndWait(['More '], 'two', ['words.']),
  )
  const served = await serve(first)
  const { id } = (await served.ask('/api/sessions', { cwd: first.cwd, prompt: 'Count' })) as { id: string }
  const backups: string[] = []
  const takeOne = async (): Promise<void> => void backups.push(await backUp(first))
  await takeOne()
  await untilLine(served, id, { type: 'tool_start' })
  await takeOne()
  await untilWritten(first, 'draft.jsonl', 'Half')
  await takeOne()
  first.provider.release('one')
  const ended = await untilLine(served, id, { type: 'run_end' })
  await served.ask(`/api/sessions/${id}/prompt`, { text: 'Again' })
  // Many while lines are written.
  for (let count = 0; count < 5; count++) await takeOne()
  await untilWritten(first, 'draft.jsonl', 'More')
  await takeOne()
  const midStream = backups.at(-1) ?? ''
  first.provider.release('two')
  await untilLine(served, id, { type: 'run_end', after: ended })
  expect((await served.stop()).code).toBe(0)

  const whole = await readFile(join(sessionsFolder(first), id, 'events.jsonl'), 'utf8')
  for (const folder of backups) {
    const copied = await readFile(join(folder, id, 'events.jsonl'), 'utf8')
    expect(whole.startsWith(copied)).toBe(true)
    expect(await missingBlobs(folder, id, copied)).toEqual([])
    await using store = openFileStore({ folder })
    // The copy may end within a line, which opening it repairs.
    expect(await store.verify(id)).toMatchObject({ damage: [], lostLines: 0, missingBlobs: [] })
  }
  // A copy of the blobs before the log lacks some, and the check above finds it.
  expect(await missingBlobs(backups[0] ?? '', id, whole)).toHaveLength(2)

  const second = await home()
  await cp(midStream, sessionsFolder(second), { recursive: true })
  second.provider.script(say('The run goes on.'), say('And so does the session.'))
  const restored = await serve(second, '--root', first.cwd)
  const resumed = await untilLine(restored, id, { type: 'run_end', after: ended })
  await restored.ask(`/api/sessions/${id}/prompt`, { text: 'Go on' })
  await untilLine(restored, id, { type: 'run_end', after: resumed })
  expect((await restored.stop()).code).toBe(0)
  const continued = await readFile(join(sessionsFolder(second), id, 'events.jsonl'), 'utf8')
  expect(continued.startsWith(await readFile(join(midStream, id, 'events.jsonl'), 'utf8'))).toBe(true)
  expect(continued).toContain('And so does the session.')
})

test('a plain copy of the data folder of a stopped server is a backup', async () => {
  const first = await home()
  first.provider.script(say('Hello.'))
  const served = await serve(first)
  const { id } = (await served.ask('/api/sessions', { cwd: first.cwd, prompt: 'Hi' })) as { id: string }
  await untilLine(served, id, { type: 'run_end' })
  expect((await served.stop()).code).toBe(0)

  const second = await home()
  await cp(sessionsFolder(first), sessionsFolder(second), { recursive: true })
  second.provider.script(say('Hello again.'))
  const restored = await serve(second, '--root', first.cwd)
  expect(await restored.ask('/api/sessions')).toMatchObject({ sessions: [{ id, status: 'idle' }] })
  const { seq } = (await restored.ask(`/api/sessions/${id}`))['head'] as { seq: number }
  await restored.ask(`/api/sessions/${id}/prompt`, { text: 'Go on' })
  await untilLine(restored, id, { type: 'run_end', after: seq })
  expect((await restored.stop()).code).toBe(0)
})
