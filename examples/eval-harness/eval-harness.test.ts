import { startFakeProvider } from '@tapetree/agent/testing'
import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'
import { expect, onTestFinished, test } from 'vitest'

const program = join(import.meta.dirname, 'eval-harness.ts')

test('the eval harness is a program of at most 25 lines', async () => {
  const lines = (await readFile(program, 'utf8')).split('\n').filter((line) => line.trim() !== '')
  expect(lines.length).toBeLessThanOrEqual(25)
})

test('another model continues fifty forks, and nothing is measured twice', async () => {
  await using provider = await startFakeProvider()
  provider.script(({ model, body }) => {
    const text = JSON.stringify(body)
    const [, sample] = /Measure (sample-\d+)/.exec(text) ?? []
    if (!text.includes('tool_result')) {
      const chunks = [JSON.stringify({ sample })]
      return { type: 'answer', content: [{ type: 'tool_call', id: 'toolu_1', name: 'measure', chunks }] }
    }
    return { type: 'answer', content: [{ type: 'text', chunks: [`${sample} by ${model}`] }] }
  })
  const measured: string[] = []
  const lab = createServer((request, response) => {
    measured.push(request.url ?? '')
    response.end('7.2')
  }).listen(0, '127.0.0.1')
  await once(lab, 'listening')
  const folder = await mkdtemp(join(tmpdir(), 'eval-harness-'))
  onTestFinished(async () => {
    lab.closeAllConnections()
    lab.close()
    await rm(folder, { recursive: true, force: true })
  })
  const env = {
    ...process.env,
    ANTHROPIC_API_KEY: 'test-key',
    ANTHROPIC_BASE_URL: provider.baseUrl('anthropic'),
    LAB_URL: `http://127.0.0.1:${(lab.address() as AddressInfo).port}`,
    FOLDER: folder,
  }
  const { stdout } = await promisify(execFile)(process.execPath, ['-C', '@tapetree/source', program], {
    cwd: resolve(import.meta.dirname, '../..'),
    env,
  })
  const judged = stdout
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as { sample: string; first: string; other: string })
  expect(judged).toHaveLength(50)
  for (const { sample, first, other } of judged) {
    expect(first).toBe(`${sample} by claude-sonnet-5`)
    expect(other).toBe(`${sample} by claude-opus-5`)
  }
  expect(new Set(measured).size).toBe(50)
  expect(measured).toHaveLength(50)
})
