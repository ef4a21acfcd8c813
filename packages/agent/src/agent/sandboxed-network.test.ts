import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openFileStore } from '@tapetree/session/stores/file'
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import { z } from 'zod'
import type { PermissionRequest } from '../permissions/requests.ts'
import type { Rule } from '../permissions/rules.ts'
import { probeSandbox } from '../sandbox/probe.ts'
import { registryHosts } from '../sandbox/registry-hosts.ts'
import { Sandbox, type SandboxOptions } from '../sandbox/sandbox.ts'
import { linesOf, resultsOf } from '../testing/read-session.ts'
import { script, scriptedModel, type ScriptBuilder } from '../testing/scripted-model.ts'
import { allTools } from '../tools/builtin/all-tools.ts'
import { dismissSupervisor } from '../tools/commands/supervisor-process.ts'
import { defineTool } from '../tools/tool.ts'
import { AgentSession } from './agent-session.ts'
import type { AgentSessionOptions } from './agent-session-options.ts'

let upstream: Server
let port: number
let folder: string
let sessions: string
let work: string

beforeAll(async () => {
  upstream = createServer((request, response) => response.end(`hello ${request.headers.host}`)).listen(0, '127.0.0.1')
  await once(upstream, 'listening')
  port = (upstream.address() as AddressInfo).port
})
afterAll(async () => {
  upstream.close()
  await dismissSupervisor()
})
beforeEach(() => {
  // Not below /tmp, which every sandbox replaces.
  folder = realpathSync(mkdtempSync(join(process.cwd(), 'node_modules/.sandboxed-network-')))
  work = join(folder, 'work')
  // Below it, so that boxes of other tests need not hide the socket of a keeper, which may go at any moment.
  sessions = realpathSync(mkdtempSync(join(tmpdir(), 'tapetree-sandboxed-network-')))
  for (const name of ['work', 'home']) mkdirSync(join(folder, name))
  onTestFinished(async () => {
    await vi.waitFor(() => expect(keepers()).toEqual([]), { timeout: 20_000, interval: 50 })
    for (const each of [folder, sessions]) rmSync(each, { recursive: true })
  })
})

interface OpenOptions extends Partial<AgentSessionOptions> {
  sandboxOptions?: Partial<SandboxOptions>
  allowed?: string[]
}

async function open(says: ScriptBuilder, options: OpenOptions = {}): Promise<AgentSession> {
  const { sandboxOptions, allowed = [], ...rest } = options
  const user = allowed.map((match): Rule => ({ effect: 'allow', type: 'fetch', match }))
  const agent = await AgentSession.open({
    model: scriptedModel(says),
    store: openFileStore({ folder: sessions }),
    cwd: work,
    mode: 'sandboxed',
    hasSubagents: false,
    policy: { rules: { user } },
    sandbox: () =>
      Sandbox.open({
        folders: [work],
        home: join(folder, 'home'),
        keep: join(folder, 'keep'),
        // Loopback stands for the internet here.
        hosts: { 'ok.example': '127.0.0.1', 'one.example': '127.0.0.1', 'two.example': '127.0.0.1' },
        idleMs: 100,
        ...sandboxOptions,
      }),
    ...rest,
  })
  onTestFinished(() => agent.close())
  return agent
}

/** A model that runs these commands, one after the other. */
function running(...commands: string[]): ScriptBuilder {
  const says = script()
  for (const [index, command] of commands.entries()) says.toolCall(`call-${index}`, 'bash', { command }).step()
  return says.text('done')
}

const get = (host: string): string => `curl -sS http://${host}:${port}/ 2>&1`

async function blockedOf(agent: AgentSession): Promise<unknown[]> {
  return (await linesOf(agent)).flatMap((line) => (line.type === 'blocked' ? [line.blocked] : []))
}

/** Calls `answer` for each request, and returns the requests. */
function onRequest(agent: AgentSession, answer: (request: PermissionRequest) => void): PermissionRequest[] {
  const requests: PermissionRequest[] = []
  agent.subscribe((event) => {
    if (event.type !== 'line' || event.committed.line.type !== 'permission_request') return
    const { permissionRequest } = event.committed.line
    requests.push(permissionRequest)
    answer(permissionRequest)
  })
  return requests
}

function choosing(agent: AgentSession, optionId: string, text?: string): PermissionRequest[] {
  return onRequest(agent, ({ requestId }) => {
    void agent.answer({ requestId, outcome: 'allowed', optionId, ...(text !== undefined && { text }) })
  })
}

