import { describe, expect, test, vi } from 'vitest'
import { systemClock } from '@tapetree/session/util/wait'
import { testContext, callTool } from '../testing/tool-context.ts'
import type { Extension, HookName } from './extension.ts'
import { openHost, type OpenedHost } from './testing/open-host.ts'

const turn = { runId: 'r', turn: 1, systemPrompt: '' }

/** Lets the time limits of busy handlers expire. */
async function letTimePass({ clock }: OpenedHost, work: Promise<unknown>): Promise<void> {
  // It may have to be restarted first.
  await vi.waitFor(() => expect(clock.waits).toEqual([5000]), { timeout: 20_000, interval: 5 })
  clock.advance(5000)
  await work
}

describe('an extension that fails is reported, and the session continues', () => {
  test('when a handler throws or rejects', async () => {
    await using opened = await openHost({
      files: {
        'bad.ts': `
          export default (api: any) => {
            api.on('turnStart', () => { throw new Error('no luck') })
            api.on('turnEnd', async () => { throw 'not even an error' })
          }`,
      },
    })
    await opened.hooks.turnStart(turn)
    await opened.hooks.turnEnd(turn)
    expect(opened.told()).toEqual(['bad (turnStart): no luck', 'bad (turnEnd): not even an error'])
  })

  test('when a handler never settles', async () => {
    await using opened = await openHost({
      files: { 'hang.js': `export default (api) => api.on('turnStart', () => new Promise(() => {}))` },
    })
    await letTimePass(opened, opened.hooks.turnStart(turn))
    expect(opened.told()).toEqual(['hang (turnStart): It took longer than 5 s.'])
  })

  test('when a handler loops; other extensions are called as usual, and it is restarted the next time', async () => {
    await using opened = await openHost({
      files: {
        'loop.ts': `
          let calls = 0
          export default (api: any) => {
            api.on('turnStart', () => { for (;;); })
            api.on('toolCall', () => ({ block: 'call ' + ++calls }))
          }`,
        'good.ts': `export default (api: any) => api.on('turnStart', () => api.appendEntry('good', {}))`,
      },
    })
    const call = { id: 'a', name: 'b', input: {} }
    expect(await opened.hooks.toolCall(call)).toBe('call 1')
    expect(await opened.hooks.toolCall(call)).toBe('call 2')
    await letTimePass(opened, opened.hooks.turnStart(turn))
    expect(opened.told()).toEqual(['loop (turnStart): It took longer than 5 s.'])
    expect(opened.session.drafts).toEqual([{ type: 'custom', custom: { customType: 'good', data: {} } }])
    expect(await opened.hooks.toolCall(call)).toBe('call 1')
  })

  test('when it ends its thread, throws outside of a call, or exhausts its memory', async () => {
    await using opened = await openHost({
      files: {
        'exit.ts': `export default (api: any) => api.on('turnStart', () => process.exit(3))`,
        'late.ts': `export default (api: any) => api.on('turnStart', () => new Promise(() => {
          setTimeout(() => { throw new Error('too late') })
        }))`,
        'eat.ts': `export default (api: any) => api.on('turnStart', () => {
          const eaten = []
          for (;;) eaten.push(new Array(100_000).fill({ more: eaten.length }))
        })`,
      },
      limits: { memoryMb: 24 },
    })
    await opened.hooks.turnStart(turn)
    expect(opened.told()).toEqual([
      'exit (turnStart): It ended its thread.',
      'late (turnStart): It threw outside of a call: too late.',
      'eat (turnStart): It used more than 24 MB.',
    ])
  })

  test('when it posts malformed messages to the main thread', async () => {
    await using opened = await openHost({
      files: {
        'posts.ts': `
          import { parentPort } from 'node:worker_threads'
          export default (api: any) => {
            parentPort!.on('message', ({ call }) => {
              const result = { type: 'result', id: call?.id, json: '{' }
              for (const message of [null, 'text', [], {}, { type: 'request' }, result]) parentPort!.postMessage(message)
            })
            api.on('turnStart', () => new Promise(() => {}))
          }`,
      },
    })
    await opened.hooks.turnStart(turn)
    expect(opened.told()).toEqual(['posts (turnStart): Its result is not JSON.'])
  })

  test.for<[HookName, string, unknown]>([
    ['toolCall', 'a number', { block: 7 }],
    ['toolCall', 'two things at once', { block: 'no', input: {} }],
    ['toolCall', 'words', 'no'],
    ['toolCall', 'what JSON cannot say', { input: { big: 1n } }],
    ['toolResult', 'unknown content', { content: [{ type: 'video' }] }],
    ['toolResult', 'a call', { content: [{ type: 'tool_use', toolUse: { id: 'a', name: 'b', input: {} } }] }],
    ['context', 'an unknown role', { messages: [{ role: 'unknown', content: [] }] }],
    ['context', 'a list', []],
    ['beforeAgentStart', 'an unknown member', { promt: 'typo' }],
    ['beforeCompact', 'words for yes', { cancel: 'yes' }],
    ['turnStart', 'a result for an event without one', { block: 'no' }],
    ['turnEnd', 'a function', () => 1],
  ])('when %s answers with %s', async ([hook, , answer]) => {
    const extension: Extension = (api) => api.on(hook, () => answer as never)
    await using opened = await openHost({ extensions: [{ name: 'odd', extension }] })
    const { hooks } = opened
    const call = { id: 'a', name: 'b', input: {} }
    const output = { content: 'fine' }
    await Promise.all([
      expect(hooks.toolCall(call)).resolves.toBe(call),
      expect(hooks.toolResult(call, output)).resolves.toBe(output),
      expect(hooks.context([])).resolves.toEqual({ messages: [], changedBy: [] }),
      expect(hooks.beforeAgentStart({ runId: 'r', prompt: 'p', systemPrompt: 's' })).resolves.toEqual({
        systemPrompt: 's',
        messages: [],
      }),
      expect(hooks.beforeCompact({ reason: 'manual' })).resolves.toEqual({}),
      hooks.turnStart(turn),
      hooks.turnEnd(turn),
    ])
    expect(opened.problems).toMatchObject([{ extension: 'odd', hook }])
  })
})

