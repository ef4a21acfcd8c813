import { memoryStore } from '@tapetree/session'
import { describe, expect, test } from 'vitest'
import type { GateCall } from '../tools/tool.ts'
import { PermissionGate, type GateSandbox } from './gate.ts'
import { judgeCommand } from './judge-command.ts'
import { judgeCall } from './judge-call.ts'
import type { Judgement, Policy } from './policy.ts'
import { Requests } from './requests.ts'
import { noRules, type Rule } from './rules.ts'

const cwd = '/repo'

function policyWith(given: Partial<Policy> & { user?: Rule[] } = {}): Policy {
  const { user = [], ...rest } = given
  return { mode: 'sandboxed', hasSandbox: true, cwd, home: '/home/me', rules: { ...noRules, user }, ...rest }
}

function judge(command: string, given: Partial<Policy> & { user?: Rule[] } = {}): Judgement {
  return judgeCommand(command, { cwd, policy: policyWith(given) })
}

const reading = { effect: 'allow', box: 'read-only' }
const inside = { effect: 'allow', box: 'writable' }

describe('in mode sandboxed', () => {
  test.each(['ls -la', 'git log --oneline -5', 'cat package.json | head -5', 'rg -n foo src 2>/dev/null'])(
    'a command that only reads runs in a read-only sandbox: %s',
    (command) => expect(judge(command)).toEqual(reading),
  )

  test.each([
    'npm test',
    'npm install zod',
    'make',
    './a',
    'echo x > notes.txt',
    'echo x > /srv/elsewhere',
    'eval "$x"',
    'bash -c "$(cat x)"',
    'for f in *.ts; do node "$f"; done',
    'git commit -m x',
    'git clone https://example.com/a',
    'PATH=. ls',
  ])('any other command runs in a sandbox with the working folder, even if it cannot be analyzed: %s', (command) =>
    expect(judge(command)).toEqual(inside),
  )

  test.each([
    'git push',
    'git -C sub push --force',
    '/usr/bin/git fetch origin',
    'cd sub && docker ps',
    'sudo make install',
    'timeout 60 ssh host ls',
    "bash -c 'gh pr create'",
    'npm publish',
    'env X=1 kubectl get pods',
    'make && git push',
  ])('a program that must leave the sandbox requires a request: %s', (command) =>
    expect(judge(command)).toMatchObject({ effect: 'ask' }),
  )

  test('what the user allows because it must leave the sandbox runs outside', () => {
    expect(judge('git push')).not.toHaveProperty('box')
    expect(judge('cat .env')).not.toHaveProperty('box')
    expect(judge('echo x > .git/hooks/pre-commit')).not.toHaveProperty('box')
  })

  test.each([
    'cat .env',
    'cp x .git/hooks/post-commit',
    'echo x >> .github/workflows/ci.yml',
    'node x.js ~/.ssh/id_rsa',
  ])('secrets and control files that a command names require a request: %s', (command) =>
    expect(judge(command)).toMatchObject({ effect: 'ask' }),
  )

  test('rules deny and ask as in other modes; what an ask rule lets pass runs in the sandbox', () => {
    const user: Rule[] = [
      { effect: 'deny', type: 'command', match: 'npm test' },
      { effect: 'ask', type: 'command', match: 'make' },
      { effect: 'deny', type: 'write', match: './locked' },
    ]
    expect(judge('npm test', { user })).toMatchObject({ effect: 'deny' })
    expect(judge('bash -c "npm test"', { user })).toMatchObject({ effect: 'deny' })
    expect(judge('make', { user })).toMatchObject({ effect: 'ask', box: 'writable' })
    expect(judge('echo x > locked/a', { user })).toMatchObject({ effect: 'deny' })
    expect(judge('eval "$x"', { user })).toMatchObject({ effect: 'ask', box: 'writable' })
  })

  test('a rule lets a program out of the sandbox, but nothing else on its line', () => {
    const user: Rule[] = [{ effect: 'allow', type: 'command', match: 'docker ps' }]
    expect(judge('docker ps', { user })).toEqual({ effect: 'allow' })
    expect(judge('docker ps | grep web', { user })).toEqual({ effect: 'allow' })
    expect(judge('docker ps && ./x', { user })).toMatchObject({ effect: 'ask' })
    expect(judge('docker ps; eval "$x"', { user })).toMatchObject({ effect: 'ask' })
    expect(judge('docker ps > out.txt', { user })).toMatchObject({ effect: 'ask' })
  })

  test('a command that a rule lets read a secret runs outside of the sandbox', () => {
    const user: Rule[] = [{ effect: 'allow', type: 'read', match: './.env' }]
    expect(judge('cat .env', { user })).toEqual({ effect: 'allow' })
    expect(judge('cat .env; ./send', { user })).toMatchObject({ effect: 'ask' })
  })

  test('a reason to run outside is always a question, without an option for the session', () => {
    for (const command of ['ls', 'npm test', 'git push']) {
      const user: Rule[] = [{ effect: 'allow', type: 'command', match: `${command} *` }]
      const judgement = judgeCommand(command, { cwd, policy: policyWith({ user }), outside: 'It needs the daemon.' })
      expect(judgement).toMatchObject({
        effect: 'ask',
        reason: expect.stringContaining('It needs the daemon.') as string,
      })
      expect(judgement).not.toHaveProperty('grant')
      expect(judgement).not.toHaveProperty('box')
    }
    const user: Rule[] = [{ effect: 'deny', type: 'command', match: 'npm test' }]
    const denied = judgeCommand('npm test', { cwd, policy: policyWith({ user }), outside: 'because' })
    expect(denied.effect).toBe('deny')
  })

  test('files in the working folder are written without a request, others are not', () => {
    const write = (path: string): string =>
      judgeCall({ tool: 'write', readOnly: false, access: [{ type: 'write', path }] }, policyWith()).effect
    expect(write('/repo/src/a.ts')).toBe('allow')
    expect(write('/repo/.vscode/tasks.json')).toBe('ask')
    expect(write('/srv/a')).toBe('ask')
  })

  test('without a sandbox, every command and every write is judged as in mode ask', () => {
    const commands = ['npm test', 'git push', 'ls', 'eval "$x"', 'cat .env', 'rm -rf dist', 'echo x > a']
    for (const command of commands) {
      expect(judge(command, { hasSandbox: false }), command).toEqual(judge(command, { mode: 'ask' }))
    }
    const access = [{ type: 'write' as const, path: '/repo/a' }]
    expect(judgeCall({ tool: 'write', readOnly: false, access }, policyWith({ hasSandbox: false })).effect).toBe('ask')
  })
})

