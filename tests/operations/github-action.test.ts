import { spawnSync } from 'node:child_process'
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { parse } from 'yaml'

const root = resolve(import.meta.dirname, '../..')
let folder: string

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'tapetree-action-'))
  mkdirSync(join(folder, 'bin'))
  program(
    'tapetree',
    `echo "$*" >> ${folder}/calls; echo "\${GH_TOKEN:-none}" >> ${folder}/tokens\n[ "$1" = run ] && echo '{"session_id":"s1","outcome":"completed","text":"Done.","cost":0.1}'; exit 0`,
  )
  program('gh', `echo "gh $*" >> ${folder}/calls`)
})
afterEach(() => rmSync(folder, { recursive: true }))

function program(name: string, body: string): void {
  writeFileSync(join(folder, 'bin', name), `#!/bin/bash\n${body}\n`)
  chmodSync(join(folder, 'bin', name), 0o755)
}

/** Runs a step of the action as a runner would. */
function step(script: string, { event = 'push', head = 'me/project' } = {}): { code: number | null; text: string } {
  const eventPath = join(folder, 'event.json')
  const repo = { full_name: 'me/project' }
  const payload = { pull_request: { number: 7, head: { repo: { full_name: head } }, base: { repo } } }
  writeFileSync(eventPath, JSON.stringify(payload))
  const { status, stdout, stderr } = spawnSync('bash', [join(root, 'action', script)], {
    encoding: 'utf8',
    env: {
      ...{ PATH: `${folder}/bin:${process.env['PATH']}`, RESULTS: join(folder, 'results'), GH_TOKEN: 'token' },
      ...{ PROMPT: '--yes; $(touch x)', MAX_COST: '2', MAX_MINUTES: '20', GITHUB_OUTPUT: join(folder, 'output') },
      ...{ GITHUB_EVENT_NAME: event, GITHUB_EVENT_PATH: eventPath, GITHUB_REPOSITORY: 'me/project' },
    },
  })
  return { code: status, text: stdout + stderr }
}

const calls = (): string[] => {
  const file = join(folder, 'calls')
  return existsSync(file) ? readFileSync(file, 'utf8').trim().split('\n') : []
}

describe('the GitHub action', () => {
  test('runs in a sandbox with limits, without the token, and keeps the session', () => {
    expect(step('run.sh')).toEqual({ code: 0, text: '' })
    expect(calls()).toEqual([
      'run --sandbox required --max-cost 2 --max-minutes 20 --json -- --yes; $(touch x)',
      `sessions export s1 --yes --output ${folder}/results/session.html`,
      `sessions export s1 --yes --format bundle --output ${folder}/results/session.jsonl`,
    ])
    expect(readFileSync(join(folder, 'tokens'), 'utf8').split('\n')[0]).toBe('none')
    expect(readFileSync(join(folder, 'output'), 'utf8')).toBe('outcome=completed\n')
  })

  test('comments on a pull request of the repository, and never on one from elsewhere', () => {
    step('run.sh')
    for (const [event, head, isCommented] of [
      ['pull_request', 'me/project', true],
      ['pull_request', 'stranger/project', false],
      ['pull_request_target', 'me/project', false],
      ['push', 'me/project', false],
    ] as const) {
      rmSync(join(folder, 'calls'), { force: true })
      expect(step('comment.sh', { event, head }).code).toBe(0)
      const comment = `gh pr comment 7 --repo me/project --body-file ${folder}/results/comment.md`
      expect(calls()).toEqual(isCommented ? [comment] : [])
    }
    expect(readFileSync(join(folder, 'results/comment.md'), 'utf8')).toContain('Done.')
  })

  test('refuses to run on pull_request_target', () => {
    expect(step('run.sh', { event: 'pull_request_target' })).toMatchObject({ code: 2 })
    expect(calls()).toEqual([])
  })

  test('has no step but these scripts and the upload, and takes no input into a script', () => {
    const { runs } = parse(readFileSync(join(root, 'action.yml'), 'utf8')) as {
      runs: { steps: { run?: string; uses?: string }[] }
    }
    expect(runs.steps.map(({ run, uses }) => run ?? uses)).toEqual([
      'bash "$GITHUB_ACTION_PATH/action/run.sh"',
      'actions/upload-artifact@v4',
      'bash "$GITHUB_ACTION_PATH/action/comment.sh"',
    ])
  })
})
