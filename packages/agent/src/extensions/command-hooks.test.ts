import { text, type Message } from '@tapetree/session'
import { describe, expect, test, vi } from 'vitest'
import { listProcesses } from '../tools/commands/process-table.ts'
import type { CommandHooks } from './command-hooks.ts'
import type { Extension } from './extension.ts'
import { openHost, type OpenedHost } from './testing/open-host.ts'

/** Enough for a busy machine. */
const patient = { timeout: 20_000, interval: 10 }
const call = { id: 'a', name: 'write', input: { path: 'x' } }

function open(
  commandHooks: CommandHooks,
  extensions: { name: string; extension: Extension }[] = [],
): Promise<OpenedHost> {
  return openHost({ commandHooks, extensions })
}

describe('a hook that is a command', () => {
  test('reads the event as JSON, in the working folder', async () => {
    await using opened = await open({
      beforeAgentStart: [{ command: 'cat > start.json; pwd -P > place' }],
      toolResult: [{ command: 'cat > result.json' }],
      context: [{ command: 'cat > context.json' }],
    })
    const { hooks, folder } = opened
    const place = { session_id: 'session-1', cwd: folder.path }
    await hooks.beforeAgentStart({ runId: 'r', prompt: 'go', systemPrompt: 'You are.' })
    expect(JSON.parse(await folder.read('start.json'))).toEqual({
      hook: 'before_agent_start',
      run_id: 'r',
      prompt: 'go',
      system_prompt: 'You are.',
      ...place,
    })
    expect((await folder.read('place')).trim()).toBe(folder.path)
    await hooks.toolResult(call, { content: [text('done')] })
    expect(JSON.parse(await folder.read('result.json'))).toEqual({
      hook: 'tool_result',
      tool_use_id: 'a',
      tool_name: 'write',
      tool_input: { path: 'x' },
      content: [{ type: 'text', text: { content: 'done' } }],
      is_error: false,
      ...place,
    })
    const messages: Message[] = [{ role: 'assistant', content: [text('hm')], stopReason: 'stop' }]
    expect(await hooks.context(messages)).toEqual({ messages, changedBy: [] })
    expect(JSON.parse(await folder.read('context.json'))).toEqual({
      hook: 'context',
      messages: [{ role: 'assistant', content: [{ type: 'text', text: { content: 'hm' } }], stop_reason: 'stop' }],
      ...place,
    })
    expect(opened.told()).toEqual([])
  })

  test('blocks a call with exit code 2, with the reason from stderr', async () => {
    await using opened = await open({ toolCall: [{ command: 'echo "not in this folder" >&2; exit 2' }] })
    expect(await opened.hooks.toolCall(call)).toBe('not in this folder')
    expect(opened.told()).toEqual([])
  })

  test('cancels a compaction with exit code 2; other events cannot be blocked', async () => {
    await using opened = await open({ beforeCompact: [{ command: 'exit 2' }], turnEnd: [{ command: 'exit 2' }] })
    expect(await opened.hooks.beforeCompact({ reason: 'manual' })).toEqual({ cancelledBy: 'hook beforeCompact 1' })
    await opened.hooks.turnEnd({ runId: 'r', turn: 1, systemPrompt: '' })
    expect(opened.told()).toEqual([
      'hook turnEnd 1 (turnEnd): It ended with exit code 2, but this event cannot be blocked.',
    ])
  })

  test('changes results with JSON on stdout', async () => {
    const print = (value: unknown): { command: string }[] => [{ command: `printf '%s' '${JSON.stringify(value)}'` }]
    await using opened = await open({
      beforeAgentStart: print({ prompt: 'Stop.', system_prompt: 'Be brief.', message: 'It rains.' }),
      toolCall: print({ input: { path: 'y' } }),
      toolResult: print({ content: [{ type: 'text', text: { content: 'short' } }], is_error: true }),
      context: print({
        messages: [{ role: 'user', content: [{ type: 'text', text: { content: 'only this' } }], run_id: 'r' }],
      }),
      beforeCompact: print({ instructions: 'Keep names.' }),
      turnStart: print({}),
      turnEnd: print({ system_prompt: 'Slowly.', message: 'It is late.' }),
    })
    const { hooks } = opened
    expect(await hooks.beforeAgentStart({ runId: 'r', prompt: 'Go.', systemPrompt: 's' })).toEqual({
      systemPrompt: 'Be brief.',
      messages: ['It rains.'],
      prompt: { text: 'Stop.', changedBy: ['hook beforeAgentStart 1'] },
    })
    expect(await hooks.toolCall(call)).toEqual({ ...call, input: { path: 'y' } })
    expect(await hooks.toolResult(call, { content: 'long' })).toEqual({ content: [text('short')], isError: true })
    expect(await hooks.context([])).toEqual({
      messages: [{ role: 'user', content: [text('only this')], runId: 'r' }],
      changedBy: ['hook context 1'],
    })
    expect(await hooks.beforeCompact({ reason: 'manual' })).toEqual({ instructions: 'Keep names.' })
    expect(await hooks.turnStart({ runId: 'r', turn: 1, systemPrompt: '' })).toEqual({ messages: [] })
    expect(await hooks.turnEnd({ runId: 'r', turn: 1, systemPrompt: '' })).toEqual({
      systemPrompt: 'Slowly.',
      messages: ['It is late.'],
    })
    expect(opened.told()).toEqual([])
  })

  test('that ends with another exit code is reported and ignored each time, but not switched off', async () => {
    await using opened = await open({ toolCall: [{ command: 'echo oh >&2; exit 1' }] })
    for (let i = 0; i < 4; i++) expect(await opened.hooks.toolCall(call)).toBe(call)
    expect(opened.told()).toEqual(
      Array(4).fill('hook toolCall 1 (toolCall): It ended with exit code 1 and was ignored. It said: oh'),
    )
  })

  test('may print any text, but not a malformed object', async () => {
    await using opened = await open({
      toolCall: [
        { command: 'echo all good' },
        { command: `echo '{ "input": '` },
        { command: `echo '{ "inputs": {} }'` },
      ],
    })
    expect(await opened.hooks.toolCall(call)).toBe(call)
    expect(opened.problems).toMatchObject([
      { extension: 'hook toolCall 2', message: expect.stringContaining('Its output is not valid JSON') },
      { extension: 'hook toolCall 3', message: expect.stringContaining('Its result is not valid') },
    ])
  })

  test('runs only for the tools that its matcher names', async () => {
    await using opened = await open({ toolCall: [{ matcher: 'edit|mcp__*', command: 'echo no >&2; exit 2' }] })
    const answers = ['edit', 'editor', 'mcp__a__b', 'write'].map((name) => opened.hooks.toolCall({ ...call, name }))
    expect((await Promise.all(answers)).map((answer) => typeof answer)).toEqual([
      'string',
      'object',
      'string',
      'object',
    ])
  })

  test('decides last, after the extensions', async () => {
    const change: Extension = (api) => api.on('toolCall', () => ({ input: { path: 'changed' } }))
    await using opened = await open(
      { toolCall: [{ command: `grep -q '"path":"changed"' && { echo seen >&2; exit 2; }` }] },
      [{ name: 'change', extension: change }],
    )
    expect(await opened.hooks.toolCall(call)).toBe('seen')
  })

  test('does not get the keys of the user', async () => {
    process.env['HOOK_TEST_API_KEY'] = 'planted'
    await using opened = await open({ turnStart: [{ command: 'env > seen' }] })
    delete process.env['HOOK_TEST_API_KEY']
    await opened.hooks.turnStart({ runId: 'r', turn: 1, systemPrompt: '' })
    const seen = await opened.folder.read('seen')
    expect([seen.includes('PATH='), seen.includes('HOOK_TEST_API_KEY')]).toEqual([true, false])
  })

  test('that does not read its input blocks nothing', async () => {
    await using opened = await open({ context: [{ command: 'exec true' }] })
    const messages: Message[] = [{ role: 'user', content: [text('x'.repeat(1_000_000))] }]
    expect(await opened.hooks.context(messages)).toEqual({ messages, changedBy: [] })
    expect(opened.told()).toEqual([])
  })
})

