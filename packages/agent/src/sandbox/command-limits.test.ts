import { spawnSync } from 'node:child_process'
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, realpathSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openFileStore } from '@tapetree/session/stores/file'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { AgentSession } from '../agent/agent-session.ts'
import type { Model } from '../models/model.ts'
import { resultsOf } from '../testing/read-session.ts'
import { script, scriptedModel } from '../testing/scripted-model.ts'
import type { CommandLimits } from '../tools/commands/exit-file.ts'
import { dismissSupervisor } from '../tools/commands/supervisor-process.ts'
import { groupArguments, limitArguments, limitProblem } from './command-limits.ts'
import { Sandbox } from './sandbox.ts'

let folder: string
const isRoot = process.getuid?.() === 0
/** A second of processor time takes long on a busy machine. */
const patiently = { timeout: 120_000 }
const users = isRoot ? { root: 0, 'an ordinary user': 65_534 } : { 'this user': process.getuid?.() ?? 0 }

beforeAll(() => {
  folder = realpathSync(
    mkdtempSync(join(isRoot ? '/var/lib' : join(process.cwd(), 'node_modules'), 'tapetree-limits-')),
  )
  chmodSync(folder, 0o755)
})
afterAll(async () => {
  await dismissSupervisor()
  rmSync(folder, { recursive: true })
})

/** Folders that any user can write to. */
function placesOf(name: string): { work: string; home: string; keep: string } {
  const [work, home, keep] = ['work', 'home', 'keep/tmp'].map((part) => {
    const path = join(folder, name, part)
    mkdirSync(path, { recursive: true })
    chmodSync(path, 0o777)
    return path
  }) as [string, string, string]
  chmodSync(join(keep, '..'), 0o777)
  return { work, home, keep: join(keep, '..') }
}

async function run(uid: number, limits: CommandLimits, command: string): Promise<string> {
  const { work, home, keep } = placesOf(`user-${uid}`)
  const sandbox = await Sandbox.open({ folders: [work], home, keep, limits })
  const { argv, env } = await as(uid, () => sandbox.box(work))
  const [file, ...args] = [...argv, 'bash', '-c', command]
  const { stdout, stderr } = spawnSync(file, args, {
    cwd: work,
    env: { PATH: process.env['PATH'], HOME: home, ...env },
    encoding: 'utf8',
    uid,
    gid: uid,
  })
  return stdout + stderr
}

async function as<T>(uid: number, work: () => Promise<T>): Promise<T> {
  if (uid === process.getuid?.()) return work()
  process.setegid?.(uid)
  process.seteuid?.(uid)
  try {
    return await work()
  } finally {
    process.seteuid?.(0)
    process.setegid?.(0)
  }
}

/** Counts without a process of its own: there may be none left. */
const bomb = `bomb() { bomb | bomb & }; bomb 2>/dev/null &
until set -- /proc/[0-9]*; [ $# -ge 20 ]; do :; done
most=0
for each in {1..300}; do set -- /proc/[0-9]*; [ $# -gt $most ] && most=$#; done
echo "most $most"`

describe.each(Object.entries(users))('a command of %s with limits', (_, uid) => {
  test('is ended when it has used its processor time', patiently, async () => {
    const text = await run(uid, { cpuSeconds: 1 }, 'bash -c "while :; do :; done"; echo "code $?"')
    expect(text).toContain('code 152')
    expect(text).toContain('CPU time limit exceeded')
  })

  test('gets no more memory', async () => {
    const hoard = `python3 -c 'print(len(bytearray(300_000_000)))'`
    expect(await run(uid, { memoryBytes: 100_000_000 }, hoard)).toContain('MemoryError')
    expect(await run(uid, { memoryBytes: 1_000_000_000 }, hoard)).toBe('300000000\n')
  })

  test('starts no more processes, even if it is a fork bomb', async () => {
    const [, most] = /most (\d+)/.exec(await run(uid, { processes: 30 }, bomb)) ?? []
    expect(Number(most)).toBeGreaterThanOrEqual(20)
    // Reading /proc takes a while, so one count can have processes that were never there at the same time.
    expect(Number(most)).toBeLessThanOrEqual(60)
  })

  test('has enough processes below the limit', async () => {
    const many = 'for each in {1..25}; do sleep 0.2 & done 2>&1; wait; echo end'
    expect(await run(uid, { processes: 30 }, many)).toBe('end\n')
    expect(await run(uid, { processes: 20 }, many)).toContain('fork')
  })

  test('writes no larger file', async () => {
    expect(await run(uid, { fileBytes: 1_000_000 }, 'head -c 5000000 /dev/zero > large')).toContain('File size limit')
    expect(statSync(join(folder, `user-${uid}`, 'work', 'large')).size).toBe(1_000_000)
  })

  test('cannot raise them', async () => {
    expect(await run(uid, { fileBytes: 1_000_000 }, 'ulimit -f unlimited 2>&1; ulimit -Hf')).toContain('976')
    expect(await run(uid, { cpuSeconds: 5 }, 'ulimit -t unlimited 2>&1; ulimit -Ht')).toContain('6')
  })

  test('leaves no control group behind', async () => {
    const groups = (): string[] => ['/sys/fs/cgroup', '/sys/fs/cgroup/pids'].flatMap((base) => namesIn(base))
    const before = groups()
    await run(uid, { processes: 30 }, 'sleep 5 & true')
    expect(groups().filter((name) => !before.includes(name))).toEqual([])
  })
})

