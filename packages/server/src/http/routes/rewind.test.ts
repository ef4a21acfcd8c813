import { newestUserMessage, RecordedFolder, script, twoChanges, type ScriptBuilder } from '@tapetree/agent/testing'
import { afterEach, expect, test, vi } from 'vitest'
import { TestApi } from '../testing/test-api.ts'

const cleanUps: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp()
})

interface Stage {
  api: TestApi
  folder: RecordedFolder
  /** Of the session. */
  path: string
  prompt: (text: string) => Promise<string>
  leafId: () => Promise<string>
}

/** A session whose agent can write files. */
async function stage(said: ScriptBuilder, files: Record<string, string>): Promise<Stage> {
  const folder = await RecordedFolder.make(files)
  cleanUps.push(() => folder[Symbol.asyncDispose]())
  const parts = { snapshotsFolder: () => folder.snapshotsFolder }
  const api = new TestApi({ script: said, agent: folder.agent, parts })
  cleanUps.push(async () => {
    await api.close()
    expect(api.faults).toEqual([])
  })
  const path = await api.session({ cwd: folder.path })
  const { session, driver } = await api.sessions.get(path.slice(14))
  const prompt = async (text: string): Promise<string> => {
    await api.post(`${path}/prompt`, { text })
    await vi.waitFor(() => expect(driver.isBusy).toBe(false))
    return newestUserMessage(session)
  }
  const leafId = async (): Promise<string> => session.leafId ?? ''
  return { api, folder, path, prompt, leafId }
}

test('two entries are compared with their files, for callers that may drive the session', async () => {
  const { api, path, prompt, leafId } = await stage(twoChanges(), { 'a.txt': 'zero\n' })
  const first = await prompt('one')
  await prompt('two')
  const compare = `${path}/compare?left=${first}&right=${await leafId()}&diff=true`
  expect(await (await api.get(compare)).json()).toMatchObject({
    common_ancestor: first,
    left: { entry_count: 0, checks: [] },
    right: { message_count: 7 },
    files: {
      changed_count: 1,
      changes: [{ path: 'a.txt', change: 'changed', added_lines: 2, removed_lines: 1, patch: expect.any(String) }],
    },
  })
  expect(await (await api.get(compare, { role: 'view' })).json()).not.toHaveProperty('files')
})

test('a session goes back to a message with its files, once for each idempotency key, and comes again', async () => {
  const { api, path, prompt, leafId, folder } = await stage(twoChanges(), { 'a.txt': 'zero\n' })
  await prompt('one')
  const second = await prompt('two')
  const end = await leafId()
  const preview = await api.post(`${path}/rewind`, { entry_id: second, dry_run: true })
  expect(await preview.json()).toMatchObject({
    text: 'two',
    files: { changes: [{ path: 'a.txt', change: 'changed', action: 'restored' }], skipped: [], kept_copies: [] },
  })
  expect([await folder.read('a.txt'), await leafId()]).toEqual(['one\ntwo\n', end])
  const send = (): Promise<Response> =>
    api.post(`${path}/rewind`, { entry_id: second }, { headers: { 'idempotency-key': 'k1' } })
  const first = await send()
  expect([first.status, await folder.read('a.txt')]).toEqual([200, 'one\n'])
  await folder.write('a.txt', 'mine\n')
  expect(await (await send()).json()).toEqual(await first.json())
  expect(await folder.read('a.txt')).toBe('mine\n')
  const redone = await api.post(`${path}/rewind`, { choices: [{ path: 'a.txt', choice: 'take' }] })
  expect(await redone.json()).toMatchObject({ leaf_id: end })
  expect([await folder.read('a.txt'), await leafId()]).toEqual(['one\ntwo\n', end])
})

test('a rewind is refused without the role, with nothing to take back, and for files that were not recorded', async () => {
  const { api, path, prompt } = await stage(script().text('Hello.'), {})
  const first = await prompt('one')
  expect((await api.post(`${path}/rewind`, { entry_id: first }, { role: 'approve' })).status).toBe(403)
  const nothing = await api.post(`${path}/rewind`, {})
  expect([nothing.status, await nothing.json()]).toMatchObject([409, { type: 'nothing-to-undo' }])
  const unknown = await api.post(`${path}/rewind`, { entry_id: 'none' })
  expect([unknown.status, await unknown.json()]).toMatchObject([404, { type: 'entry-not-found' }])
  const interrupted = await api.post(`${path}/rewind`, { interrupted: 'finish' })
  expect([interrupted.status, await interrupted.json()]).toMatchObject([409, { type: 'nothing-to-undo' }])
})
