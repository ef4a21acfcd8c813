import { describe, expect, test } from 'vitest'
import { accessOf, callTool, testContext } from '../testing/tool-context.ts'
import { defineTool } from '../tools/tool.ts'
import { z } from 'zod'
import type { Extension } from './extension.ts'
import { openHost } from './testing/open-host.ts'

const turn = { runId: 'r', turn: 1, systemPrompt: '' }

describe('commands', () => {
  const files = {
    'todo.ts': `
      export default (api: any) => {
        api.registerCommand({ name: 'todo', description: 'notes something', async run(args: string, { sessionId }: any) {
          await api.appendEntry('todo', { args, sessionId })
          return { say: 'noted: ' + args }
        } })
        api.registerCommand({ name: 'review', description: 'reviews', run: (args: string) => ({ prompt: 'Review ' + args }) })
        api.registerCommand({ name: 'fail', description: 'fails', run: () => { throw new Error('no such thing') } })
        api.registerCommand({ name: 'odd', description: 'answers oddly', run: () => 7 })
      }`,
  }

  test('get the text after their name, and may show text or send a prompt', async () => {
    await using opened = await openHost({ files })
    const { host } = opened
    expect(host.commands.map(({ name, extension }) => `${extension} /${name}`)).toEqual([
      'todo /todo',
      'todo /review',
      'todo /fail',
      'todo /odd',
    ])
    expect(await host.runCommand('todo', 'buy "two  leeks"')).toEqual({ type: 'done', say: 'noted: buy "two  leeks"' })
    expect(await host.runCommand('review', 'a.ts')).toEqual({ type: 'prompt', prompt: 'Review a.ts' })
    expect(opened.session.drafts).toEqual([
      { type: 'custom', custom: { customType: 'todo', data: { args: 'buy "two  leeks"', sessionId: 'session-1' } } },
    ])
  })

  test('that throw report to the user, and do not count as failures', async () => {
    await using opened = await openHost({ files })
    for (let i = 0; i < 4; i++) {
      expect(await opened.host.runCommand('fail', '')).toEqual({
        type: 'failed',
        message: '/fail failed: no such thing',
      })
    }
    expect(opened.told()).toEqual([])
    expect(await opened.host.runCommand('odd', '')).toMatchObject({ type: 'failed' })
    expect(opened.problems).toMatchObject([{ extension: 'todo', hook: '/odd' }])
    expect(await opened.host.runCommand('nothing', '')).toEqual({ type: 'unknown' })
  })

  test('have a minute; a loop is stopped', async () => {
    await using opened = await openHost({
      files: {
        'loop.ts': `export default (api: any) => api.registerCommand({ name: 'loop', description: '', run() { for (;;); } })`,
      },
    })
    const running = opened.host.runCommand('loop', '')
    expect(await opened.clock.skip()).toBe(60_000)
    expect(await running).toEqual({ type: 'failed', message: '/loop failed: It took longer than 60 s.' })
    expect(opened.told()).toEqual(['loop (/loop): It took longer than 60 s.'])
  })
})

