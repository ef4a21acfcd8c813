import { chmod, mkdir, mkdtemp, readFile, realpath, rm, symlink, writeFile } from 'node:fs/promises'
import { existsSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { memoryStore } from '@tapetree/session'
import { afterEach, describe, expect, test } from 'vitest'
import type { Model } from '../models/model.ts'
import { FakeClock } from '../testing/fake-clock.ts'
import { linesOf } from '../testing/read-session.ts'
import { script, scriptedModel } from '../testing/scripted-model.ts'
import { startFakeProvider, type FakeAnswer, type FakeProvider } from '../testing/fake-provider/index.ts'
import { openCodingAgent, type CodingAgent, type CodingAgentOptions } from './coding-agent.ts'

const cleanUps: (() => unknown)[] = []
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp()
})

const say = (...chunks: string[]): FakeAnswer => ({ type: 'answer', content: [{ type: 'text', chunks }] })

interface Place {
  provider: FakeProvider
  cwd: string
  home: string
  problems: string[]
  open: (options?: Partial<CodingAgentOptions>) => Promise<CodingAgent>
}

/** A user with settings, in a repository with the given files. */
async function place(files: Record<string, string> = {}, userSettings: Record<string, unknown> = {}): Promise<Place> {
  const root = await realpath(await mkdtemp(join(tmpdir(), 'coding-agent-')))
  cleanUps.push(() => rm(root, { recursive: true, force: true }))
  const home = join(root, 'home')
  const cwd = join(root, 'repository')
  const provider = await startFakeProvider()
  cleanUps.push(() => provider.close())
  await write(join(cwd, '.git/HEAD'), 'ref: refs/heads/main\n')
  for (const name of ['objects', 'refs']) await mkdir(join(cwd, '.git', name))
  const model = { id: 'm', contextTokens: 100_000, outputTokens: 4096 }
  const settings = {
    model: 'fake/m',
    providers: { fake: { api: 'openai-compatible', baseUrl: provider.baseUrl('openaiCompatible'), models: [model] } },
    ...userSettings,
  }
  await write(join(home, '.config/tapetree/settings.json'), JSON.stringify(settings))
  await chmod(join(home, '.config/tapetree'), 0o700)
  for (const [path, content] of Object.entries(files)) await write(join(cwd, path), content)
  const problems: string[] = []
  const open = async (options: Partial<CodingAgentOptions> = {}): Promise<CodingAgent> => {
    const agent = await openCodingAgent({
      store: memoryStore(),
      cwd,
      home,
      env: { PATH: process.env['PATH'] },
      clock: new FakeClock(),
      onProblem: ({ source, message }) => problems.push(`${source}: ${message}`),
      ...options,
    })
    cleanUps.push(() => agent.close())
    return agent
  }
  return { provider, cwd, home, problems, open }
}

async function write(path: string, content: string): Promise<void> {
  await mkdir(dirname(path), { recursive: true })
  await writeFile(path, content)
}

async function prompt({ session }: CodingAgent, words: string): Promise<string> {
  const outcome = await session.prompt(words)
  if (outcome.type === 'handled') return `handled: ${outcome.say}`
  if (outcome.type !== 'started') return outcome.type
  const { outcome: end, message } = await outcome.run.done
  return message === undefined ? end : `${end}: ${message}`
}

const trust = { askTrust: () => Promise.resolve(true) }

