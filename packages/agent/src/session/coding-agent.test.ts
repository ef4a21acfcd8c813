import { chmod, mkdir, mkdtemp, realpath, rm, writeFile } from 'node:fs/promises'
import { existsSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { memoryStore } from '@tapetree/session'
import { afterEach, describe, expect, test } from 'vitest'
import { FakeClock } from '../testing/fake-clock.ts'
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

/** A user with settings of their own, in a repository with the given files. */
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
  test('sends its prompt, its tools and what is around it to the model that the settings name', async () => {
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

  test('reads nothing of a repository that is not trusted, and all of it when it is', async () => {
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

  test('runs git only in a repository that the user has trusted', async () => {
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

  test('runs nothing of a folder that looks like a git folder, in the middle of a harmless repository', async () => {
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

  test('runs the extensions and hooks that the user has named', async () => {
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

  test('says which variable to set where a key is missing, before anything is in the log', async () => {
    const { open } = await place({}, { model: 'anthropic/claude-opus-5' })
    await expect(open()).rejects.toThrow('ANTHROPIC_API_KEY')
  })

  test('says what to set where there is no key at all and no model is named', async () => {
    const { home, open } = await place()
    await write(join(home, '.config/tapetree/settings.json'), '{}')
    await expect(open()).rejects.toThrow(/no provider has a key\. Set one of .*ANTHROPIC_API_KEY, OPENAI_API_KEY/)
  })

  test('takes a system prompt in the place of its own, and only the tools that are named', async () => {
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

  test('tells of settings that are wrong, and works all the same', async () => {
    const { provider, open, problems } = await place({}, { modle: 'x' })
    provider.script(say('ok'))
    expect(await prompt(await open(), 'hi')).toBe('completed')
    expect(problems).toEqual([expect.stringContaining('modle')])
  })
})