describe('an extension that does not load is reported, and the others are loaded', () => {
  test('for any reason', async () => {
    const tool = `description: 'c', inputSchema: { type: 'object' }`
    const bad: [source: string, words: RegExp][] = [
      [`export default () => { throw new Error('not today') }`, /^It could not be loaded: not today$/],
      [`export default (`, /could not be loaded: \/.*\.ts could not be loaded: /],
      [`enum A { B }\nexport default () => A.B`, /uses TypeScript that type stripping does not support/],
      [`export const extension = () => {}`, /has no function as its default export\.$/],
      [`import 'no-such-package'\nexport default () => {}`, /no-such-package/],
      [`export default (api: any) => api.on('onTuesday', () => {})`, /Its registrations are not valid/],
      [`export default (api: any) => api.registerTool({ name: 'a b', ${tool}, run() {} })`, /at most 64 letters/],
      [`export default (api: any) => api.registerTool({ name: 'a', ${tool} })`, /The tool a has no function run\./],
      [
        `export default (api: any) => api.registerTool({ name: 'a', ${tool}, more() {}, run() {} })`,
        /could not be cloned/,
      ],
      [
        `export default (api: any) => api.registerTool({
          name: 'a', description: 'c', inputSchema: { type: 'object', required: 'path' }, run() {}
        })`,
        /The schema of the tool a cannot be used: #\/required must be a list\./,
      ],
      [`process.exit(1)`, /^It could not be loaded: It ended its thread\.$/],
    ]
    await using opened = await openHost({
      files: {
        ...Object.fromEntries(bad.map(([source], index) => [`bad-${index}.ts`, source])),
        'good.ts': `export default (api: any) => api.on('toolCall', () => ({ block: 'good' }))`,
      },
    })
    const messages = new Map(opened.problems.map(({ extension, message }) => [extension, message]))
    expect(opened.problems.length).toBe(bad.length)
    for (const [index, [, words]] of bad.entries()) expect(messages.get(`bad-${index}`)).toMatch(words)
    expect(await opened.hooks.toolCall({ id: 'a', name: 'b', input: {} })).toBe('good')
  })

  test('if the file is missing', async () => {
    await using opened = await openHost({ extensions: ['/nowhere/missing.ts'] })
    expect(opened.told()).toEqual(['missing: It could not be loaded: There is no file /nowhere/missing.ts.'])
  })

  test('if it loops while loading', async () => {
    const files = { 'loop.ts': `for (;;);` }
    await using opened = await openHost({ files, clock: systemClock, limits: { loadMs: 100 } })
    expect(opened.told()).toEqual(['loop: It could not be loaded: It was not loaded within 0.1 s.'])
  })
})

describe('after three failures', () => {
  const source = `
    export default (api: any) => {
      api.on('turnStart', () => { throw new Error('again') })
      api.on('toolCall', () => ({ block: 'blocked' }))
      api.registerCommand({ name: 'hello', description: 'says hello', run: () => ({ say: 'hello' }) })
      api.registerTool({ name: 'greet', description: 'greets', inputSchema: { type: 'object' }, run: () => 'hello' })
    }`

  test('it is switched off: handlers, commands and tools are removed, and a tool still in use reports that', async () => {
    await using opened = await openHost({ files: { 'worn.ts': source } })
    const { hooks, host } = opened
    const call = { id: 'a', name: 'b', input: {} }
    const [tool] = host.withTools([])
    const context = testContext({ cwd: opened.folder.path })
    expect(await callTool(tool!, {}, context)).toEqual({ content: 'hello' })
    for (let i = 0; i < 2; i++) await hooks.turnStart(turn)
    expect(await hooks.toolCall(call)).toBe('blocked')
    expect(await host.runCommand('hello', '')).toEqual({ type: 'done', say: 'hello' })
    await hooks.turnStart(turn)
    expect(opened.told()).toEqual([
      'worn (turnStart): again',
      'worn (turnStart): again',
      'worn (turnStart): again',
      'worn: It was switched off, because it failed 3 times.',
    ])
    await hooks.turnStart(turn)
    expect(opened.problems.length).toBe(4)
    expect(await hooks.toolCall(call)).toBe(call)
    expect([host.commands, host.withTools([]), await host.runCommand('hello', '')]).toEqual([
      [],
      [],
      { type: 'unknown' },
    ])
    expect(await callTool(tool!, {}, context)).toEqual({
      content: 'greet failed. The extension worn is switched off.',
      isError: true,
    })
  })

  test('a loop, a hang and a crash count once each', async () => {
    await using opened = await openHost({
      files: {
        'mixed.ts': `export default (api: any) => {
          api.on('turnStart', () => { for (;;); })
          api.on('turnEnd', () => new Promise(() => {}))
          api.on('toolCall', () => process.exit())
        }`,
      },
    })
    const { hooks } = opened
    await letTimePass(opened, hooks.turnStart(turn))
    await letTimePass(opened, hooks.turnEnd(turn))
    await hooks.toolCall({ id: 'a', name: 'b', input: {} })
    expect(opened.told()).toEqual([
      'mixed (turnStart): It took longer than 5 s.',
      'mixed (turnEnd): It took longer than 5 s.',
      'mixed (toolCall): It ended its thread.',
      'mixed: It was switched off, because it failed 3 times.',
    ])
  })
})
