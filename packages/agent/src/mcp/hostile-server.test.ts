import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { systemClock } from '@tapetree/session/util/wait'
import { callTool, testContext } from '../testing/tool-context.ts'
import type { ToolOutput } from '../tools/tool.ts'
import { startServers, type TestServers } from './testing/test-servers.ts'

test('a server that floods or talks nonsense is given up with a sentence', async () => {
  await using started = start(['flood', 'many-tools', 'nonsense'])
  const tooMuch = 'ended before it answered. It sent a message of more than 1000000 bytes.'
  expect((await started.reached('flood', 'failed')).reason).toBe(`flood ${tooMuch}`)
  expect((await started.reached('many-tools', 'failed')).reason).toBe(`many-tools ${tooMuch}`)
  expect((await started.reached('nonsense', 'failed')).reason).toMatch(
    /^nonsense answered with an error: Invalid result/,
  )
})

test('a server that only annoys is used for what it is good for', async () => {
  const modes = ['binary', 'wrong-ids', 'endless-pages', 'storm', 'questions']
  await using started = start(modes)
  for (const mode of modes) expect(await started.reached(mode, 'ready')).toEqual({ type: 'ready', problems: [] })
})

test('of a list that is long but not too long, the first tools are taken', async () => {
  await using started = start(['many-tools'], { maxMessageBytes: 16 * 1024 * 1024 })
  expect(await started.reached('many-tools', 'ready')).toEqual({
    type: 'ready',
    problems: ['There are more than 128 tools; the others are left out.'],
  })
  expect(started.servers.tools()).toHaveLength(128)
})

test('an answer goes to the call that it was meant for, and once', async () => {
  await using started = start(['wrong-ids'])
  expect(await call(started)).toEqual({ content: 'for you' })
})

test('content of no known kind is said to be there', async () => {
  await using started = start(['odd-content'])
  const unknown = '(Something was here that is neither text nor an image nor a resource.)'
  expect(await call(started)).toEqual({
    content: [
      unknown,
      unknown,
      unknown,
      '(Bytes, image/png, 3 of them, which cannot be shown.)',
      unknown,
      '[\n  1\n]',
    ].join('\n\n'),
  })
})

test('an error is a sentence in letters that can be seen, and not too many of them', async () => {
  await using started = start(['error'])
  const { content, isError } = await call(started)
  expect(isError).toBe(true)
  expect(content).toMatch(/^error answered with an error: bad x+…$/)
  expect(content.length).toBeLessThan(2100)
})

/** Servers that are called after how they behave. */
function start(modes: string[], limits: object = {}): TestServers {
  const file = fileURLToPath(new URL('testing/hostile-server.ts', import.meta.url))
  const settings = modes.map(
    (mode) => [mode, { type: 'stdio', command: process.execPath, args: [file, mode] }] as const,
  )
  const bounds = { maxRestarts: 0, maxMessageBytes: 1_000_000, ...limits }
  return startServers(Object.fromEntries(settings), { limits: bounds, clock: systemClock })
}

async function call(started: TestServers): Promise<ToolOutput> {
  await started.servers.settled()
  const [tool] = started.servers.tools()
  if (!tool) throw new Error('There is no tool.')
  return callTool(tool, {}, testContext({ cwd: '/' }))
}