describe('a gate with a sandbox', () => {
  async function gateWith(sandbox: Partial<GateSandbox>): Promise<{
    requests: Requests
    gate: PermissionGate
    admit: (command: string, outside?: string) => ReturnType<PermissionGate['admit']>
  }> {
    const requests = new Requests(await memoryStore().create())
    const gate = new PermissionGate({
      requests,
      policy: () => ({ mode: 'sandboxed', cwd, home: '/home/me' }),
      sandbox: {
        isUsable: () => Promise.resolve(true),
        describe: () => Promise.resolve('may write in /repo, may reach registry hosts'),
        findUnheld: () => Promise.resolve(undefined),
        ...sandbox,
      },
    })
    let count = 0
    return {
      requests,
      gate,
      admit: (command, outside) => {
        const access = [
          { type: 'command' as const, command, cwd, canSandbox: true, ...(outside !== undefined && { outside }) },
        ]
        const call: GateCall = {
          runId: 'run',
          callId: `call-${++count}`,
          tool: 'bash',
          readOnly: false,
          input: {},
          access,
        }
        return gate.admit(call, new AbortController().signal)
      },
    }
  }

  async function answerWhenAsked(requests: Requests): Promise<string> {
    while (requests.pending.length === 0) await new Promise((resolve) => setImmediate(resolve))
    const [request] = requests.pending
    if (!request) throw new Error('There is no request.')
    await requests.answer({ requestId: request.requestId, outcome: 'allowed', optionId: 'allow_once' })
    return request.title
  }

  test('allows a command only in the sandbox that it was judged for', async () => {
    const { admit } = await gateWith({})
    expect(await admit('ls')).toEqual({ type: 'allowed', box: 'read-only' })
    expect(await admit('npm test')).toEqual({ type: 'allowed', box: 'writable' })
  })

  test('asks about the command of a tool that cannot use the sandbox', async () => {
    const { gate, requests } = await gateWith({})
    const access = [{ type: 'command' as const, command: 'npm test', cwd }]
    const call: GateCall = { runId: 'run', callId: 'other', tool: 'deploy', readOnly: false, input: {}, access }
    const verdict = gate.admit(call, new AbortController().signal)
    await answerWhenAsked(requests)
    expect(await verdict).toEqual({ type: 'allowed' })
  })

  test('says in a request that the command will run outside', async () => {
    const { admit, requests } = await gateWith({})
    const verdict = admit('npm test', 'The tests start a container.')
    const title = await answerWhenAsked(requests)
    expect(title).toContain('outside of the sandbox: The tests start a container.')
    expect(title).toContain('with all your rights')
    expect(await verdict).toEqual({ type: 'allowed' })
  })

  test('asks before a command deletes files that no snapshot holds, and then runs it in the sandbox', async () => {
    const asked: unknown[] = []
    const { admit, requests } = await gateWith({
      findUnheld: (deletions) => {
        asked.push(deletions)
        return Promise.resolve('/repo/data/own.db')
      },
    })
    const verdict = admit('rm -rf data')
    expect(await answerWhenAsked(requests)).toMatch(
      /It deletes \/repo\/data\/own\.db, which no snapshot holds\.\nIn the sandbox: may write in \/repo, may reach registry hosts\.$/,
    )
    expect(await verdict).toEqual({ type: 'allowed', box: 'writable' })
    for (const command of ['git clean -fdx', 'find . -name "*.log" -delete', 'rm $x', 'ls | xargs rm']) {
      const later = admit(command)
      await answerWhenAsked(requests)
      await later
    }
    expect(asked).toEqual([
      [{ path: '/repo/data' }],
      [{ path: '/repo' }],
      [{ path: '/repo', name: '*.log' }],
      [{ path: '/repo' }],
      [{ path: '/repo' }],
    ])
  })

  test.each([
    ['find . -not -name "*.log" -delete'],
    ['find . -name "*.log" -or -size 1 -delete'],
    ['find . -name "[o]wn.db" -delete'],
    ['find . -name "own\\?db" -delete'],
  ])('takes all files as deleted if the names cannot be told: %s', async (command) => {
    const asked: unknown[] = []
    const findUnheld = (deletions: unknown): Promise<undefined> => Promise.resolve(void asked.push(deletions))
    const { admit } = await gateWith({ findUnheld })
    await admit(command)
    expect(asked).toEqual([[{ path: '/repo' }]])
  })

  test('asks as in mode ask if the sandbox cannot be used', async () => {
    const { admit, requests } = await gateWith({ isUsable: () => Promise.resolve(false) })
    const verdict = admit('npm test')
    expect(await answerWhenAsked(requests)).not.toContain('sandbox')
    expect(await verdict).toEqual({ type: 'allowed' })
    expect(await admit('ls')).toEqual({ type: 'allowed' })
  })
})
