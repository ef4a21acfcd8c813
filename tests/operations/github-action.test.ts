import { execFileSync } from 'node:child_process'
import { chmodSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { bundle } from '../../packages/cli/src/testing/bundled-command.ts'
import { fakeHome, type FakeHome } from '../../packages/cli/src/testing/fake-home.ts'
import { runAction, type ActionEnd } from '../../scripts/run-action.ts'

const root = resolve(import.meta.dirname, '../..')
let home: FakeHome
let folder: string

beforeEach(async () => {
  home = await fakeHome({ settings: { permissions: { mode: undefined } } })
  folder = resolve(home.cwd, '..')
  mkdirSync(join(folder, 'bin'))
  execFileSync('git', ['init', '-q', home.cwd])
  program('tapetree', `echo "tapetree $*" >> ${folder}/calls\nexec ${process.execPath} ${bundle} "$@"`)
  program('gh', `echo "gh $* token=$GH_TOKEN" >> ${folder}/calls`)
})
afterEach(() => home[Symbol.asyncDispose]())

function program(name: string, body: string): void {
  writeFileSync(join(folder, 'bin', name), `#!/bin/bash\n${body}\n`)
  chmodSync(join(folder, 'bin', name), 0o755)
}

interface Event {
  name?: string
  payload?: object
}

const repo = (name: string): object => ({ repo: { full_name: name } })
const pullRequest = (head: string): Event => ({
  name: 'pull_request',
  payload: { pull_request: { number: 7, head: repo(head), base: repo('me/project') } },
})
const own = pullRequest('me/project')

/** Runs all steps with the command as published, a scripted model and a real sandbox. */
function run({ name = 'push', payload = {} }: Event = {}, env: Record<string, string> = {}): Promise<ActionEnd> {
  const eventPath = join(folder, 'event.json')
  writeFileSync(eventPath, JSON.stringify(payload))
  const say = (text: string): { type: 'text'; chunks: string[] } => ({ type: 'text', chunks: [text] })
  const input = JSON.stringify({ command: 'touch made; env' })
  home.provider.script(
    { type: 'answer', content: [{ type: 'tool_call', id: 'c1', name: 'bash', chunks: [input] }] },
    { type: 'answer', content: [say('All **done**.')] },
  )
  return runAction({
    inputs: { prompt: '--yes; $(touch injected)', 'github-token': 'secret-token', 'max-minutes': '5' },
    env: {
      ...home.env,
      ...{ PATH: `${folder}/bin:${process.env['PATH']}`, GITHUB_TOKEN: 'secret-token' },
      ...{ GITHUB_EVENT_NAME: name, GITHUB_EVENT_PATH: eventPath, GITHUB_REPOSITORY: 'me/project' },
      KERNEL_SETTINGS: join(folder, 'kernel'),
      ...env,
    },
    cwd: home.cwd,
    artifacts: join(folder, 'artifacts'),
  })
}

const calls = (): string[] => {
  const file = join(folder, 'calls')
  return existsSync(file) ? readFileSync(file, 'utf8').trim().split('\n') : []
}
const artifact = (name: string): string => readFileSync(join(folder, 'artifacts/tapetree-session', name), 'utf8')

const patiently = { timeout: 60_000 }

describe('the GitHub action', () => {
  test('runs in a sandbox with limits, keeps log and page, and comments on a pull request', patiently, async () => {
    const { isSuccess, outputs, text } = await run(own)
    expect({ isSuccess, outputs }, text).toEqual({ isSuccess: true, outputs: { outcome: 'completed' } })
    expect(calls()[0]).toBe(
      'tapetree run --sandbox required --max-cost 2 --max-minutes 5 --json -- --yes; $(touch injected)',
    )
    expect(existsSync(join(home.cwd, 'made'))).toBe(true)
    expect(existsSync(join(home.cwd, 'injected'))).toBe(false)
    expect(JSON.parse(artifact('result.json'))).toMatchObject({ outcome: 'completed', text: 'All **done**.' })
    expect(artifact('session.html')).toMatch(/^<!doctype html>/i)
    const log = artifact('session.jsonl')
    expect(log).toContain('"backend":"bubblewrap"')
    expect(log).not.toContain('secret-token')
    execFileSync(
      process.execPath,
      [bundle, 'sessions', 'import', join(folder, 'artifacts/tapetree-session/session.jsonl')],
      {
        env: home.env,
        cwd: home.cwd,
        stdio: 'pipe',
      },
    )
    expect(calls().at(-1)).toMatch(/^gh pr comment 7 --repo me\/project --body-file \S+comment\.md token=secret-token$/)
  })

  test('writes the answer, the outcome and the cost into the comment', patiently, async () => {
    program('gh', `cat "\${@: -1}" > ${folder}/comment`)
    await run(own)
    expect(readFileSync(join(folder, 'comment'), 'utf8')).toMatch(
      /^### tapetree\n\nAll \*\*done\*\*\.\n\nOutcome: completed, cost: \$[\d.e-]+\. The session is an artifact of this run\.\n$/,
    )
  })

  test.each([
    ['a pull request of another repository', pullRequest('stranger/project')],
    ['a pull request whose repository is gone', { name: 'pull_request', payload: { pull_request: { number: 7 } } }],
    ['no pull request', {}],
  ])('does not comment on %s', patiently, async (_, event) => {
    expect((await run(event)).isSuccess).toBe(true)
    expect(calls().filter((call) => call.startsWith('gh'))).toEqual([])
  })

  test.each([
    ['pull_request_target', { name: 'pull_request_target', payload: own.payload ?? {} }],
    [
      'workflow_run of another repository',
      { name: 'workflow_run', payload: { workflow_run: { head_repository: { full_name: 'stranger/project' } } } },
    ],
    ['a comment on a pull request', { name: 'issue_comment', payload: { issue: { pull_request: {} } } }],
  ])('does not run on %s, where foreign changes would have write access', async (_, event) => {
    const { isSuccess, text } = await run(event)
    expect([isSuccess, calls()]).toEqual([false, []])
    expect(text).toContain('gives write access')
  })

  test('does not run if the checkout has left its token where commands can read it', async () => {
    const header = ['http.https://github.com/.extraheader', 'AUTHORIZATION: basic x']
    execFileSync('git', ['config', ...header], { cwd: home.cwd })
    expect(await run(own)).toMatchObject({
      isSuccess: false,
      text: expect.stringContaining('persist-credentials') as string,
    })
    expect(calls()).toEqual([])
  })

  test('fails and does not comment if the agent cannot run, and keeps what there is', patiently, async () => {
    rmSync(join(folder, 'tapetree/settings.json'))
    expect((await run(own)).isSuccess).toBe(false)
    expect(calls().filter((call) => call.startsWith('gh'))).toEqual([])
    expect(existsSync(join(folder, 'artifacts/tapetree-session/result.json'))).toBe(true)
  })

  test('installs tapetree and bubblewrap if the runner lacks them, with the profile that Ubuntu needs', async () => {
    rmSync(join(folder, 'bin/tapetree'))
    for (const name of ['bash', 'cat', 'touch', 'env', 'dirname', 'mkdir', 'git', 'head'])
      program(name, `exec /usr/bin/${name} "$@"`)
    program('node', `exec ${process.execPath} "$@"`)
    program('npm', `echo "npm $*" >> ${folder}/calls`)
    program(
      'sudo',
      `echo "sudo $*" >> ${folder}/calls; [ "$1" = tee ] && cat > ${folder}/profile; [ "$1 $2" != "apt-get install" ] || touch ${folder}/bin/bwrap; chmod +x ${folder}/bin/bwrap 2>/dev/null; true`,
    )
    program('chmod', `exec /usr/bin/chmod "$@"`)
    mkdirSync(join(folder, 'kernel/kernel'), { recursive: true })
    writeFileSync(join(folder, 'kernel/kernel/apparmor_restrict_unprivileged_userns'), '1\n')
    await run(own, { PATH: `${folder}/bin` })
    expect(calls()).toEqual([
      'npm install --global tapetree@latest',
      'sudo apt-get update -qq',
      'sudo apt-get install -qq --yes bubblewrap',
      'sudo tee /etc/apparmor.d/bwrap',
      'sudo apparmor_parser --replace /etc/apparmor.d/bwrap',
    ])
    expect(readFileSync(join(folder, 'profile'), 'utf8')).toContain(
      `profile bwrap ${folder}/bin/bwrap flags=(unconfined)`,
    )
  })

  test('installs Node if the runner has an older one', async () => {
    const isWanted = async (): Promise<boolean> => (await run(own)).text.includes('setup-node')
    expect(await isWanted()).toBe(false)
    program('node', 'exit 1')
    expect(await isWanted()).toBe(true)
  })

  test('takes no input into a script', () => {
    for (const line of readFileSync(join(root, 'action.yml'), 'utf8').split('\n'))
      if (/^\s*run:/.test(line)) expect(line).toMatch(/run: bash "\$GITHUB_ACTION_PATH\/action\/\w+\.sh"$/)
  })
})
