import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { memoryStore } from '@tapetree/session'
import { fromDisk, type DiskLine, type Line } from '@tapetree/session/format'
import { openFileStore } from '@tapetree/session/stores/file'
import { afterAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import type { SandboxSupport } from '../sandbox/probe.ts'
import { Sandbox } from '../sandbox/sandbox.ts'
import { script, scriptedModel, type ScriptBuilder } from '../testing/scripted-model.ts'
import { dismissSupervisor } from '../tools/commands/supervisor-process.ts'
import { AgentSession } from './agent-session.ts'
import type { AgentSessionOptions } from './agent-session-options.ts'

let folder: string
let work: string

beforeEach(() => {
  // Not below /tmp, which every sandbox replaces.
  folder = realpathSync(mkdtempSync(join(process.cwd(), 'node_modules/.sandboxed-commands-')))
  work = join(folder, 'work')
  mkdirSync(join(folder, 'home/.config'), { recursive: true })
  execFileSync('git', ['init', '-q', work])
  writeFileSync(join(work, '.env'), 'SECRET=canary')
  onTestFinished(() => rmSync(folder, { recursive: true }))
})
afterAll(() => dismissSupervisor())

async function open(
  says: ScriptBuilder,
  options: Partial<AgentSessionOptions> & { support?: SandboxSupport } = {},
): Promise<AgentSession> {
  const { support, ...rest } = options
  const agent = await AgentSession.open({
    model: scriptedModel(says),
    store: openFileStore({ folder: join(folder, 'sessions') }),
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

async function linesOf(agent: AgentSession): Promise<Line[]> {
  const lines: Line[] = []
  for await (const line of agent.session.lines()) {
    if (line.type === 'line') lines.push(fromDisk(JSON.parse(line.text) as DiskLine, line.seq))
  }
  return lines
}

async function resultsOf(agent: AgentSession): Promise<string[]> {
  const { messages } = await agent.session.getContext()
  return messages.flatMap(({ message }) => (message.role === 'tool' ? [JSON.stringify(message.content)] : []))
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

  test('records what the sandbox blocked, and the model reads how to ask for it', async () => {
    const elsewhere = join(folder, 'home/x')
    const command = `touch ${elsewhere}; cp .env copy; node -e "require('fs').writeFileSync('${elsewhere}', '')"; curl -sS http://example.com; true`
    const agent = await open(saying(scriptOf(command)))
    await agent.ask('go')
    const blocked = (await linesOf(agent)).flatMap((line) => (line.type === 'blocked' ? [line.blocked] : []))
    expect(blocked.map(({ kind, what }) => [kind, what])).toEqual(
      expect.arrayContaining([
        ['write', elsewhere],
        ['network', 'example.com'],
        ['hidden', '.env'],
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
    expect(readdirSync(join(folder, 'keep/taken-back'))).toHaveLength(1)
  })

  test('keeps new control files if the user agrees, and harmless repositories without a question', async () => {
    const agent = await open(
      saying({ command: 'git init -q harmless' }, scriptOf('mkdir .vscode; echo {} > .vscode/tasks.json')),
    )
    const titles = answering(agent, 'Put them back')
    await agent.ask('go')
    expect(titles).toHaveLength(1)
    expect([existsSync(join(work, '.vscode/tasks.json')), existsSync(join(work, 'harmless/.git'))]).toEqual([
      true,
      true,
    ])
  })

  test('that makes a control file in the background has it taken back when the agent reads its end', async () => {
    const store = openFileStore({ folder: join(folder, 'sessions') })
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
