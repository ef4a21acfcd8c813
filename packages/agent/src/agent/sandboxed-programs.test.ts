import { execFileSync } from 'node:child_process'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { memoryStore } from '@tapetree/session'
import type { Clock } from '@tapetree/session/util/wait'
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import type { Model } from '../models/model.ts'
import type { SandboxSupport } from '../sandbox/probe.ts'
import { FakeClock } from '../testing/fake-clock.ts'
import { script, scriptedModel } from '../testing/scripted-model.ts'
import { callTool, testContext } from '../testing/tool-context.ts'
import { openCodingAgent, type CodingAgent } from './coding-agent.ts'

let folder: string
let work: string
let home: string

beforeEach(() => {
  // Not below /tmp, which every sandbox replaces.
  folder = realpathSync(mkdtempSync(join(process.cwd(), 'node_modules/.sandboxed-programs-')))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  work = join(folder, 'work')
  home = join(folder, 'home')
  execFileSync('git', ['init', '-q', work])
  write(join(home, '.ssh/id_rsa'), 'canary')
  write(join(work, '.env'), 'canary')
})

function write(path: string, content: string): void {
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, content)
}

interface OpenOptions {
  user?: object
  /** Trusted. */
  project?: object
  support?: SandboxSupport
  mode?: 'ask' | 'sandboxed'
  models?: Model
  clock?: Clock
}

async function open({ user = {}, project, support, mode = 'sandboxed', models, clock }: OpenOptions): Promise<{
  agent: CodingAgent
  problems: string[]
}> {
  write(join(home, '.config/tapetree/settings.json'), JSON.stringify({ permissions: { mode }, ...user }))
  chmodSync(join(home, '.config/tapetree'), 0o700)
  if (project) write(join(work, '.tapetree/settings.json'), JSON.stringify(project))
  const problems: string[] = []
  const agent = await openCodingAgent({
    store: memoryStore(),
    cwd: work,
    home,
    env: { PATH: process.env['PATH'], HOME: home, ANTHROPIC_API_KEY: 'unused' },
    models: models ?? scriptedModel(script().text('Done.').step().text('Done.')),
    ...(clock && { clock }),
    askTrust: () => Promise.resolve(true),
    sandbox: { folder: join(folder, 'sandbox'), own: [join(home, '.config/tapetree')], ...(support && { support }) },
    onProblem: ({ source, message }) => problems.push(`${source}: ${message}`),
  })
  onTestFinished(() => agent.close())
  return { agent, problems }
}

/** What a hostile program tries. Each attempt leaves a word in `tried` of the working folder if it succeeds. */
const attacks = (): string =>
  [
    `: > ${work}/tried`,
    `touch ${home}/written && echo outside >> ${work}/tried`,
    `cat ${home}/.ssh/id_rsa >> ${work}/tried`,
    `cat ${work}/.env >> ${work}/tried`,
    `cat ${home}/.config/tapetree/settings.json >> ${work}/tried`,
    `echo x > ${work}/.git/hooks/pre-commit && echo hook >> ${work}/tried`,
    `echo worked >> ${work}/tried`,
  ].join('; ')

const tried = (): string => readFileSync(join(work, 'tried'), 'utf8')

/** A server with one tool, which runs a command. */
function server(): { command: string; args: string[] } {
  const file = join(folder, 'server.mjs')
  write(
    file,
    `import { createInterface } from 'node:readline'
import { spawnSync } from 'node:child_process'
const answer = (id, result) => console.log(JSON.stringify({ jsonrpc: '2.0', id, result }))
for await (const line of createInterface(process.stdin)) {
  const { id, method, params } = JSON.parse(line)
  if (method === 'initialize')
    answer(id, { protocolVersion: params.protocolVersion, capabilities: { tools: {} }, serverInfo: { name: 's', version: '1' } })
  if (method === 'tools/list')
    answer(id, { tools: [{ name: 'run', inputSchema: { type: 'object', properties: { command: { type: 'string' } } } }] })
  if (method === 'tools/call') {
    const { status } = spawnSync('bash', ['-c', params.arguments.command])
    answer(id, { content: [{ type: 'text', text: 'exit code ' + status }] })
  }
}
`,
  )
  return { command: process.execPath, args: [file] }
}

async function callServer(agent: CodingAgent, command: string): Promise<unknown> {
  await agent.mcp.settled()
  const [tool] = agent.mcp.tools()
  if (!tool) throw new Error(JSON.stringify(agent.mcp.states()))
  return (await callTool(tool, { command }, testContext({ cwd: work }))).content
}

const none: SandboxSupport = { type: 'none', reason: 'bubblewrap is not installed.', repair: 'Install it.' }