/** The keepers of this test: each has a folder of it open. */
function keepers(): string[] {
  const list = execFileSync('ps', ['-ewwo', 'pid,args'], { encoding: 'utf8' })
  return list
    .split('\n')
    .filter((line) => line.includes('network-keeper-process.ts'))
    .map((line) => line.trim().split(' ')[0] ?? '')
    .filter((pid) => {
      try {
        return execFileSync('ls', ['-l', `/proc/${pid}/fd`], { encoding: 'utf8', stdio: 'pipe' })
          .split('\n')
          .some((line) => line.includes(folder) || line.includes(sessions))
      } catch {
        return false
      }
    })
}

describe('a command that wants to reach a host', () => {
  test('reaches it without a question if a rule allows it, and the log says what was allowed and reached', async () => {
    const agent = await open(running(get('ok.example')), { allowed: ['ok.example'] })
    const requests = choosing(agent, 'reject_once')
    await agent.ask('go')
    const [result] = await resultsOf(agent)
    expect(result).toContain(`hello ok.example:${port}`)
    expect(result).toContain('Hosts reached from the sandbox: ok.example.')
    expect(requests).toEqual([])
    const starts = (await linesOf(agent)).flatMap((line) =>
      line.type === 'tool_start' ? [line.toolStart.sandbox?.hosts] : [],
    )
    expect(starts).toEqual([['ok.example']])
    const events = readFileSync(join(agent.session.localFolder ?? '', 'network/network.jsonl'), 'utf8')
    expect(JSON.parse(events.split('\n')[0] ?? '')).toMatchObject({ type: 'opened', host: 'ok.example' })
  })

  describe('of a registry that a package manager of the user is configured for', () => {
    /** A package manager outside of the working folder that names this host. */
    function configured(host: string): Partial<SandboxOptions> {
      const bin = join(folder, 'bin')
      mkdirSync(bin)
      writeFileSync(join(bin, 'npm'), `#!/bin/sh\necho '{ "registry": "https://${host}/" }'\n`, { mode: 0o755 })
      const env = { PATH: bin }
      return { registryHosts: registryHosts({ home: join(folder, 'home'), folders: [work], env }) }
    }

    test('reaches it without a question, and others with one', async () => {
      const agent = await open(running(`${get('one.example')}; ${get('two.example')}`, get('one.example')), {
        sandboxOptions: configured('one.example'),
        allowed: ['ok.example'],
      })
      const requests = choosing(agent, 'reject_once')
      await agent.ask('go')
      expect(requests.map(({ input }) => input?.['host'])).toEqual(['two.example'])
      expect(requests[0]?.title.split('\n').at(-1)).toBe(
        `In the sandbox: may write in ${work}, may reach registry hosts, ok.example.`,
      )
      const results = await resultsOf(agent)
      for (const result of results) {
        expect(result).toContain(`hello one.example:${port}`)
        expect(result).toContain('Hosts reached from the sandbox: one.example.')
      }
      const starts = (await linesOf(agent)).flatMap((line) =>
        line.type === 'tool_start' ? [line.toolStart.sandbox?.hosts] : [],
      )
      expect(starts).toEqual([['ok.example'], ['ok.example', 'one.example']])
      const events = readFileSync(join(agent.session.localFolder ?? '', 'network/network.jsonl'), 'utf8')
      expect(events).toContain('"opened"')
    })

    test.each(['deny', 'ask'] as const)('does not reach it if a rule of the user says %s', async (effect) => {
      const agent = await open(running(get('one.example')), {
        policy: { rules: { user: [{ effect, type: 'fetch', match: 'one.example' }] } },
        sandboxOptions: configured('one.example'),
        whenUnanswered: 'deny',
      })
      await agent.ask('go')
      const [result] = await resultsOf(agent)
      expect(result).not.toContain('hello')
      expect(await blockedOf(agent)).toMatchObject([{ kind: 'network', what: 'one.example' }])
    })
  })

  test('waits while the user is asked, and an answer for once is for this call', async () => {
    const agent = await open(running(`${get('one.example')}; ${get('one.example')}`, get('one.example')))
    const requests = choosing(agent, 'allow_once')
    await agent.ask('go')
    expect(requests.map(({ callId }) => callId)).toEqual(['call-0', 'call-1'])
    const [{ title, input, tool, runId } = {}] = requests as Partial<PermissionRequest>[]
    expect(title).toMatch(/^Reach one\.example:\d+ from the sandbox, for: curl /)
    expect(title).toContain('No rule allows this host.')
    expect(title?.split('\n').at(-1)).toBe(`In the sandbox: may write in ${work}, asks about hosts.`)
    expect([tool, input?.['host'], runId]).toEqual(['bash', 'one.example', expect.any(String)])
    expect(await resultsOf(agent)).toEqual([
      expect.stringContaining(`hello one.example:${port}hello one.example:${port}`),
      expect.stringContaining(`hello one.example:${port}`),
    ])
    expect(await blockedOf(agent)).toEqual([])
  })

  test('is not asked about a host again that the user allowed in this session', async () => {
    const agent = await open(running(get('one.example'), get('one.example'), get('two.example')))
    const requests = choosing(agent, 'allow_always')
    await agent.ask('go')
    expect(requests.map(({ input }) => input?.['host'])).toEqual(['one.example', 'two.example'])
    expect(requests[0]?.options.map(({ label }) => label)).toContain('Allow in this session: fetching from one.example')
    for (const result of await resultsOf(agent)) expect(result).toContain('hello')
  })

  test('fails with the reason of the user, which the model reads and the log has', async () => {
    const agent = await open(running(get('one.example')))
    onRequest(agent, ({ requestId }) => {
      void agent.answer({ requestId, outcome: 'rejected', text: 'Use the mirror.' })
    })
    await agent.ask('go')
    const [result] = await resultsOf(agent)
    const sentence = 'The sandbox does not allow the host one.example. The user did not allow this: Use the mirror.'
    expect(result).toContain(`The sandbox blocked reaching one.example: ${sentence}`)
    expect(await blockedOf(agent)).toEqual([{ callId: 'call-0', kind: 'network', what: 'one.example', count: 1 }])
  })

  test('is asked about each of its hosts, also at the same time', async () => {
    const both = `${get('one.example')} & ${get('two.example')} & wait`
    const agent = await open(running(both))
    const requests = onRequest(agent, () => {
      const [first, second] = requests
      if (!first || !second) return
      const answers = { 'one.example': 'allow_once', 'two.example': 'reject_once' } as Record<string, string>
      for (const { requestId, input } of [first, second]) {
        const optionId = answers[String(input?.['host'])] ?? ''
        void agent.answer({ requestId, outcome: 'allowed', optionId })
      }
    })
    await agent.ask('go')
    const [result] = await resultsOf(agent)
    expect(result).toContain(`hello one.example:${port}`)
    expect(result).not.toContain(`hello two.example:${port}`)
    expect(result).toContain('The sandbox blocked reaching two.example')
  })

  test('is refused if no user is present, with the host and how to allow it', async () => {
    const agent = await open(running(get('one.example')), { whenUnanswered: 'deny' })
    await agent.ask('go')
    const [result] = await resultsOf(agent)
    expect(result).toContain('The sandbox does not allow the host one.example. No user is present to allow this.')
    expect(result).toContain(String.raw`add \"fetch one.example\" to permissions.allow in your settings`)
  })

  test('asks no more when the user sends a message instead, and fails', async () => {
    const agent = await open(running(get('one.example')))
    const requests = onRequest(agent, () => void agent.prompt('Do something else.', { whenBusy: 'steer' }))
    await agent.ask('go')
    const results = (await linesOf(agent)).flatMap((line) =>
      line.type === 'permission_result' ? [line.permissionResult] : [],
    )
    expect(results).toEqual([{ requestId: requests[0]?.requestId, outcome: 'cancelled' }])
    const [result] = await resultsOf(agent)
    expect(result).toContain('The sandbox does not allow the host one.example.')
  })

  test('asks no more when the run is aborted', async () => {
    const agent = await open(running(get('one.example')))
    onRequest(agent, () => void agent.abort())
    await agent.ask('go')
    expect(agent.state().questions).toEqual([])
  })

  test('asks no more when the run has ended, even if it still runs', async () => {
    const asked = Promise.withResolvers<void>()
    const untilAsked = defineTool({
      name: 'until_asked',
      description: 'Waits.',
      schema: z.strictObject({}),
      access: () => [],
      run: () => asked.promise.then(() => 'asked'),
    })
    const says = script()
      .toolCall('call-0', 'bash', { command: `${get('one.example')} > out; touch ended`, background: true })
      .step()
      .toolCall('call-1', 'until_asked', {})
      .step()
    const agent = await open(says.text('done'), {
      tools: ({ jobs, sandbox }) => [...allTools({ jobs, ...(sandbox && { bash: { sandbox } }) }), untilAsked],
    })
    onRequest(agent, () => asked.resolve())
    await agent.ask('go')
    await vi.waitFor(() => expect(existsSync(join(work, 'ended'))).toBe(true), { timeout: 30_000, interval: 20 })
    expect(readFileSync(join(work, 'out'), 'utf8')).toContain('The sandbox does not allow the host one.example.')
    expect(agent.state().questions).toEqual([])
  })
})

