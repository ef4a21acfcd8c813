import { bashTool, Jobs } from '@tapetree/agent/tools'
import { script } from '@tapetree/agent/testing'
import { openFileStore } from '@tapetree/session/stores/file'
import { mkdtemp, readFile, realpath, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test, vi } from 'vitest'
import { TestApi } from '../testing/test-api.ts'

/** Allows for a busy machine. */
const patiently = { timeout: 20_000 }

test.each([
  ['active', undefined],
  ['archived', 'archive'],
  ['deleted', 'trash'],
] as const)('erasing a session that is %s stops its background commands', async (_, place) => {
  const folder = await realpath(await mkdtemp(join(tmpdir(), 'tapetree-erase-')))
  onTestFinished(() => rm(folder, { recursive: true }))
  const store = openFileStore({ folder: join(folder, 'sessions') })
  onTestFinished(() => store.close())
  const command = 'echo $$ > pid.part; mv pid.part pid; exec sleep 600'
  const api = new TestApi({
    store,
    script: script().toolCall('1', 'bash', { command, background: true }).step().text('It runs.'),
    agent: { tools: () => [bashTool({ jobs: new Jobs() })], cwd: folder },
  })
  onTestFinished(() => api.close())
  const path = await api.session({ prompt: 'go', cwd: folder })
  const id = path.split('/').at(-1) ?? ''
  const pid = Number(await vi.waitFor(() => readFile(join(folder, 'pid'), 'utf8'), patiently))
  onTestFinished(() => {
    if (isAlive(pid)) process.kill(pid, 'SIGKILL')
  })
  await vi.waitFor(async () => expect((await api.sessions.get(id)).driver.isBusy).toBe(false), patiently)
  if (place === 'archive') expect((await api.post(`${path}/archive`)).status).toBe(200)
  if (place === 'trash') expect((await api.delete(path)).status).toBe(204)
  expect(isAlive(pid)).toBe(true)

  expect((await api.delete(`${path}?erase=true`)).status).toBe(200)
  await vi.waitFor(() => expect(isAlive(pid)).toBe(false), patiently)
})

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}
