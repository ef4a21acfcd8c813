import { writeFile } from 'node:fs/promises'
import { expect, test, vi } from 'vitest'
import { callTool, testContext } from '../testing/tool-context.ts'
import { TestFolder } from '../testing/test-folder.ts'
import type { Tool, ToolOutput } from '../tools/tool.ts'
import { readProcess } from '../tools/commands/process-table.ts'
import type { McpServers } from './mcp-servers.ts'
import { startServers, stdioServer } from './testing/test-servers.ts'

test('a program gets the allowed variables and its arguments unchanged, without a shell', async () => {
  await using folder = await TestFolder.make()
  const marker = folder.at('touched')
  const settings = stdioServer('serve', '/dev/null', `; touch ${marker}`, `$(touch ${marker})`) as { args: string[] }
  const ours = {
    PATH: process.env['PATH'],
    HOME: '/home/user',
    LANG: 'C',
    ANTHROPIC_API_KEY: ['sk', 'ant', 'canary'].join('-'),
    SSH_AUTH_SOCK: '/run/agent',
    WANTED: 'yes',
    UNWANTED: 'no',
  }
  await using started = startServers(
    { test: { ...settings, env: { pass: ['WANTED'], set: { FIXED: 'x' } }, cwd: folder.path } },
    { environment: ours },
  )
  await started.reached('test', 'ready')
  const context = testContext({ cwd: folder.path })
  const seen = await callTool(toolOf(started.servers, 'environment'), {}, context)
  const { TAPETREE_COMMAND: _, ...environment } = JSON.parse(seen.content as string) as Record<string, string>
  expect(environment).toEqual({
    PATH: process.env['PATH'],
    HOME: '/home/user',
    LANG: 'C',
    WANTED: 'yes',
    FIXED: 'x',
  })
  const given = await callTool(toolOf(started.servers, 'arguments'), {}, context)
  expect(JSON.parse(given.content as string)).toEqual(settings.args.slice(1))
  await expect(folder.read('touched')).rejects.toThrow('ENOENT')
})

test('a program that crashes during a call is reported with its last output and restarted', async () => {
  await using folder = await TestFolder.make()
  await using started = startServers({ test: stdioServer('serve') })
  await started.reached('test', 'ready')
  const context = testContext({ cwd: folder.path })
  const failed = started.comes('test', 'failed')
  expect(await callTool(toolOf(started.servers, 'crash'), {}, context)).toEqual({
    content:
      'test ended before it answered; the call may have taken effect. It ended (exit code 3). It said: out of paper',
    isError: true,
  })
  expect(await failed).toEqual({
    type: 'failed',
    reason: 'test is gone. It ended (exit code 3). It said: out of paper',
    isGivenUp: false,
  })
  expect(await callTool(toolOf(started.servers, 'echo'), { text: 'back' }, context)).toEqual({ content: 'back' })
})

test('a stopped call is cancelled at the server', async () => {
  await using folder = await TestFolder.make()
  const notes = folder.at('notes')
  await writeFile(notes, '')
  await using started = startServers({ test: stdioServer('serve', notes) })
  await started.reached('test', 'ready')
  const stop = new AbortController()
  const call = callTool(toolOf(started.servers, 'hang'), {}, testContext({ cwd: folder.path, signal: stop.signal }))
  await vi.waitFor(async () => expect(await folder.read('notes')).toContain('hanging\n'), 20_000)
  stop.abort()
  await expect(call).rejects.toThrow('aborted')
  await vi.waitFor(async () => expect(await folder.read('notes')).toContain('hanging\ncancelled\n'), 20_000)
})

test('closing a server leaves none of its processes', async () => {
  await using folder = await TestFolder.make()
  await using started = startServers({ test: stdioServer('serve'), mute: stdioServer('mute', folder.at('mute')) })
  await started.reached('test', 'ready')
  await vi.waitFor(async () => expect(await folder.read('mute')).toContain('\n'), 20_000)
  const spawned = await callTool(toolOf(started.servers, 'spawn'), {}, testContext({ cwd: folder.path }))
  const mute = (await folder.read('mute')).replace('mute ', '').trim()
  const pids = [mute, ...textOf(spawned).split(' ')].map(Number)
  const isRunning = (pid: number): boolean => readProcess(pid)?.isZombie === false
  expect(pids.map(isRunning)).toEqual([true, true, true, true])
  await started.servers.close()
  expect(pids.map(isRunning)).toEqual([false, false, false, false])
  expect(started.servers.states().map(({ state }) => state.type)).toEqual(['closed', 'closed'])
  expect(started.servers.tools()).toEqual([])
})

function toolOf(servers: McpServers, name: string): Tool {
  const tool = servers.tools().find((each) => each.name.endsWith(`__${name}`))
  if (!tool) throw new Error(`There is no tool ${name}.`)
  return tool
}

function textOf({ content }: ToolOutput): string {
  return typeof content === 'string' ? content : ''
}