describe('a job', () => {
  test('is reported with the hosts that it reached and was refused, while it runs and when it has ended', async () => {
    const command = `${get('ok.example')}; ${get('one.example')}; touch reached; until [ -e go ]; do sleep 0.05; done`
    const store = openFileStore({ folder: sessions })
    const options = { allowed: ['ok.example'], whenUnanswered: 'deny' as const, store }
    const first = await open(
      script().toolCall('job', 'bash', { command, background: true }).step().text('done'),
      options,
    )
    await first.ask('go')
    await vi.waitFor(() => expect(existsSync(join(work, 'reached'))).toBe(true), { timeout: 30_000, interval: 20 })
    const { id: sessionId } = first.session
    const [jobId = ''] = /job-\w+/.exec(JSON.stringify(await resultsOf(first))) ?? []
    await first.close()

    const says = script().toolCall('running', 'job_output', { jobId }).step()
    says.toolCall('end', 'bash', { command: 'touch go' }).step()
    says.toolCall('ended', 'job_output', { jobId, waitMs: 60_000 }).step().text('done')
    const second = await open(says, { ...options, sessionId })
    await second.ask('go on')
    const [, whileRunning, , ended] = await resultsOf(second)
    for (const result of [whileRunning, ended]) {
      expect(result).toContain('Hosts reached from the sandbox: ok.example.')
      expect(result).toContain('The sandbox blocked reaching one.example: ')
    }
    expect(whileRunning).toContain('Still running.')
    // Once, with the call that started the job.
    expect(await blockedOf(second)).toEqual([{ callId: 'job', kind: 'network', what: 'one.example', count: 1 }])
  })
})