describe('tools', () => {
  const tool = (rest: string): Record<string, string> => ({
    'count.ts': `export default (api: any) => api.registerTool({
      name: 'count', description: 'counts', readOnly: true,
      inputSchema: { type: 'object', properties: { path: { type: 'string' } }, required: ['path'] },
      ${rest}
    })`,
  })

  test('are called with their input, may stream output, and may ask', async () => {
    await using opened = await openHost({
      files: tool(`async run({ path }: any, context: any) {
        context.observe('looking')
        const { text } = await context.ask({ question: 'Sure?', options: [{ label: 'yes' }] })
        const { callId, model } = context
        return { content: [path, text, callId, model.id, model.hasImages].join(' '), isError: true }
      }`),
    })
    const [count] = opened.host.withTools([])
    const model = { provider: 'p', id: 'blind-1', hasImages: false }
    const context = testContext({ cwd: '/', answer: { text: 'yes', isCancelled: false }, model })
    expect(await callTool(count!, { path: 'a' }, context)).toEqual({
      content: 'a yes call-1 blind-1 false',
      isError: true,
    })
    expect([context.observed, context.questions]).toEqual([
      ['looking'],
      [{ question: 'Sure?', options: [{ label: 'yes' }] }],
    ])
  })

  test('are never called with an invalid input', async () => {
    await using opened = await openHost({ files: tool(`run: () => 'never'`) })
    const [count] = opened.host.withTools([])
    expect(count!.check({ path: 7 }, { cwd: '/' })).toMatch(/^The input of count is not valid\./)
    expect(count!.check('text', { cwd: '/' })).toMatch(/^The input of count is not valid\./)
  })

  test('are protected by every keyword of their schema, also without a type', async () => {
    await using opened = await openHost({
      files: {
        'count.ts': `export default (api: any) => api.registerTool({
          name: 'count', description: 'counts', run: () => 'never',
          inputSchema: {
            type: 'object',
            properties: { lines: { type: 'array', minItems: 1 }, mode: { not: { const: 'all' } } },
            anyOf: [{ required: ['path'] }, { required: ['lines'] }],
          },
        })`,
      },
    })
    const [count] = opened.host.withTools([])
    for (const input of [{}, { lines: [] }, { path: 'a', mode: 'all' }])
      expect(count!.check(input, { cwd: '/' })).toMatch(/^The input of count is not valid\./)
    expect(count!.check({ lines: [1] }, { cwd: '/' })).toMatchObject({ access: [{ name: 'count' }] })
  })

  test('require a request, unless they declare their accesses', async () => {
    await using plain = await openHost({ files: tool(`run: () => ''`) })
    expect(accessOf(plain.host.withTools([])[0]!, { path: 'a' }, { cwd: '/' })).toEqual([
      { type: 'tool', name: 'count', readOnly: true },
    ])
    await using declared = await openHost({ files: tool(`access: [{ type: 'read', input: 'path' }], run: () => ''`) })
    expect(accessOf(declared.host.withTools([])[0]!, { path: 'no-such' }, { cwd: '/' })).toEqual([
      { type: 'read', path: '/no-such', isRecursive: true },
    ])
  })

  test('that throw return the error, which is not a failure of the extension', async () => {
    await using opened = await openHost({ files: tool(`run() { throw new Error('no such file') }`) })
    const [count] = opened.host.withTools([])
    for (let i = 0; i < 4; i++) {
      expect(await callTool(count!, { path: 'a' }, testContext({ cwd: '/' }))).toEqual({
        content: 'count failed. no such file',
        isError: true,
      })
    }
    expect(opened.told()).toEqual([])
  })

  test('that loop are stopped some time after the run', async () => {
    await using opened = await openHost({ files: tool(`run() { for (;;); }`) })
    const [count] = opened.host.withTools([])
    const stop = new AbortController()
    const running = callTool(count!, { path: 'a' }, testContext({ cwd: '/', signal: stop.signal }))
    stop.abort()
    expect(await opened.clock.skip()).toBe(5000)
    expect(await running).toMatchObject({ isError: true })
    expect(opened.problems).toMatchObject([{ extension: 'count', hook: 'count' }])
  })

  test('with a taken name are left out, which is reported once', async () => {
    const greet = (word: string): { name: string; extension: Extension } => ({
      name: word,
      extension: (api) => {
        const inputSchema = { type: 'object' }
        api.registerTool({ name: 'greet', description: word, inputSchema, run: () => word })
        api.registerCommand({ name: 'greet', description: word, run: () => ({ say: word }) })
        api.registerTool({ name: 'bash', description: word, inputSchema, run: () => word })
      },
    })
    await using opened = await openHost({ extensions: [greet('one'), greet('two')] })
    const own = defineTool({
      name: 'bash',
      description: 'ours',
      schema: z.object({}),
      access: () => [],
      run: async () => ({ content: 'ours' }),
    })
    for (let i = 0; i < 2; i++) {
      expect(opened.host.withTools([own]).map(({ description }) => description)).toEqual(['ours', 'one'])
    }
    expect(await opened.host.runCommand('greet', '')).toEqual({ type: 'done', say: 'one' })
    expect(opened.told()).toEqual([
      'two: Its tool greet is left out: the name is already taken.',
      'two: Its tool bash is left out: the name is already taken.',
      'two: Its command greet is left out: the name is already taken.',
      'one: Its tool bash is left out: the name is already taken.',
    ])
  })
})