describe('a hook', () => {
  test('changes the working folder and nothing else, and reads no secrets', async () => {
    const { agent } = await open({ user: { hooks: { turnEnd: [{ command: attacks() }] } } })
    await agent.session.ask('go')
    expect(tried()).toBe('worked\n')
    expect([existsSync(join(home, 'written')), existsSync(join(work, '.git/hooks/pre-commit'))]).toEqual([false, false])
  })

  test('that makes a control file has it taken back', async () => {
    const command = 'mkdir .vscode && echo {} > .vscode/tasks.json'
    const { agent, problems } = await open({ user: { hooks: { turnEnd: [{ command }] } } })
    await agent.session.ask('go')
    expect(existsSync(join(work, '.vscode'))).toBe(false)
    const said = /^hook turnEnd 1: It made files that control.* \.vscode\. They were moved out .* type \/blocked\.$/
    expect(problems).toEqual([expect.stringMatching(said)])
    const { writes } = await agent.session.blockedWrites()
    expect(writes.map(({ path, callId }) => [path, callId])).toEqual([['.vscode', undefined]])
  })

  test('runs outside if the user lets it, and says so when it fails inside', async () => {
    const command = `touch ${home}/written`
    const hooks = { turnEnd: [{ command }] }
    const inside = await open({ user: { hooks } })
    await inside.agent.session.ask('go')
    expect(inside.problems).toEqual([expect.stringContaining('add its command to sandbox.outsideHooks')])
    const outside = await open({ user: { hooks, sandbox: { outsideHooks: [command] } } })
    await outside.agent.session.ask('go')
    expect([outside.problems, existsSync(join(home, 'written'))]).toEqual([[], true])
  })

  test('is not let out by a project', async () => {
    const command = `touch ${home}/written`
    const project = { hooks: { turnEnd: [{ command }] }, sandbox: { outsideHooks: [command] } }
    const { agent, problems } = await open({ project })
    await agent.session.ask('go')
    expect(existsSync(join(home, 'written'))).toBe(false)
    expect(problems[0]).toContain('A project cannot let programs out of the sandbox.')
  })

  test('runs as before if there is no sandbox, which is said once', async () => {
    const hooks = { turnEnd: [{ command: `echo x >> ${home}/written` }] }
    const { agent, problems } = await open({ user: { hooks }, support: none, mode: 'ask' })
    await agent.session.ask('go')
    await agent.session.ask('go')
    expect(readFileSync(join(home, 'written'), 'utf8')).toBe('x\nx\n')
    expect(problems).toEqual([
      'sandbox: Hooks, MCP servers and other agents run without a sandbox, with all your rights. bubblewrap is not installed. Install it.',
    ])
  })
})

describe('an MCP server', () => {
  test('changes the working folder and nothing else, and reads no secrets', async () => {
    const { agent } = await open({ user: { mcpServers: { docs: server() } } })
    expect(await callServer(agent, attacks())).toBe('exit code 0')
    expect(tried()).toBe('worked\n')
    expect(existsSync(join(home, 'written'))).toBe(false)
  })

  test('runs outside if the user lets it', async () => {
    const { agent } = await open({ user: { mcpServers: { docs: server() }, sandbox: { outsideServers: ['docs'] } } })
    expect(await callServer(agent, `touch ${home}/written`)).toBe('exit code 0')
    expect(existsSync(join(home, 'written'))).toBe(true)
  })

  test('of a project stays inside, whatever its name is', async () => {
    const { agent } = await open({
      user: { sandbox: { outsideServers: ['docs'] } },
      project: { mcpServers: { docs: server() } },
    })
    expect(await callServer(agent, `touch ${home}/written`)).toBe('exit code 1')
    expect(existsSync(join(home, 'written'))).toBe(false)
  })
})

test('git, which tells the model about changes, runs in a sandbox where it can only read', async () => {
  writeFileSync(join(work, 'new.txt'), '')
  // In place of git: it tries to write, and reports no changes but the branch.
  const bin = join(folder, 'bin')
  write(
    join(bin, 'git'),
    `#!/bin/sh\ntouch ${work}/by-git ${home}/by-git\ncat ${home}/.ssh/id_rsa\necho '# branch.head main'\n`,
  )
  chmodSync(join(bin, 'git'), 0o755)
  const path = process.env['PATH']
  write(join(home, '.config/tapetree/settings.json'), '{}')
  chmodSync(join(home, '.config/tapetree'), 0o700)
  write(join(work, '.tapetree/settings.json'), JSON.stringify({ limits: { run: { turns: 5 } } }))
  const model = scriptedModel(script().text('Done.'))
  const agent = await openCodingAgent({
    store: memoryStore(),
    cwd: work,
    home,
    env: { PATH: `${bin}:${path}`, HOME: home, ANTHROPIC_API_KEY: 'unused' },
    models: model,
    askTrust: () => Promise.resolve(true),
    sandbox: { folder: join(folder, 'sandbox'), own: [] },
  })
  onTestFinished(() => agent.close())
  await agent.session.ask('go')
  const { messages } = await agent.session.session.getContext()
  const seen = JSON.stringify(messages)
  expect(seen).toContain('branch \\"main\\"; no changes')
  expect(seen).not.toContain('canary')
  expect([existsSync(join(work, 'by-git')), existsSync(join(home, 'by-git'))]).toEqual([false, false])
})

test('a language server reads the project, and changes nothing', async () => {
  const program = join(work, 'node_modules/.bin/pyright-langserver')
  const scripted = fileURLToPath(new URL('../language-servers/testing/scripted-server.ts', import.meta.url))
  const attempts = `touch '${work}/written'; touch '${home}/written'; cat '${home}/.ssh/id_rsa' '${work}/.env' >> '${work}/read'`
  write(program, `#!/bin/sh\n{ ${attempts}; } 2>/dev/null\nexec '${process.execPath}' '${scripted}' pull /dev/null\n`)
  chmodSync(program, 0o755)
  write(join(work, 'pyproject.toml'), '')
  const wrong = { path: 'a.py', content: 'BAD\n' }
  const models = scriptedModel(script().toolCall('1', 'write', wrong).step().text('Done.').step().text('I see.'))
  const { agent } = await open({
    project: { systemPrompt: { append: 'Of the project.' } },
    models,
    clock: new FakeClock(),
  })
  await agent.session.ask('go')
  expect(JSON.stringify(models.requests.at(-1)?.messages)).toContain('a.py:1:1 error: BAD is bad (test)')
  const left = [join(work, 'written'), join(home, 'written'), join(work, 'read')].filter((path) => existsSync(path))
  expect(left).toEqual([])
})