describe('the network of a session', () => {
  test('is not there for commands that only read, and no keeper is started for them', async () => {
    const agent = await open(running('ls'), { allowed: ['ok.example'] })
    await agent.ask('go')
    const starts = (await linesOf(agent)).flatMap((line) =>
      line.type === 'tool_start' ? [line.toolStart.sandbox?.hosts] : [],
    )
    expect(starts).toEqual([[]])
    expect(keepers()).toEqual([])
    expect(readdirSync(agent.session.localFolder ?? '')).not.toContain('network')
  })

  test('is shared by its commands, and hidden from them', async () => {
    const secret = `find ${folder} -name keeper.sock -o -name network.jsonl | wc -l`
    const store = openFileStore({ folder: join(folder, 'sessions') })
    const agent = await open(running(`touch x; ${secret}`), { store })
    await agent.ask('go')
    const [result] = await resultsOf(agent)
    expect(result).toContain('"0')
    expect(keepers()).toHaveLength(1)
    await agent.close()
    await vi.waitFor(() => expect(keepers()).toEqual([]), { timeout: 20_000, interval: 50 })
  })

  test('is missing, and not open, if its keeper cannot start', async () => {
    const support = await probeSandbox()
    if (support.type === 'none') throw new Error(support.reason)
    const broken = join(folder, 'bwrap')
    writeFileSync(
      broken,
      `#!/bin/sh\n[ "$1 $2" = "--unshare-user --unshare-net" ] && exit 1\nexec ${support.path} "$@"\n`,
    )
    chmodSync(broken, 0o755)
    const agent = await open(running(`echo runs; ${get('ok.example')}; ${get('127.0.0.1')}`), {
      allowed: ['ok.example'],
      sandboxOptions: { support: { ...support, path: broken } },
    })
    await agent.ask('go')
    const [result] = await resultsOf(agent)
    expect(result).toContain('runs')
    expect(result).not.toContain('hello')
    expect(result).toContain('The sandbox blocked reaching ok.example')
  })
})