describe('a coding agent', () => {
  test('sends its prompt, tools and environment to the model in the settings', async () => {
    const { provider, cwd, open, problems } = await place()
    provider.script(say('Hello.'))
    const agent = await open()
    expect(await prompt(agent, 'Hi')).toBe('completed')
    const [request] = provider.requests
    const sent = JSON.stringify(request?.body)
    expect(sent).toContain(`Working folder: ${cwd}`)
    expect(sent).toContain('<environment>')
    const tools = request?.body['tools'] as { function: { name: string } }[] | undefined
    expect(tools?.map((tool) => tool.function.name)).toEqual(expect.arrayContaining(['read', 'bash', 'task']))
    expect(problems).toEqual([])
  })

  test.each(['a variable', 'credentials.json'])(
    'a key from %s that a provider repeats in an error is in no line of the log',
    async (from) => {
      const key = 'plum-orchard-4411'
      const { provider, home, open } = await place()
      const fake = { api: 'anthropic', baseUrl: provider.baseUrl('anthropic'), keyVariable: 'MY_LOGIN' }
      await write(
        join(home, '.config/tapetree/settings.json'),
        JSON.stringify({ model: 'fake/m', providers: { fake } }),
      )
      const credentials = join(home, '.config/tapetree/credentials.json')
      await write(credentials, JSON.stringify({ fake: key }))
      await chmod(credentials, 0o600)
      provider.script({ type: 'failure', error: 'invalid-request', message: `Strange request of ${key}` })
      const agent = await open({ env: { PATH: process.env['PATH'], ...(from === 'a variable' && { MY_LOGIN: key }) } })
      await prompt(agent, 'Hi')
      expect(JSON.stringify(provider.requests[0]?.headers)).toContain(key)
      const lines = JSON.stringify(await linesOf(agent.session))
      expect(lines).toContain('Strange request of [key]')
      expect(lines).not.toContain(key)
    },
  )

  test('sends no key of a provider that a user writes, whatever the name of its variable', async () => {
    const { provider, home, open } = await place()
    const fake = { baseUrl: provider.baseUrl('openaiCompatible'), keyVariable: 'MY_LOGIN' }
    await write(join(home, '.config/tapetree/settings.json'), JSON.stringify({ model: 'fake/m', providers: { fake } }))
    provider.script(say('Hello.'))
    await prompt(await open({ env: { MY_LOGIN: 'plum-orchard-4411' } }), 'My key is plum-orchard-4411')
    expect(JSON.stringify(provider.requests[0]?.body)).toContain('My key is [redacted')
  })

  test('uses a model that the command line names by URL', async () => {
    const { provider, open } = await place()
    provider.script(say('Hello.'))
    const agent = await open({ flags: { model: `${provider.baseUrl('openaiCompatible')}#own-model` } })
    expect(await prompt(agent, 'Hi')).toBe('completed')
    expect(provider.requests[0]?.model).toBe('own-model')
  })

  test('has the tools, extensions, rules and models of its host besides those of the settings', async () => {
    const { provider, open, problems } = await place()
    const calls = script()
      .toolCall('1', 'lookup')
      .toolResult('1', 'found')
      .toolCall('2', 'forbidden')
      .toolResult('2', '')
    const model = scriptedModel(calls.step().text('Done.'))
    const heard: string[] = []
    const agent = await open({
      models: model,
      tools: [model.tool('lookup'), model.tool('forbidden')],
      extensions: [{ name: 'host', extension: (api) => api.on('toolCall', ({ call }) => void heard.push(call.name)) }],
      rules: [
        { effect: 'allow', type: 'tool', match: 'lookup' },
        { effect: 'deny', type: 'tool', match: 'forbidden' },
      ],
    })
    const reply = await agent.session.ask('Look it up.')
    expect(reply).toMatchObject({ text: 'Done.', outcome: 'completed' })
    expect(heard).toContain('lookup')
    const results = JSON.stringify((await agent.session.session.getContext()).messages)
    expect(results).toContain('found')
    expect(results).toContain('"isError":true')
    expect([provider.requests, problems]).toEqual([[], []])
    await agent.session.setModel('fake', 'm')
    provider.script(say('Of the settings.'))
    expect((await agent.session.ask('Hi')).text).toBe('Of the settings.')
  })

  test('with a model of its host needs no key for any other', async () => {
    const { open } = await place({}, { model: undefined, providers: {} })
    const agent = await open({ models: scriptedModel(script().text('Done.')) })
    expect((await agent.session.ask('Hi')).text).toBe('Done.')
  })

  test('keeps what the user allows in a project for that project, in the settings of the user', async () => {
    const { cwd, home, open } = await place()
    const mkdirs = (): Model =>
      scriptedModel(script().toolCall('a', 'bash', { command: 'mkdir -p made' }).step().text('Done.'))
    const askedIn = async (options: Partial<CodingAgentOptions>): Promise<string[]> => {
      const agent = await open({ models: mkdirs(), ...options })
      const labels: string[] = []
      agent.session.subscribe((event) => {
        if (event.type !== 'line' || event.committed.line.type !== 'permission_request') return
        const { requestId, options: offered } = event.committed.line.permissionRequest
        labels.push(...offered.map(({ label }) => label))
        void agent.session.answer({ requestId, outcome: 'allowed', optionId: 'allow_project' })
      })
      await agent.session.ask('Go.')
      return labels
    }
    expect(await askedIn({})).toContain('Allow in this project: `mkdir *`')
    const written = JSON.parse(await readFile(join(home, '.config/tapetree/settings.json'), 'utf8')) as object
    expect(written).toMatchObject({ model: 'fake/m', projects: { [cwd]: { allow: ['command mkdir *'] } } })
    expect(await askedIn({})).toEqual([])
    const other = join(cwd, '../other')
    await mkdir(other)
    expect(await askedIn({ cwd: other })).not.toEqual([])
  })

  test('lets no repository set what is allowed in projects', async () => {
    const projects = { '/': { allow: ['command mkdir *'] } }
    const { problems, open } = await place({ '.tapetree/settings.json': JSON.stringify({ projects }) })
    const agent = await open(trust)
    expect(agent.settings.values.projects).toEqual({})
    expect(problems).toEqual([expect.stringContaining('A project cannot set what you allow in projects.')])
  })

  test('reads nothing of an untrusted repository, and all of a trusted one', async () => {
    const files = {
      'AGENTS.md': 'Always say please.',
      '.tapetree/settings.json': JSON.stringify({ systemPrompt: { append: 'Of the project.' } }),
      '.tapetree/prompts/review.md': 'Review $1 with care.',
      '.agents/skills/plant/SKILL.md': '---\nname: plant\ndescription: Plants trees.\n---\nDig first.',
    }
    const { provider, open } = await place(files)
    provider.script(say('one'), say('two'), say('three'))
    const careful = await open()
    expect(careful.trust.state).toBe('untrusted')
    await prompt(careful, '/review x.ts')
    const trusting = await open(trust)
    expect(trusting.trust.state).toBe('trusted')
    await prompt(trusting, '/review x.ts')
    await prompt(trusting, '/skill:plant an oak')
    const [first, second, third] = provider.requests.map(({ body }) => JSON.stringify(body))
    for (const words of ['Always say please.', 'Of the project.', 'Plants trees.']) {
      expect(first).not.toContain(words)
      expect(second).toContain(words)
    }
    expect(first).toContain('/review x.ts')
    expect(second).toContain('Review x.ts with care.')
    expect(third).toContain('Dig first.')
    expect(third).toContain('an oak')
  })

  test('runs git only in a repository that the user trusts', async () => {
    const { provider, cwd, home, open } = await place()
    const git = join(home, 'bin/git')
    await write(git, '#!/bin/sh\necho "# branch.head main"; touch "$0.ran"\n')
    await chmod(git, 0o755)
    const env = { PATH: `${dirname(git)}:/usr/bin:/bin` }
    provider.script(say('one'), say('two'))
    const careful = await open({ env, ...trust })
    expect(careful.trust.state).toBe('nothing-to-trust')
    await prompt(careful, 'Hi')
    expect(existsSync(`${git}.ran`)).toBe(false)
    expect(JSON.stringify(provider.requests[0]?.body)).toContain('Git: branch \\"main\\"\\n</environment>')
    await write(join(cwd, '.tapetree/prompts/review.md'), 'Review $1 with care.')
    const trusting = await open({ env, ...trust })
    expect(trusting.trust.state).toBe('trusted')
    await prompt(trusting, 'Hi')
    expect(existsSync(`${git}.ran`)).toBe(true)
  })

  test('runs nothing of a folder that looks like a git folder inside a harmless repository', async () => {
    const files = {
      'sub/HEAD': 'ref: refs/heads/main\n',
      'sub/commondir': 'x\n',
      'sub/x/objects/keep': '',
      'sub/x/refs/keep': '',
    }
    const { provider, cwd, open } = await place(files)
    await write(
      join(cwd, 'sub/x/config'),
      `[core]\n\tbare = false\n\tworktree = ..\n\tfsmonitor = touch '${cwd}/struck'\n`,
    )
    provider.script(say('one'))
    const agent = await open({ cwd: join(cwd, 'sub'), ...trust })
    await prompt(agent, 'Hi')
    expect(existsSync(join(cwd, 'struck'))).toBe(false)
    expect(JSON.stringify(provider.requests[0]?.body)).not.toContain('Git: ')
  })

  test('runs the extensions and hooks that the user configured', async () => {
    const { home, provider, open, problems } = await place(
      {},
      {
        extensions: ['hello.ts'],
        hooks: { toolCall: [{ matcher: 'ls', command: 'echo "not here" >&2; exit 2' }] },
      },
    )
    await write(
      join(home, '.config/tapetree/hello.ts'),
      `export default (api) => {
        api.registerCommand({ name: 'hello', description: 'Greets.', run: (args) => ({ say: 'hello ' + args }) })
        api.registerCommand({ name: 'ask', description: 'Asks.', run: (args) => ({ prompt: 'Tell me of ' + args }) })
      }`,
    )
    const call = { type: 'tool_call' as const, id: 'c1', name: 'ls', chunks: ['{"path":"."}'] }
    provider.script({ type: 'answer', content: [call] }, say('I see.'))
    const agent = await open()
    expect(problems).toEqual([])
    expect(await prompt(agent, '/hello there')).toBe('handled: hello there')
    expect(await prompt(agent, '/ask oaks')).toBe('completed')
    expect(JSON.stringify(provider.requests[0]?.body)).toContain('Tell me of oaks')
    expect(JSON.stringify(provider.requests[1]?.body)).toContain('not here')
  })

  test('says which variable to set if a key is missing, before anything is appended', async () => {
    const { open } = await place({}, { model: 'anthropic/claude-opus-5' })
    await expect(open()).rejects.toThrow('ANTHROPIC_API_KEY')
  })

  test('says what to set if there is no key and no model is named', async () => {
    const { home, open } = await place()
    await write(join(home, '.config/tapetree/settings.json'), '{}')
    await expect(open()).rejects.toThrow(
      /no provider has a key\. Set an environment variable such as ANTHROPIC_API_KEY, OPENAI_API_KEY/,
    )
  })

  test('replaces its system prompt, and limits the tools to the named ones', async () => {
    const { provider, cwd, open } = await place({}, { systemPrompt: { append: 'Rhyme.' } })
    provider.script(say('ok'), say('ok'))
    await prompt(await open({ systemPrompt: 'You are a poet.', toolNames: ['read', 'job_*'] }), 'hi')
    await prompt(await open({ toolNames: ['task'] }), 'hi')
    const toolsOf = (index: number): string[] =>
      ((provider.requests[index]?.body['tools'] ?? []) as { function: { name: string } }[]).map(
        (tool) => tool.function.name,
      )
    expect(toolsOf(0).toSorted()).toEqual(['job_kill', 'job_output', 'read'])
    expect(toolsOf(1)).toEqual(['task'])
    const [poet, own] = provider.requests.map(({ body }) => JSON.stringify(body))
    for (const words of ['You are a poet.', `Working folder: ${cwd}`, 'Rhyme.']) expect(poet).toContain(words)
    expect(poet).not.toContain('You are tapetree')
    expect(own).toContain('You are tapetree')
  })

  test('reports wrong settings, and works without them', async () => {
    const { provider, open, problems } = await place({}, { modle: 'x' })
    provider.script(say('ok'))
    expect(await prompt(await open(), 'hi')).toBe('completed')
    expect(problems).toEqual([expect.stringContaining('modle')])
  })
})