describe('no process of a command is left', () => {
  const marker = (): string => `${process.pid}${Math.floor(performance.now() * 1000)}`
  const isAlive = (pid: string): boolean =>
    listProcesses().some((entry) => entry.pid === Number(pid) && !entry.isZombie)

  test('after its timeout: the whole process group is stopped, and three timeouts switch it off', async () => {
    const command = `sleep 9${marker()} & echo $! > child; wait`
    await using opened = await open({ turnStart: [{ command, timeoutMs: 3000 }] })
    for (let i = 0; i < 3; i++) {
      const { clock, folder } = opened
      const starting = opened.hooks.turnStart({ runId: 'r', turn: 1, systemPrompt: '' })
      const child = await vi.waitFor(async () => {
        const written = await folder.read('child')
        expect(written).toMatch(/\n$/)
        return written.trim()
      }, patient)
      expect(await clock.skip()).toBe(3000)
      await starting
      expect(isAlive(child)).toBe(false)
      await folder.write('child', '')
    }
    expect(opened.told()).toEqual([
      ...Array(3).fill('hook turnStart 1 (turnStart): It took longer than 3 s.'),
      'hook turnStart 1: It was switched off, because it failed 3 times.',
    ])
  })

  test('after it ended with a background process, or when the run is stopped', async () => {
    const command = `sleep 9${marker()} >/dev/null 2>&1 & echo $! > left`
    await using opened = await open({
      turnStart: [{ command }],
      turnEnd: [{ command: `echo $$ > busy; sleep 9${marker()}` }],
    })
    await opened.hooks.turnStart({ runId: 'r', turn: 1, systemPrompt: '' })
    expect(isAlive(await opened.folder.read('left'))).toBe(false)
    const stop = new AbortController()
    const ending = opened.hooks.turnEnd({ runId: 'r', turn: 1, systemPrompt: '' }, stop.signal)
    const busy = await vi.waitFor(async () => {
      const written = await opened.folder.read('busy')
      expect(written).toMatch(/\n$/)
      return written
    }, patient)
    stop.abort()
    await ending
    await vi.waitFor(() => expect(isAlive(busy)).toBe(false), patient)
    expect(opened.told()).toEqual([])
  })
})