function namesIn(path: string): string[] {
  try {
    return readdirSync(path)
  } catch {
    return []
  }
}

test('a command that ignores the signal for its processor time is killed', patiently, async () => {
  const stubborn = `trap '' XCPU; while :; do :; done`
  expect(await run(process.getuid?.() ?? 0, { cpuSeconds: 1 }, `bash -c "${stubborn}"; echo "code $?"`)).toContain(
    'code 137',
  )
})

test('without limits the command line stays as it is, and a limit that is no number is refused', () => {
  expect([limitArguments({}), groupArguments({}), limitProblem({})]).toEqual([[], [], undefined])
  for (const limit of [0, -1, 1.5, Number.NaN])
    expect(() => limitArguments({ cpuSeconds: limit })).toThrow('cpuSeconds')
})

test.skipIf(!isRoot)('a limit of processes that nothing enforces for root is refused, never ignored', () => {
  const base = join(folder, 'no-groups')
  mkdirSync(base)
  expect(() => groupArguments({ processes: 10 }, base)).toThrow('Use an ordinary user, or leave out the limit.')
  expect(limitProblem({ processes: 10 }, base)).toContain('the kernel does not hold root to such a limit')
  expect([limitProblem({ cpuSeconds: 10 }, base), readdirSync(base)]).toEqual([undefined, []])
})

describe('the result of a command that reaches a limit', () => {
  let count = 0
  async function runWith(limits: CommandLimits, model: Model): Promise<string[]> {
    const { work, home, keep } = placesOf(`session-${++count}`)
    writeFileSync(join(work, 'hoard.py'), 'hoard = bytearray(300_000_000)\n')
    // A box replaces /tmp, so boxes of other tests need not hide the socket of this session's network, which may go at any moment.
    const sessions = mkdtempSync(join(tmpdir(), 'tapetree-limits-'))
    onTestFinished(() => rmSync(sessions, { recursive: true }))
    const agent = await AgentSession.open({
      model,
      store: openFileStore({ folder: sessions }),
      cwd: work,
      mode: 'sandboxed',
      hasSubagents: false,
      whenUnanswered: 'deny',
      sandbox: () => Sandbox.open({ folders: [work], home, keep, limits, idleMs: 100 }),
    })
    onTestFinished(() => agent.close())
    await agent.ask('go')
    return resultsOf(agent)
  }
  test('says which one', patiently, async () => {
    const limits = { cpuSeconds: 60, memoryBytes: 200_000_000, processes: 12, fileBytes: 1_000_000 }
    const many = `import subprocess\nfor each in range(20): subprocess.Popen(["sleep", "5"])`
    const commands = ['python3 hoard.py', `python3 -c '${many}'`, 'head -c 2000000 /dev/zero > large', 'ls missing']
    const says = script()
    for (const [index, command] of commands.entries()) says.toolCall(`call-${index}`, 'bash', { command }).step()
    const results = await runWith(limits, scriptedModel(says.text('done')))
    const sentences = [
      '200,000,000 bytes of memory for each process (sandbox.limits.memoryBytes)',
      '12 processes and threads (sandbox.limits.processes)',
      '1,000,000 bytes for each file (sandbox.limits.fileBytes)',
    ].map((words) => `It seems to have reached a limit of the sandbox: ${words}. Only the user can raise it.`)
    for (const [index, result] of results.entries()) {
      const said = sentences.map((sentence) => result.includes(sentence))
      expect(said, result).toEqual(sentences.map((_, each) => each === index))
    }
    expect(results[3]).toContain('Exit code 2.')
  })

  test('in the background says so when the agent reads its end', patiently, async () => {
    const start = script().toolCall('call', 'bash', { command: 'while :; do :; done', background: true })
    const model = scriptedModel(start, {
      otherwise: (request) => {
        const text = JSON.stringify(request)
        const [jobId = ''] = /job-[0-9a-f]{12}/.exec(text) ?? []
        const isRead = text.includes('job_output') && text.includes('sandbox.limits')
        return isRead ? script().text('done') : script().toolCall('end', 'job_output', { jobId, waitMs: 100_000 })
      },
    })
    const [, result] = await runWith({ cpuSeconds: 1 }, model)
    expect(result).toContain('1 s of processor time for each process (sandbox.limits.cpuSeconds)')
  })
})