describe('a trusted project is loaded as it was when the user was asked', () => {
  const extension = (name: string, before = ''): string =>
    `${before}
    export default (api) => {
      api.registerCommand({ name: '${name}', description: 'Says something.', run: () => ({ say: '${name}' }) })
    }`
  const settings = JSON.stringify({ extensions: ['ext.mjs'] })

  /** Answers yes, after it has changed something. */
  const yesAfter = (change: () => Promise<unknown>): Partial<CodingAgentOptions> => ({
    askTrust: async () => {
      await change()
      return true
    },
  })

  test.each(['.tapetree/ext.mjs', 'lib/helper.mjs', 'node_modules/pkg/lib.js'])(
    '%s is swapped meanwhile',
    async (path) => {
      const { cwd, open, problems } = await place({
        '.tapetree/settings.json': settings,
        '.tapetree/ext.mjs': extension('good', `import '../lib/helper.mjs'; import 'pkg'\n`),
        'lib/helper.mjs': 'export {}\n',
        'node_modules/pkg/package.json': JSON.stringify({ exports: { '.': { import: './lib.js' } } }),
        'node_modules/pkg/lib.js': 'export {}\n',
      })
      const evil = `import { writeFileSync } from 'node:fs'; writeFileSync('${cwd}/struck', '')\n`
      const agent = await open(yesAfter(() => write(join(cwd, path), extension('evil', evil))))
      expect(agent.trust.state).toBe('trusted')
      expect(problems).toEqual([])
      expect(agent.extensions.commands.map(({ name }) => name)).toEqual(['good'])
      expect(existsSync(join(cwd, 'struck'))).toBe(false)
    },
  )

  test.each(['.tapetree/ext.mjs', 'lib/helper.mjs', 'node_modules/pkg'])(
    '%s becomes a link out of the repository meanwhile',
    async (path) => {
      const { cwd, home, open, problems } = await place({
        '.tapetree/settings.json': settings,
        '.tapetree/ext.mjs': extension('good', `import '../lib/helper.mjs'; import 'pkg/lib.js'\n`),
        'lib/helper.mjs': 'export {}\n',
        'node_modules/pkg/package.json': '{"type":"module"}',
        'node_modules/pkg/lib.js': 'export {}\n',
      })
      const evil = `import { writeFileSync } from 'node:fs'; writeFileSync('${cwd}/struck', ''); export default () => undefined\n`
      await write(join(home, 'evil.mjs'), evil)
      await write(join(home, 'evil/lib.js'), evil)
      await write(join(home, 'evil/package.json'), '{"type":"module"}')
      const agent = await open(
        yesAfter(async () => {
          await rm(join(cwd, path), { recursive: true })
          await symlink(join(home, path.endsWith('pkg') ? 'evil' : 'evil.mjs'), join(cwd, path))
        }),
      )
      expect(agent.extensions.commands).toEqual([])
      expect(problems).toEqual([expect.stringContaining('is not part of what you trusted')])
      expect(existsSync(join(cwd, 'struck'))).toBe(false)
    },
  )

  test('settings, a template and a skill are swapped meanwhile', async () => {
    const skill = (text: string): string => `---\nname: plant\ndescription: Plants ${text}.\n---\nDig first.`
    const { provider, cwd, open } = await place({
      '.tapetree/settings.json': JSON.stringify({ systemPrompt: { append: 'Good words.' } }),
      '.tapetree/prompts/review.md': 'Good review.',
      '.agents/skills/plant/SKILL.md': skill('good trees'),
    })
    provider.script(say('one'))
    const agent = await open(
      yesAfter(async () => {
        const hook = { command: `touch '${cwd}/struck'` }
        const evil = { systemPrompt: { append: 'Evil words.' }, hooks: { sessionStart: [hook] } }
        await write(join(cwd, '.tapetree/settings.json'), JSON.stringify(evil))
        await write(join(cwd, '.tapetree/prompts/review.md'), 'Evil review.')
        await write(join(cwd, '.tapetree/prompts/more.md'), 'Evil review.')
        await write(join(cwd, '.agents/skills/plant/SKILL.md'), skill('evil trees'))
      }),
    )
    await prompt(agent, '/review')
    const sent = JSON.stringify(provider.requests[0]?.body)
    for (const words of ['Good words.', 'Good review.', 'good trees']) expect(sent).toContain(words)
    expect(sent).not.toMatch(/evil/i)
    expect(agent.resources.templates.map(({ name }) => name)).toEqual(['review'])
    expect(existsSync(join(cwd, 'struck'))).toBe(false)
  })

  test('the programs of a hook, a server and a prefix are swapped meanwhile, and do not start', async () => {
    const { cwd, open, problems, provider } = await place({
      '.tapetree/settings.json': JSON.stringify({
        hooks: { sessionStart: [{ command: './hook.sh --all' }] },
        mcpServers: { docs: { command: './serve.sh' } },
        shellPrefix: './prefix.sh',
      }),
      ...Object.fromEntries(['hook.sh', 'serve.sh', 'prefix.sh'].map((name) => [name, '#!/bin/sh\n'])),
    })
    provider.script(say('one'))
    const agent = await open(
      yesAfter(async () => {
        for (const name of ['hook.sh', 'serve.sh', 'prefix.sh']) {
          await write(join(cwd, name), `#!/bin/sh\ntouch '${cwd}/struck'\n"$@"\n`)
          await chmod(join(cwd, name), 0o755)
        }
      }),
    )
    await agent.mcp.settled()
    await prompt(agent, 'Hi')
    await agent.session.executeBash('true')
    await agent.close()
    expect(existsSync(join(cwd, 'struck'))).toBe(false)
    for (const name of ['hook.sh', 'serve.sh', 'prefix.sh']) {
      expect(problems.filter((problem) => problem.includes(`${name} has changed since you trusted it`))).not.toEqual([])
    }
  })

  test('a module that changes later is asked about again, and not loaded without an answer', async () => {
    const { cwd, open } = await place({
      '.tapetree/settings.json': settings,
      '.tapetree/ext.mjs': extension('good', `import '../lib/helper.mjs'\n`),
      'lib/helper.mjs': `import './deeper.mjs'\n`,
      'lib/deeper.mjs': 'export {}\n',
    })
    const first = await open(trust)
    expect(first.trust.project.summary).toContain('module lib/deeper.mjs (10 bytes)')
    expect((await open()).trust.state).toBe('trusted')
    await write(join(cwd, 'lib/deeper.mjs'), 'export const changed = true\n')
    const { trust: later, extensions } = await open()
    expect(later.state === 'changed' && later.changes).toEqual([
      { change: 'changed', what: 'module', name: 'lib/deeper.mjs' },
    ])
    expect(extensions.commands).toEqual([])
  })

  test('a module whose path is computed is named in the question, and not loaded', async () => {
    const computed = `await import('../lib/' + ['hel', 'per.mjs'].join(''))\n`
    const { cwd, open, problems } = await place({
      '.tapetree/settings.json': settings,
      '.tapetree/ext.mjs': extension('good', computed),
      'lib/helper.mjs': 'export {}\n',
    })
    const agent = await open(trust)
    expect(agent.trust.project.summary).toContain(
      'not covered by trust: .tapetree/ext.mjs loads modules whose paths are computed when it runs',
    )
    expect(problems).toEqual([expect.stringContaining(`${cwd}/lib/helper.mjs is not part of what you trusted`)])
  })

  test('TypeScript, CommonJS, JSON and packages of the repository work in extensions', async () => {
    const { open, problems } = await place({
      '.tapetree/settings.json': JSON.stringify({ extensions: ['ext.ts'] }),
      '.tapetree/ext.ts': `import type { Extension } from '@tapetree/agent/extensions'
        import { name } from './typed.ts'
        import old from '../lib/old.cjs'
        import data from '../lib/data.json' with { type: 'json' }
        import { word } from 'pkg/deep'
        const extension: Extension = (api) => {
          const says: string = [name, old, data.word, word].join(' ')
          api.registerCommand({ name: 'good', description: says, run: () => ({ say: says }) })
        }
        export default extension`,
      '.tapetree/typed.ts': `export const name: string = 'typed'\n`,
      'lib/old.cjs': `module.exports = require('./older')\n`,
      'lib/older.js': `module.exports = 'old'\n`,
      'lib/data.json': '{"word":"data"}',
      'node_modules/pkg/package.json': JSON.stringify({
        type: 'module',
        exports: { './*': { default: './lib/*.js' } },
      }),
      'node_modules/pkg/lib/deep.js': `export { word } from './deeper.js'\n`,
      'node_modules/pkg/lib/deeper.js': `export const word = 'deep'\n`,
    })
    const agent = await open(trust)
    expect(problems).toEqual([])
    expect(agent.extensions.commands.map(({ description }) => description)).toEqual(['typed old data deep'])
  })
})

