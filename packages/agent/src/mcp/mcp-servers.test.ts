import { expect, test } from 'vitest'
import { systemClock } from '@tapetree/session/util/wait'
import { callTool, testContext } from '../testing/tool-context.ts'
import { TestFolder } from '../testing/test-folder.ts'
import type { Tool } from '../tools/tool.ts'
import type { McpServers } from './mcp-servers.ts'
import { startServers, stdioServer } from './testing/test-servers.ts'

test('the tools of a program appear when it has listed them, and their results are converted', async () => {
  await using folder = await TestFolder.make()
  await using started = startServers({ test: stdioServer('serve') })
  expect(started.servers.tools()).toEqual([])
  await started.reached('test', 'ready')
  const names = started.servers.tools().map(({ name }) => name)
  expect(names).toContain('mcp__test__echo')
  const echo = toolOf(started.servers, 'echo')
  expect(echo).toMatchObject({ description: 'Says it again.', readOnly: false, replay: 'never' })
  expect(echo.check({ text: 'a' }, { cwd: '/' })).toMatchObject({
    access: [{ type: 'tool', name: 'mcp__test__echo', readOnly: false }],
  })
  const context = testContext({ cwd: folder.path })
  expect(await callTool(echo, { text: 'hello' }, context)).toEqual({ content: 'hello' })
  expect(await callTool(echo, { text: 1 }, context)).toMatchObject({
    isError: true,
    content: expect.stringContaining('The input of mcp__test__echo is not valid.') as string,
  })
  expect(await callTool(toolOf(started.servers, 'fail'), {}, context)).toEqual({
    content: 'The moon is down.',
    isError: true,
  })
  const shown = await callTool(toolOf(started.servers, 'show'), {}, context)
  expect(shown.content).toMatchObject([
    {
      text: {
        content:
          'Look:\n\n(Image 1: image/png, 70 bytes)\n\nResource a: file:///a.txt (text/plain)\n\nnote://1:\na note\n\n{\n  "shown": 4\n}',
      },
    },
    { type: 'image', image: { source: { type: 'blob', mediaType: 'image/png', size: 70 } } },
  ])
  const huge = await callTool(toolOf(started.servers, 'huge'), { bytes: 100_000 }, context)
  expect(huge.content).toMatch(/left out here\. The whole output is kept as blob/)
  expect([...context.blobs.values()].map(({ length }) => length)).toContain(100_000)
})

test('a server that fails, one that hangs and one that is missing are reported and delay no other', async () => {
  await using started = startServers(
    {
      exits: stdioServer('exit'),
      mute: { ...stdioServer('mute'), connectTimeoutMs: 300 },
      missing: { type: 'stdio', command: 'no-such-program-anywhere' },
      good: stdioServer('serve'),
    },
    { limits: { maxRestarts: 0 }, clock: systemClock },
  )
  const failed = await Promise.all(['exits', 'mute', 'missing'].map((name) => started.reached(name, 'failed')))
  expect(failed).toEqual([
    {
      type: 'failed',
      reason: 'exits ended before it answered. It ended (exit code 7). It said: no licence',
      isGivenUp: true,
    },
    { type: 'failed', reason: 'mute did not answer within 0.3 seconds.', isGivenUp: true },
    { type: 'failed', reason: 'There is no program no-such-program-anywhere.', isGivenUp: true },
  ])
  await started.servers.settled()
  expect(started.servers.tools().map(({ name }) => name)).toContain('mcp__good__echo')
})

function toolOf(servers: McpServers, name: string): Tool {
  const tool = servers.tools().find((each) => each.name.endsWith(`__${name}`))
  if (!tool) throw new Error(`There is no tool ${name}.`)
  return tool
}
