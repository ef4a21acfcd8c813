import { expect, test } from 'vitest'
import { systemClock } from '@tapetree/session/util/wait'
import { callTool, testContext } from '../testing/tool-context.ts'
import { TestFolder } from '../testing/test-folder.ts'
import type { Tool } from '../tools/tool.ts'
import type { McpServers } from './mcp-servers.ts'
import { memoryPins } from './testing/memory-stores.ts'
import { startServers, stdioServer } from './testing/test-servers.ts'

test('a changed list of tools is withheld until the user accepts what they were shown', async () => {
  await using folder = await TestFolder.make()
  const pins = memoryPins()
  await using started = startServers({ test: stdioServer('serve') }, { pins })
  await started.reached('test', 'ready')
  const context = testContext({ cwd: folder.path })
  const echo = toolOf(started.servers, 'echo')
  const comes = started.comes('test', 'changed')
  await callTool(toolOf(started.servers, 'grow'), {}, context)
  const { change } = await comes
  expect(change).toMatchObject({ isOriginChanged: false, added: ['extra'], removed: [], changed: [] })
  expect(started.servers.tools()).toEqual([])
  expect(await callTool(echo, { text: 'still?' }, context)).toEqual({
    content: 'test has changed; its tools are withheld until the user accepts them.',
    isError: true,
  })
  expect(await started.servers.accept('test', 'something else')).toBe(false)
  const ready = started.comes('test', 'ready')
  expect(await started.servers.accept('test', change.sha256)).toBe(true)
  await ready
  expect(await callTool(toolOf(started.servers, 'extra'), {}, context)).toEqual({ content: 'extra' })
  expect(Object.keys(pins.pins.get('test')?.tools ?? {})).toContain('extra')
})

test('a change that the user accepts in another process is accepted here too', async () => {
  await using folder = await TestFolder.make()
  const pins = memoryPins()
  // The pins are checked at once.
  const clock = {
    now: () => systemClock.now(),
    wait: (ms: number, signal: AbortSignal) => systemClock.wait(ms <= 5000 ? 10 : ms, signal),
  }
  await using started = startServers({ test: stdioServer('serve') }, { pins, clock })
  await started.reached('test', 'ready')
  const comes = started.comes('test', 'changed')
  await callTool(toolOf(started.servers, 'grow'), {}, testContext({ cwd: folder.path }))
  const { change, tools } = await comes
  expect(tools.map(({ name }) => name)).toContain('extra')
  const ready = started.comes('test', 'ready')
  await pins.set('test', change.pin)
  await ready
  expect(toolOf(started.servers, 'extra')).toBeDefined()
})

test('a server whose program was replaced is not started before the user accepts it', async () => {
  await using folder = await TestFolder.make()
  const pins = memoryPins()
  {
    await using first = startServers({ test: stdioServer('serve') }, { pins })
    await first.reached('test', 'ready')
  }
  const notes = folder.at('notes')
  await using second = startServers({ test: stdioServer('serve', notes, 'more') }, { pins })
  const { change } = await second.reached('test', 'changed')
  expect(change).toMatchObject({ isOriginChanged: true, added: [], removed: [], changed: [] })
  await expect(folder.read('notes')).rejects.toThrow('ENOENT')
  const changed = second.comes('test', 'changed')
  await second.servers.accept('test', change.sha256)
  const { change: tools } = await changed
  expect(tools).toMatchObject({ isOriginChanged: false, added: ['more'], removed: [], changed: [] })
})

test('if first contact requires acceptance, a server is not started before the user accepts it', async () => {
  await using folder = await TestFolder.make()
  const settings = { test: stdioServer('serve', folder.at('notes')) }
  await using started = startServers(settings, { firstContact: 'ask' })
  const { change } = await started.reached('test', 'changed')
  await expect(folder.read('notes')).rejects.toThrow('ENOENT')
  const ready = started.comes('test', 'ready')
  expect(await started.servers.accept('test', change.sha256)).toBe(true)
  await ready
  expect(started.servers.tools()).not.toEqual([])
})

test('a server that fails repeatedly is given up, and started again on request of the user', async () => {
  await using folder = await TestFolder.make()
  await using started = startServers({ test: stdioServer('exit', folder.at('notes')) }, { limits: { maxRestarts: 1 } })
  const isGivenUp = async (): Promise<void> => {
    for (;;) if ((await started.comes('test', 'failed')).isGivenUp) return
  }
  await isGivenUp()
  expect((await folder.read('notes')).split('\n')).toHaveLength(2 + 1)
  const again = isGivenUp()
  await started.servers.restart('test')
  await again
  expect((await folder.read('notes')).split('\n')).toHaveLength(4 + 1)
})

function toolOf(servers: McpServers, name: string): Tool {
  const tool = servers.tools().find((each) => each.name.endsWith(`__${name}`))
  if (!tool) throw new Error(`There is no tool ${name}.`)
  return tool
}
