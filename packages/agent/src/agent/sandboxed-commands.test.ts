import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { memoryStore } from '@tapetree/session'
import { openFileStore } from '@tapetree/session/stores/file'
import { afterAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { probeSandbox, type SandboxSupport } from '../sandbox/probe.ts'
import { Sandbox } from '../sandbox/sandbox.ts'
import { linesOf, resultsOf } from '../testing/read-session.ts'
import { script, scriptedModel, type ScriptBuilder } from '../testing/scripted-model.ts'
import { dismissSupervisor } from '../tools/commands/supervisor-process.ts'
import { AgentSession } from './agent-session.ts'
import type { AgentSessionOptions } from './agent-session-options.ts'

let folder: string
let work: string
let sessions: string

beforeEach(() => {
  // Not below /tmp, which every sandbox replaces.
  folder = realpathSync(mkdtempSync(join(process.cwd(), 'node_modules/.sandboxed-commands-')))
  work = join(folder, 'work')
  mkdirSync(join(folder, 'home/.config'), { recursive: true })
  execFileSync('git', ['init', '-q', work])
  writeFileSync(join(work, '.env'), 'SECRET=canary')
  // A box replaces /tmp, so boxes of other tests need not hide the socket of a session's network, which may go at any moment.
  sessions = realpathSync(mkdtempSync(join(tmpdir(), 'tapetree-sandboxed-commands-')))
  onTestFinished(() => {
    for (const each of [folder, sessions]) rmSync(each, { recursive: true })
  })
})
afterAll(() => dismissSupervisor())

async function open(
  says: ScriptBuilder,
  options: Partial<AgentSessionOptions> & { support?: SandboxSupport } = {},
): Promise<AgentSession> {
  const { support, ...rest } = options
  const agent = await AgentSession.open({
    model: scriptedModel(says),
    store: openFileStore({ folder: sessions }),
    cwd: work,
    mode: 'sandboxed',
    hasSubagents: false,
    sandbox: () =>
      Sandbox.open({
        folders: [work],
        home: join(folder, 'home'),
        keep: join(folder, 'keep'),
        ...(support && { support }),
      }),
    snapshotsFolder: join(folder, 'snapshots'),
    ...rest,
  })
  onTestFinished(() => agent.close())
  return agent
}

/** A model that makes these calls of bash, one after the other. */
function saying(...calls: Record<string, unknown>[]): ScriptBuilder {
  const says = script()
  for (const [index, input] of calls.entries()) says.toolCall(`call-${index}`, 'bash', input).step()
  return says.text('done')
}

/** The gate does not see what a script does. */
function scriptOf(command: string): { command: string } {
  writeFileSync(join(work, 'run.sh'), command)
  return { command: 'bash run.sh' }
}

async function blockedOf(agent: AgentSession): Promise<unknown[]> {
  return (await linesOf(agent)).flatMap((line) => (line.type === 'blocked' ? [line.blocked] : []))
}

/** Answers every request with the option that has this id or label, and returns the titles. */
function answering(agent: AgentSession, choose: string): string[] {
  const titles: string[] = []
  agent.subscribe((event) => {
    if (event.type !== 'line' || event.committed.line.type !== 'permission_request') return
    const { requestId, title, options } = event.committed.line.permissionRequest
    titles.push(title)
    const option = options.find(({ optionId, label }) => optionId === choose || label === choose)
    if (!option) throw new Error(`There is no option ${choose} in ${JSON.stringify(options)}.`)
    void agent.answer({ requestId, outcome: 'allowed', optionId: option.optionId })
  })
  return titles
}

describe('a command in mode sandboxed', () => {
  test('runs without a question in a sandbox that the log describes', async () => {
    const agent = await open(saying({ command: 'echo made > out.txt; ls' }, { command: 'ls' }))
    const titles = answering(agent, 'allow_once')
    await agent.ask('go')
    expect(titles).toEqual([])
    const starts = (await linesOf(agent)).flatMap((line) =>
      line.type === 'tool_start' ? [line.toolStart.sandbox] : [],
    )
    expect(starts).toEqual([
      {
        backend: 'bubblewrap',
        writable: [work],
        hosts: [],
        home: expect.stringMatching(/^(?:read-only|overlay)$/) as string,
      },
      {
        backend: 'bubblewrap',
        writable: [],
        hosts: [],
        home: expect.stringMatching(/^(?:read-only|overlay)$/) as string,
      },
    ])
    expect(existsSync(join(work, 'out.txt'))).toBe(true)
  })

  test.each([
    ['goes', 'service/leaving.sock'],
    ['goes with its folder', 'service'],
  ])('says that it did not start when a socket that it must not reach %s at the last moment', async (_, goes) => {
    const socket = join(folder, 'home/service/leaving.sock')
    mkdirSync(dirname(socket))
    const server = createServer().listen(socket)
    await once(server, 'listening')
    onTestFinished(() => void server.close())
    const support = await probeSandbox()
    if (support.type === 'none') throw new Error(support.reason)
    const path = join(folder, 'bwrap')
    writeFileSync(
      path,
      `#!/bin/sh\ncase "$*" in *leaving.sock*) rm -r ${join(folder, 'home', goes)};; esac\nexec ${support.path} "$@"`,
      {
        mode: 0o755,
      },
    )
    const agent = await open(saying({ command: 'echo runs' }, { command: 'echo runs' }), {
      support: { ...support, path },
    })
    await agent.ask('go')
    const [first, second] = await resultsOf(agent)
    expect(first).toContain(
      `It did not start, because ${socket}, a socket that the sandbox hides, went away at that moment. Run it again.`,
    )
    expect(first).not.toContain('The sandbox blocked')
    expect(second).toContain('"runs')
    expect(await blockedOf(agent)).toEqual([])
  })

  test('records what the sandbox blocked, and the model reads how to ask for it', async () => {
    const elsewhere = join(folder, 'home/x')
    const command = `touch ${elsewhere}; cp .env copy; node -e "require('fs').writeFileSync('${elsewhere}', '')"; curl -sS http://example.com; true`
    const agent = await open(saying(scriptOf(command)), { whenUnanswered: 'deny' })
    await agent.ask('go')
    expect(await blockedOf(agent)).toEqual(
      expect.arrayContaining([
        expect.objectContaining({ kind: 'write', what: elsewhere }),
        expect.objectContaining({ kind: 'network', what: 'example.com' }),
        expect.objectContaining({ kind: 'hidden', what: '.env' }),
      ]),
    )
    const [result = ''] = await resultsOf(agent)
    expect(result).toContain(`The sandbox blocked writing ${elsewhere}`)
    expect(result).toContain('reaching example.com')
    expect(result).toContain('call bash again with `outside` and the reason')
    expect(existsSync(elsewhere)).toBe(false)
  })

  test('runs outside after a question that shows the reason, and only that once', async () => {
    const elsewhere = join(folder, 'home/x')
    const call = { command: `touch ${elsewhere}`, outside: 'The tool needs its settings.' }
    const agent = await open(saying(call, { command: `touch ${elsewhere}-2; true` }))
    const titles = answering(agent, 'allow_once')
    await agent.ask('go')
    expect(titles).toEqual([expect.stringContaining('outside of the sandbox: The tool needs its settings.')])
    expect([existsSync(elsewhere), existsSync(`${elsewhere}-2`)]).toEqual([true, false])
  })

  test.each([
    ['settings of an editor', 'mkdir .vscode && echo {} > .vscode/tasks.json', '.vscode'],
    ['ignored settings', 'echo .claude > .gitignore; mkdir .claude; echo {} > .claude/settings.json', '.claude'],
    ['a hook in a repository without any', 'mkdir .git/hooks && echo x > .git/hooks/pre-commit', '.git/hooks'],
    ['a hook of a new repository', 'git init -q sub && echo x > sub/.git/hooks/post-checkout', 'sub/.git'],
    ['settings of a new repository', 'git init -q sub && git -C sub config core.fsmonitor ./x', 'sub/.git'],
    ['a link to settings', 'mkdir a && ln -s a .vscode', '.vscode'],
    ['a bare repository', 'mkdir -p b/refs b/objects && echo "ref: x" > b/HEAD && echo "[core]" > b/config', 'b'],
  ])('that makes a control file (%s) has it taken back before the result counts', async (_, command, made) => {
    rmSync(join(work, '.git/hooks'), { recursive: true })
    const agent = await open(saying(scriptOf(command)))
    const titles = answering(agent, 'Leave them out')
    let isThereAtResult: boolean | undefined
    agent.subscribe((event) => {
      if (event.type === 'line' && event.committed.line.type === 'permission_request')
        isThereAtResult = existsSync(join(work, made))
    })
    await agent.ask('go')
    expect(titles).toEqual([expect.stringContaining(made)])
    expect([isThereAtResult, existsSync(join(work, made))]).toEqual([false, false])
    expect(await resultsOf(agent)).toEqual([expect.stringContaining('were moved out of the working folder')])
    // Nothing is lost.
    const { writes } = await agent.blockedWrites()
    expect(writes.map(({ path, callId, isOccupied }) => [path, callId, isOccupied])).toEqual([[made, 'call-0', false]])
    expect(await blockedOf(agent)).toEqual([
      { callId: 'call-0', kind: 'write', what: made, count: 1, kept: writes[0]?.id },
    ])
  })

  test('has its control files listed with their contents, and the user applies one later', async () => {
    const agent = await open(
      saying(scriptOf('mkdir -p .vscode .claude; echo {} > .vscode/tasks.json; ln -s /etc/passwd .vscode/link')),
    )
    answering(agent, 'Leave them out')
    await agent.ask('go')
    const { writes } = await agent.blockedWrites()
    expect(writes.map(({ path }) => path).toSorted()).toEqual(['.claude', '.vscode'])
    const editor = writes.find(({ path }) => path === '.vscode')
    expect(editor?.files).toEqual([
      { path: '.vscode/link', sizeBytes: 11, target: '/etc/passwd' },
      { path: '.vscode/tasks.json', sizeBytes: 3, text: '{}\n' },
    ])
    const id = editor?.id ?? ''
    await agent.applyBlocked(id, { cmd: 'c-1', client: 'someone' })
    expect(readFileSync(join(work, '.vscode/tasks.json'), 'utf8')).toBe('{}\n')
    const lines = await linesOf(agent)
    expect(lines.at(-1)).toMatchObject({
      type: 'blocked',
      cause: { cmd: 'c-1', client: 'someone' },
      blocked: { callId: 'call-0', kind: 'write', what: '.vscode', count: 1, kept: id, outcome: 'applied' },
    })
    await expect(agent.applyBlocked(id)).rejects.toThrow('There is no blocked write')
    await agent.discardBlocked(writes.find(({ path }) => path === '.claude')?.id ?? '')
    expect((await agent.blockedWrites()).writes).toEqual([])
    expect((await blockedOf(agent)).at(-1)).toMatchObject({ what: '.claude', outcome: 'discarded' })
    expect(existsSync(join(work, '.claude'))).toBe(false)
  })

  test('has its control files applied only to a free path in the working folder', async () => {
    const agent = await open(saying(scriptOf('mkdir -p a/.vscode .vscode; echo 1 > .vscode/x; echo 2 > a/.vscode/x')))
    answering(agent, 'Leave them out')
    await agent.ask('go')
    const { writes } = await agent.blockedWrites()
    const idOf = (path: string): string => writes.find((write) => write.path === path)?.id ?? ''
    mkdirSync(join(work, '.vscode'))
    rmSync(join(work, 'a'), { recursive: true })
    symlinkSync(join(folder, 'home'), join(work, 'a'))
    await expect(agent.applyBlocked(idOf('.vscode'))).rejects.toThrow('it exists already')
    await expect(agent.applyBlocked(idOf('a/.vscode'))).rejects.toThrow('not in the working folder')
    await expect(agent.applyBlocked('../../x.0')).rejects.toThrow('There is no blocked write')
    expect(existsSync(join(folder, 'home/.vscode'))).toBe(false)
    expect((await agent.blockedWrites()).writes.map(({ isOccupied }) => isOccupied)).toContain(true)
  })

  test('that still runs does not lose a control file that the user applied meanwhile', async () => {
    const store = openFileStore({ folder: sessions })
    writeFileSync(join(work, 'wait.sh'), 'until [ -e go ]; do sleep 0.05; done')
    const says = script()
      .toolCall('1', 'bash', { command: 'bash wait.sh', background: true })
      .step()
      .toolCall('2', 'bash', scriptOf('mkdir .vscode; echo {} > .vscode/tasks.json'))
      .step()
      .text('done')
    const first = await open(says, { store })
    answering(first, 'Leave them out')
    await first.ask('go')
    const [jobId = ''] = /job-\w+/.exec(JSON.stringify(await resultsOf(first))) ?? []
    const { writes } = await first.blockedWrites()
    await first.applyBlocked(writes[0]?.id ?? '')
    writeFileSync(join(work, 'go'), '')
    const second = await open(script().toolCall('3', 'job_output', { jobId, waitMs: 60_000 }).step().text('done'), {
      store,
      sessionId: first.session.id,
    })
    await second.ask('go on')
    expect(existsSync(join(work, '.vscode/tasks.json'))).toBe(true)
    expect((await second.blockedWrites()).writes).toEqual([])
  })

  test('has what it wrote to an overlay of the home folder listed', async () => {
    const agent = await open(saying({ command: 'true' }))
    mkdirSync(join(folder, 'keep/home-written/.npm/x'), { recursive: true })
    writeFileSync(join(folder, 'keep/home-written/.npm/x/y'), 'cached')
    expect((await agent.blockedWrites()).home).toEqual({
      folder: join(folder, 'keep/home-written'),
      files: [{ path: '.npm/x/y', sizeBytes: 6 }],
      fileCount: 1,
    })
  })

  test('keeps new control files if the user agrees, and harmless repositories without a question', async () => {
    const agent = await open(
      saying({ command: 'git init -q harmless' }, scriptOf('mkdir .vscode; echo {} > .vscode/tasks.json')),
    )
    const titles = answering(agent, 'Put them back')
    await agent.ask('go')
    expect(titles).toHaveLength(1)
    expect(await blockedOf(agent)).toEqual([
      expect.not.objectContaining({ outcome: 'applied' }),
      expect.objectContaining({ what: '.vscode', outcome: 'applied' }),
    ])
    expect([existsSync(join(work, '.vscode/tasks.json')), existsSync(join(work, 'harmless/.git'))]).toEqual([
      true,
      true,
    ])
  })

  test('has its control files left out without a question if nobody can answer', async () => {
    const agent = await open(saying(scriptOf('mkdir .vscode; echo {} > .vscode/settings.json')), {
      whenUnanswered: 'deny',
    })
    const titles = answering(agent, 'Put them back')
    await agent.ask('go')
    expect([titles, existsSync(join(work, '.vscode'))]).toEqual([[], false])
    expect((await resultsOf(agent))[0]).toContain('Only the user can put them back, with /blocked.')
  })

  test('that makes a control file in the background has it taken back when the agent reads its end', async () => {
    const store = openFileStore({ folder: sessions })
    const first = await open(saying({ ...scriptOf('mkdir .vscode; sleep 0.2'), background: true }), { store })
    await first.ask('go')
    const [jobId = ''] = /job-\w+/.exec(JSON.stringify(await resultsOf(first))) ?? []
    const { id: sessionId } = first.session
    const says = script()
      .toolCall('1', 'job_output', { jobId, waitMs: 60_000 })
      .step()
      .toolCall('2', 'job_output', { jobId })
      .step()
      .text('done')
    const second = await open(says, { store, sessionId })
    const titles = answering(second, 'Leave them out')
    await second.ask('go on')
    expect(titles).toEqual([expect.stringContaining('.vscode')])
    expect(existsSync(join(work, '.vscode'))).toBe(false)
  })

  test('asks before it deletes a file that no snapshot holds', async () => {
    writeFileSync(join(work, '.gitignore'), 'own.db\n')
    writeFileSync(join(work, 'own.db'), 'data')
    writeFileSync(join(work, 'held.txt'), 'text')
    const agent = await open(saying({ command: 'rm held.txt' }, { command: 'rm own.db' }))
    const titles = answering(agent, 'reject_once')
    await agent.ask('go')
    expect(titles).toEqual([expect.stringContaining('It deletes own.db, which no snapshot holds.')])
    expect([existsSync(join(work, 'held.txt')), existsSync(join(work, 'own.db'))]).toEqual([false, true])
  })
})

describe('without a working sandbox', () => {
  const support: SandboxSupport = { type: 'none', reason: 'bubblewrap is not installed.', repair: 'Install it.' }

  test('a session asks as in mode ask, and the log says why', async () => {
    const agent = await open(saying({ command: 'touch made' }), { support })
    expect(agent.state().mode).toBe('ask')
    expect(await agent.sandboxProblem()).toContain('bubblewrap is not installed. Install it.')
    const titles = answering(agent, 'allow_once')
    await agent.ask('go')
    expect(titles).toHaveLength(1)
    const modes = (await linesOf(agent)).flatMap((line) =>
      line.type === 'permission_mode' ? [line.permissionMode] : [],
    )
    expect(modes.at(-1)).toEqual({
      mode: 'ask',
      reason: expect.stringContaining('bubblewrap is not installed') as string,
    })
  })

  test('mode sandboxed cannot be chosen', async () => {
    const agent = await open(script(), { support, mode: 'ask' })
    await expect(agent.setMode('sandboxed')).rejects.toThrow('bubblewrap is not installed.')
    expect(agent.state().mode).toBe('ask')
  })

  test('a session of a program without a sandbox judges commands as in mode ask', async () => {
    const agent = await AgentSession.open({
      model: scriptedModel(saying({ command: 'touch made' })),
      store: memoryStore(),
      cwd: work,
      mode: 'sandboxed',
      whenUnanswered: 'deny',
    })
    onTestFinished(() => agent.close())
    await agent.ask('go')
    expect(existsSync(join(work, 'made'))).toBe(false)
  })
})
