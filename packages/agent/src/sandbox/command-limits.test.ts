import { spawnSync } from 'node:child_process'
import { chmodSync, mkdirSync, mkdtempSync, realpathSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { limitArguments, type CommandLimits } from './command-limits.ts'
import { Sandbox } from './sandbox.ts'

let folder: string
const isRoot = process.getuid?.() === 0
const ordinaryUser = 65_534

beforeAll(() => {
  folder = realpathSync(
    mkdtempSync(join(isRoot ? '/var/lib' : join(process.cwd(), 'node_modules'), 'tapetree-limits-')),
  )
  for (const name of ['work', 'home', 'keep/tmp']) mkdirSync(join(folder, name), { recursive: true })
  chmodSync(folder, 0o755)
  for (const name of ['work', 'home', 'keep', 'keep/tmp']) chmodSync(join(folder, name), 0o777)
})
afterAll(() => rmSync(folder, { recursive: true }))

async function run(limits: CommandLimits, command: string): Promise<{ signal: string | null; text: string }> {
  const [work, home, keep] = ['work', 'home', 'keep'].map((name) => join(folder, name)) as [string, string, string]
  const sandbox = await Sandbox.open({ folders: [work], home, keep, limits })
  const { argv, env } = await sandbox.box(work)
  const [file, ...args] = [...argv, 'bash', '-c', command]
  const user = isRoot ? { uid: ordinaryUser, gid: ordinaryUser } : {}
  const options = {
    cwd: work,
    env: { PATH: process.env['PATH'], HOME: home, ...env },
    encoding: 'utf8',
    ...user,
  } as const
  const { signal, stdout, stderr } = spawnSync(file, args, options)
  return { signal, text: stdout + stderr }
}

describe('a command with limits', () => {
  test('is ended when it has used its processor time', async () => {
    expect((await run({ cpuSeconds: 1 }, 'bash -c "while :; do :; done"; echo "code $?"')).text).toMatch(
      /code 1(?:37|52)/,
    )
  })

  test('gets no more memory', async () => {
    const hoard = String.raw`head -c 300000000 /dev/zero | tail -c 300000000 | wc -c`
    expect((await run({ memoryBytes: 100_000_000 }, hoard)).text).not.toContain('300000000')
    expect((await run({ memoryBytes: 1_000_000_000 }, hoard)).text).toContain('300000000')
  })

  test('starts no more processes', async () => {
    const many = 'for each in $(seq 60); do sleep 2 & done 2>&1; wait; echo end'
    expect((await run({ processes: 20 }, many)).text).toContain('fork')
    expect((await run({}, many)).text).toBe('end\n')
  })

  test('writes no larger file', async () => {
    await run({ fileBytes: 1_000_000 }, 'head -c 5000000 /dev/zero > large')
    expect(statSync(join(folder, 'work/large')).size).toBe(1_000_000)
  })

  test('cannot raise them', async () => {
    expect((await run({ fileBytes: 1_000_000 }, 'ulimit -f unlimited 2>&1; ulimit -Hf')).text).toContain('976')
  })
})

test('without limits the command line stays as it is, and a limit that is no number is refused', () => {
  expect(limitArguments({})).toEqual([])
  for (const limit of [0, -1, 1.5, Number.NaN])
    expect(() => limitArguments({ cpuSeconds: limit })).toThrow('cpuSeconds')
})
