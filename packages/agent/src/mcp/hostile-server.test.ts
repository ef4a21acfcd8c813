import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { systemClock } from '@tapetree/session/util/wait'
import { callTool, testContext } from '../testing/tool-context.ts'
import type { ToolOutput } from '../tools/tool.ts'
import { startServers, type TestServers } from './testing/test-servers.ts'

test('a server that floods or sends malformed messages is disconnected with an error', async () => {
  await using started = start(['flood', 'many-tools', 'nonsense'])
  const tooMuch = 'ended before it answered. It sent a message of more than 1000000 bytes.'
  expect((await started.reached('flood', 'failed')).reason).toBe(`flood ${tooMuch}`)
  expect((await started.reached('many-tools', 'failed')).reason).toBe(`many-tools ${tooMuch}`)
  expect((await started.reached('nonsense', 'failed')).reason).toMatch(
    /^nonsense answered with an error: Invalid result/,
  )
})

test('a server that only annoys is still usable', async () => {
  const modes = ['binary', 'wrong-ids', 'endless-pages', 'storm', 'questions']
  await using started = start(modes)
  for (const mode of modes) expect(await started.reached(mode, 'ready')).toEqual({ type: 'ready', problems: [] })
})

test('of a list that is long but not too long, the first tools are used', async () => {
  await using started = start(['many-tools'], { maxMessageBytes: 16 * 1024 * 1024 })
  expect(await started.reached('many-tools', 'ready')).toEqual({
    type: 'ready',
    problems: ['There are more than 128 tools; the others are left out.'],
  })
  expect(started.servers.tools()).toHaveLength(128)
})

test('an answer goes to its call, and only once', async () => {
  await using started = start(['wrong-ids'])
  expect(await call(started)).toEqual({ content: 'for you' })
})

test('content of an unknown kind is reported', async () => {
  await using started = start(['odd-content'])
  const unknown = '(Content of an unknown kind is not shown.)'
  expect(await call(started)).toEqual({
    content: [
      unknown,
      unknown,
      unknown,
      '(3 bytes of type image/png, which cannot be shown.)',
      unknown,
      '[\n  1\n]',
    ].join('\n\n'),
  })
})

test('an error is a short sentence of visible characters', async () => {
  await using started = start(['error'])
  const { content, isError } = await call(started)
  expect(isError).toBe(true)
  expect(content).toMatch(/^error answered with an error: bad x+…$/)
  expect(content.length).toBeLessThan(2100)
})

/** Servers that are named after their behavior. */
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