describe('language servers', () => {
  const server = fileURLToPath(new URL('../language-servers/testing/scripted-server.ts', import.meta.url))
  const write = (id: string, content: string): FakeAnswer => ({
    type: 'answer',
    content: [{ type: 'tool_call', id, name: 'write', chunks: [JSON.stringify({ path: 'a.py', content })] }],
  })

  async function pythonProject(): Promise<Place> {
    const found = await place(
      {
        'pyproject.toml': '',
        '.tapetree/prompts/review.md': 'Review $1 with care.',
        'node_modules/.bin/pyright-langserver': `#!/bin/sh\nexec '${process.execPath}' '${server}' pull "$PWD/notes"\n`,
      },
      { permissions: { mode: 'auto' } },
    )
    await chmod(join(found.cwd, 'node_modules/.bin/pyright-langserver'), 0o755)
    return found
  }

  test('of a trusted project tell the model of an error once, when it is about to end', async () => {
    const { provider, open } = await pythonProject()
    provider.script(
      write('w1', 'BAD one\n'),
      write('w2', 'BAD two\n'),
      say('Done.'),
      write('w3', 'good\n'),
      say('Corrected.'),
    )
    const agent = await open(trust)
    expect(await prompt(agent, 'write it')).toBe('completed')
    const told = provider.requests.map(({ body }) => JSON.stringify(body).split('BAD two is bad').length - 1)
    expect(told).toEqual([0, 0, 0, 1, 1])
    expect(JSON.stringify(provider.requests.at(-1)?.body)).not.toContain('BAD one is bad')
    expect(JSON.stringify(provider.requests[0]?.body)).toContain('"name":"diagnostics"')
  })

  test('are not started in a project that is not trusted, nor if the user has turned them off', async () => {
    const { provider, cwd, open } = await pythonProject()
    provider.script(write('w1', 'BAD one\n'), say('Done.'), write('w2', 'BAD two\n'), say('Done.'))
    await prompt(await open(), 'write it')
    const flags = { languageServers: { isEnabled: false } }
    await prompt(await open({ ...trust, flags }), 'write it')
    expect(existsSync(join(cwd, 'notes'))).toBe(false)
    for (const { body } of provider.requests) expect(JSON.stringify(body)).not.toContain('"name":"diagnostics"')
  })
})