describe('the session', () => {
  test('gets the entries and questions of an extension, and waiting for an answer does not count towards limits', async () => {
    await using opened = await openHost({
      files: {
        'ask.ts': `export default (api: any) => api.on('toolCall', async () => {
          const { text } = await api.ask({ question: 'May it?', options: [{ label: 'no' }] })
          await api.appendMessage('The user said ' + text)
          return { block: text }
        })`,
      },
    })
    const calling = opened.hooks.toolCall({ id: 'a', name: 'b', input: {} })
    const { asker, question, answer } = await opened.session.nextQuestion()
    expect([asker, question]).toEqual(['ask', { question: 'May it?', options: [{ label: 'no' }] }])
    expect(opened.clock.waits).toEqual([])
    opened.clock.advance(60 * 60 * 1000)
    answer({ text: 'no', isCancelled: false })
    expect(await calling).toBe('no')
    expect(opened.session.drafts).toEqual([
      {
        type: 'message',
        message: { role: 'custom', content: [{ type: 'text', text: { content: 'The user said no' } }] },
      },
    ])
    expect(opened.told()).toEqual([])
  })

  test('a question is withdrawn when the run is stopped', async () => {
    await using opened = await openHost({
      files: {
        'ask.ts': `export default (api: any) => api.on('turnStart', async () => { await api.ask({ question: 'Well?', options: [] }) })`,
      },
    })
    const stop = new AbortController()
    const starting = opened.hooks.turnStart(turn, stop.signal)
    await opened.session.nextQuestion()
    stop.abort()
    await starting
    expect(opened.told()).toEqual([])
  })

  test('is labeled, named and steered from the thread of an extension, which knows the entries it appended', async () => {
    await using opened = await openHost({
      files: {
        'mark.ts': `export default (api: any) => api.on('turnEnd', async () => {
          const before = await api.leafId()
          await api.appendEntry('mark', {})
          const entryId = await api.leafId()
          await api.setLabel(entryId, 'needs_review')
          await api.setSessionName(' Marked ')
          await api.steer('Look here first.')
          await api.followUp('Then go on.')
          await api.appendMessage(JSON.stringify([before, entryId, await api.labels()]))
        })`,
      },
    })
    await opened.hooks.turnEnd(turn)
    expect([opened.told(), opened.session.name]).toEqual([[], 'Marked'])
    expect(opened.session.sent).toEqual([
      { text: 'Look here first.', delivery: 'steer', sender: 'extension:mark' },
      { text: 'Then go on.', delivery: 'follow-up', sender: 'extension:mark' },
    ])
    const labels = [{ entryId: 'entry-1', label: 'needs_review' }]
    const told = JSON.stringify([null, 'entry-1', labels])
    expect(opened.session.drafts[1]).toMatchObject({ message: { content: [{ text: { content: told } }] } })
  })

  test('rejects invalid entries and questions with an error for the extension', async () => {
    const said: string[] = []
    const wrong: Extension = (api) =>
      api.on('turnStart', async () => {
        const tries = [
          () => api.appendEntry('', {}),
          () => api.appendEntry('a', { when: new Date(0) }),
          () => api.appendMessage(''),
          () => api.ask({} as never),
          () => api.setLabel('elsewhere', 'a'),
          () => api.setLabel('entry-1', 'a'.repeat(1001)),
          () => api.setSessionName(' '),
          () => api.steer(''),
        ]
        for (const attempt of tries)
          said.push(
            await attempt().then(
              () => 'fine',
              (error: Error) => error.message.split('.')[0]!,
            ),
          )
      })
    await using opened = await openHost({ extensions: [{ name: 'wrong', extension: wrong }] })
    await opened.hooks.turnStart(turn)
    expect(said).toEqual([
      'The entry is not valid',
      'The entry is not valid',
      'The text is not valid',
      'The question is not valid',
      'There is no entry elsewhere',
      'The label is not valid',
      'The name is not valid',
      'The text is not valid',
    ])
    expect(opened.session.drafts).toEqual([])
  })

  test('without a session nothing is answered and nothing is stored', async () => {
    const lonely: Extension = (api) =>
      api.registerCommand({
        name: 'lonely',
        description: '',
        run: async () => {
          const { isCancelled } = await api.ask({ question: 'Anybody?', options: [] })
          const refused = await api.appendMessage('hello').then(
            () => 'kept',
            (error: Error) => error.message,
          )
          return { say: `${isCancelled} ${refused}` }
        },
      })
    await using opened = await openHost({ extensions: [{ name: 'lonely', extension: lonely }] })
    await opened.hooks.sessionEnd({ sessionId: 'session-1' })
    expect(await opened.host.runCommand('lonely', '')).toEqual({ type: 'done', say: 'true No session is open.' })
  })
})

describe('other registrations', () => {
  test('folders with skills and templates, and providers', async () => {
    await using opened = await openHost({
      files: {
        'bring.ts': `export default (api: any) => {
          api.registerSkills('skills')
          api.registerTemplates('/prompts')
          api.registerProvider({ id: 'local', baseUrl: 'http://127.0.0.1:9/v1', models: [{ id: 'small' }] })
        }`,
      },
    })
    const { host, folder } = opened
    expect([host.skillFolders, host.templateFolders, host.providers, host.models]).toEqual([
      [folder.at('skills')],
      ['/prompts'],
      { local: { baseUrl: 'http://127.0.0.1:9/v1', models: [{ id: 'small' }] } },
      [],
    ])
  })

  test('are not possible after loading', async () => {
    const late: Extension = (api) => api.on('turnStart', () => api.registerSkills('late'))
    await using opened = await openHost({ extensions: [{ name: 'late', extension: late }] })
    await opened.hooks.turnStart(turn)
    expect(opened.told()).toEqual([
      'late (turnStart): Registrations are only possible before the default function returns.',
    ])
  })

  test('output of an extension does not reach the screen, and it gets only harmless variables', async () => {
    process.env['EXTENSION_TEST_TOKEN'] = 'planted'
    await using opened = await openHost({
      files: {
        'print.ts': `export default (api: any) => {
          console.log('seen', process.env.EXTENSION_TEST_TOKEN, typeof process.env.PATH)
          api.registerCommand({ name: 'flush', description: '', run: () => new Promise((resolve) => process.stdout.write('', () => resolve())) })
        }`,
      },
    })
    delete process.env['EXTENSION_TEST_TOKEN']
    await opened.host.runCommand('flush', '')
    await opened.host.close()
    expect(opened.output.join('')).toBe('print: seen undefined string\n')
  })
})
