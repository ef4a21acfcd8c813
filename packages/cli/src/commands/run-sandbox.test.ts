import type { FakeAnswer } from '@tapetree/agent/testing'
import { existsSync } from 'node:fs'
import { mkdir, stat, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { exitCodes } from '../command-line/exit-code.ts'
import { runBundle } from '../testing/bundled-command.ts'
import { fakeHome, type FakeHome } from '../testing/fake-home.ts'

/** Generous timeout for a busy machine. */
const patiently = { timeout: 30_000 }

/** A user who has set no mode. */
async function newUser(command = 'touch made && id -u'): Promise<FakeHome> {
  const home = await fakeHome({ settings: { permissions: { mode: undefined } } })
  onTestFinished(() => home[Symbol.asyncDispose]())
  const touch: FakeAnswer = {
    type: 'answer',
    content: [{ type: 'tool_call', id: 'c1', name: 'bash', chunks: [JSON.stringify({ command })] }],
  }
  home.provider.script(touch, { type: 'answer', content: [{ type: 'text', chunks: ['Done.'] }] })
  return home
}

interface Printed {
  type: string
  permission_mode?: { mode: string; reason?: string }
  tool_start?: { sandbox?: { backend: string } }
}

async function run(
  home: FakeHome,
  args: readonly string[] = [],
): Promise<{ code: number | null; stderr: string; lines: Printed[] }> {
  const { code, stdout, stderr } = await runBundle(home, ['run', '--jsonl', ...args, 'go'])
  const lines = stdout.split('\n').filter(Boolean)
  return { code, stderr, lines: lines.map((line) => JSON.parse(line) as Printed) }
}

/** Some programs of this machine without bubblewrap, or with one that prints this and fails. */
async function withoutSandbox(home: FakeHome, complaint?: string): Promise<FakeHome> {
  const bin = join(home.home, 'bin')
  await mkdir(bin)
  for (const name of ['sh', 'bash', 'touch', 'id', 'git']) await symlink(join('/usr/bin', name), join(bin, name))
  if (complaint !== undefined)
    await writeFile(join(bin, 'bwrap'), `#!/bin/sh\necho "${complaint}" >&2\nexit 1\n`, { mode: 0o755 })
  return { ...home, env: { ...home.env, PATH: bin } }
}

const machines: [string, string | undefined, string][] = [
  ['without bubblewrap', undefined, 'bubblewrap is not installed.'],
  [
    'that forbids namespaces',
    'bwrap: No permissions to create new namespace',
    'bubblewrap cannot create a sandbox here: bwrap: No permissions',
  ],
  [
    'with a bubblewrap that is too old',
    'bwrap: Unknown option --disable-userns',
    'This version of bubblewrap is too old',
  ],
]

describe('a user who has set no mode', () => {
  test('has commands run in a sandbox without a question', patiently, async () => {
    const home = await newUser()
    const { code, lines } = await run(home)
    expect(code).toBe(0)
    expect(existsSync(join(home.cwd, 'made'))).toBe(true)
    expect(lines.find(({ type }) => type === 'tool_start')?.tool_start?.sandbox?.backend).toBe('bubblewrap')
  })

  test('limits commands with an option, and the model reads which limit they have reached', patiently, async () => {
    const home = await newUser('head -c 3000000 /dev/zero > large')
    const { code, lines } = await run(home, ['--sandbox', 'required', '--max-file-size', '1mb'])
    expect(code).toBe(0)
    const { size } = await stat(join(home.cwd, 'large'))
    expect(JSON.stringify(lines)).toContain(
      `${size.toLocaleString('en')} bytes for each file (sandbox.limits.fileBytes)`,
    )
    expect(size).toBeLessThan(1_100_000)
  })

  test('is asked if the settings say so', patiently, async () => {
    const home = await newUser()
    const { code, lines } = await run(home, ['--permission-mode', 'ask'])
    expect([code, existsSync(join(home.cwd, 'made'))]).toEqual([exitCodes.permissionNeeded, false])
    expect(lines.filter(({ type }) => type === 'tool_start')).toEqual([])
  })
})

describe.each(machines)('on a machine %s', (_, complaint, reason) => {
  test('a command is asked about, and the log and the screen say why', patiently, async () => {
    const home = await withoutSandbox(await newUser(), complaint)
    const { code, stderr, lines } = await run(home)
    expect([code, existsSync(join(home.cwd, 'made'))]).toEqual([exitCodes.permissionNeeded, false])
    expect(stderr).toContain(`Commands cannot run in a sandbox, so they are asked about as in mode ask. ${reason}`)
    const modes = lines.flatMap(({ permission_mode: mode }) => mode ?? [])
    expect(modes).toEqual([{ mode: 'ask', reason: expect.stringContaining(reason) as string }])
  })

  test('--sandbox required refuses to start, says why and asks no model', patiently, async () => {
    const home = await withoutSandbox(await newUser(), complaint)
    const { code, stderr, lines } = await run(home, ['--sandbox', 'required'])
    expect([code, lines, home.provider.requests.length]).toEqual([exitCodes.configuration, [], 0])
    expect(stderr).toContain(`A sandbox is required, and commands cannot run in one here. ${reason}`)
  })
})
