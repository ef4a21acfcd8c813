import { spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { readClaim } from './claim.ts'
import { attach, startCommand, type Command, type CommandOptions, type CommandOutcome } from './command.ts'
import type { CommandExit } from './exit-file.ts'
import { dismissSupervisor, sendOrder, type Order } from './supervisor-process.ts'
import { currentBootId, isRunning, environmentOf, listProcesses, readProcess } from './process-table.ts'

/** In the environment of every process of this file. */
const canary = randomUUID()
let folder: string
beforeAll(() => void (folder = realpathSync(mkdtempSync(join(tmpdir(), 'tapetree-command-')))))
afterAll(async () => {
  await dismissSupervisor()
  rmSync(folder, { recursive: true })
  expect(processesOfThisFile()).toEqual([])
  // A supervisor writes its outcome some time before this process notices its end.
  await vi.waitFor(() => expect(listProcesses().filter(({ parentId }) => parentId === process.pid)).toEqual([]), 5000)
})

describe('a command', () => {
  test('ends with its exit code, and its output is in the order in which it was printed', async () => {
    const { command, exit } = await run('for i in 1 2 3; do echo out $i; echo err $i >&2; done; exit 3')
    expect(exit).toMatchObject({ cause: 'exited', code: 3, signal: null, bytes: 36, leftBehind: [], survivors: [] })
    expect(await printed(command)).toBe('out 1\nerr 1\nout 2\nerr 2\nout 3\nerr 3\n')
  })

  test('ends by the signal that killed it', async () => {
    expect((await run('kill -SEGV $$')).exit).toMatchObject({ cause: 'exited', code: null, signal: 'SIGSEGV' })
  })

  test('can open its outputs by name, like programs that expect a file or a pipe', async () => {
    const { command, exit } = await run('echo a > /dev/stderr; echo b > /dev/stdout; echo c | tee /dev/stderr')
    expect(exit.code).toBe(0)
    expect(await printed(command)).toBe('a\nb\nc\nc\n')
  })

  test('has no input and no terminal', async () => {
    const { command } = await run('cat; tty; (: < /dev/tty) 2>/dev/null || echo no terminal')
    expect(await printed(command)).toBe('not a tty\nno terminal\n')
  })

  test('runs in its folder, in bash, in its own session', async () => {
    const { command } = await run('pwd; echo ${BASH_VERSION:+bash}; ps -o sid= -p $$ | tr -d " "; echo $$')
    const [cwd, shell, session, pid] = (await printed(command)).split('\n')
    expect([cwd, shell]).toEqual([folder, 'bash'])
    expect(session).toBe(pid)
  })

  test('gets the given environment and nothing of ours, and neither does its supervisor', async () => {
    process.env['TAPETREE_TEST_KEY'] = 'canary-key'
    await dismissSupervisor() // started earlier
    const { command } = await run('env; tr "\\0" "\\n" < /proc/$PPID/environ', { env: { ...env(), GIVEN: 'yes' } })
    delete process.env['TAPETREE_TEST_KEY']
    expect(await printed(command)).toContain('GIVEN=yes')
    expect(await printed(command)).not.toContain('canary-key')
    await dismissSupervisor()
  })

  test('that cannot be started reports why', async () => {
    const { exit } = await run('true', { cwd: join(folder, 'nowhere') })
    expect(exit).toMatchObject({ cause: 'not-started', code: null, error: `There is no folder ${folder}/nowhere.` })
  })

  test('is streamed completely to waiting callers', async () => {
    const go = join(folder, 'go-on')
    const command = await start(`echo one; until [ -e ${go} ]; do sleep 0.02; done; echo two`)
    let told = ''
    const outcome = await command.wait({
      onOutput: ({ bytes }) => {
        told += bytes.toString()
        if (told === 'one\n') writeFileSync(go, '')
      },
    })
    expect([outcome.type, told]).toEqual(['ended', 'one\ntwo\n'])
  })

  test('is not stopped by a caller that stops waiting', async () => {
    const command = await start(untilGo('given-up'))
    const controller = new AbortController()
    const waiting = command.wait({ signal: controller.signal })
    controller.abort(new Error('enough'))
    await expect(waiting).rejects.toThrow('enough')
    expect(await command.state()).toEqual({ type: 'running' })
    writeFileSync(join(folder, 'given-up'), '')
    expect(await command.wait()).toMatchObject({ exit: { cause: 'exited', code: 0 } })
  })
})

describe('a command is stopped', () => {
  test('at its deadline', async () => {
    const { command, exit } = await run('echo begun; sleep 100; echo never', { deadlineMs: 300 })
    expect(exit).toMatchObject({ cause: 'timed-out', code: null, signal: 'SIGTERM' })
    expect(exit.durationMs).toBeGreaterThanOrEqual(290)
    expect(await printed(command)).toBe('begun\n')
  })

  test('on request, and can clean up', async () => {
    const command = await start('trap "echo cleaned; exit 9" TERM; echo begun; while :; do sleep 0.05; done')
    await untilPrinted(command, 'begun\n')
    expect(await command.stop()).toMatchObject({ type: 'ended', exit: { cause: 'stopped', code: 9 } })
    expect(await printed(command)).toMatch(/^begun\n(Terminated\n)?cleaned\n$/)
  })

  test('by force if it ignores the signal', async () => {
    const command = await start('trap "" TERM; echo begun; while :; do sleep 0.05; done', { graceMs: 100 })
    await untilPrinted(command, 'begun\n')
    expect(await command.stop()).toMatchObject({ exit: { cause: 'stopped', signal: 'SIGKILL' } })
  })

  test('although it had suspended itself', async () => {
    const command = await start('echo begun; kill -STOP $$')
    await untilPrinted(command, 'begun\n')
    expect(await command.stop()).toMatchObject({ exit: { cause: 'stopped', signal: 'SIGTERM' } })
  })

  test('when it prints too much, and only the cap is kept', async () => {
    const { command, exit } = await run('yes', { outputCapBytes: 1_000_000, outputLimitBytes: 50_000_000 })
    expect(exit).toMatchObject({ cause: 'overflowed', code: null })
    expect(exit.bytes).toBeGreaterThan(50_000_000)
    const { pieces, end } = await command.output()
    expect(end).toBe(exit.bytes)
    expect(pieces.map(({ offset }) => offset === 0)).toEqual([true, false])
    expect(pieces.reduce((sum, { bytes }) => sum + bytes.length, 0)).toBeLessThanOrEqual(1_000_000)
    for (const { bytes } of pieces) expect(bytes.toString().replaceAll('y\n', '').trim()).toMatch(/^y?$/)
  })

  test('and keeps both ends of its output beyond the cap', async () => {
    const { command, exit } = await run('seq 200000', { outputCapBytes: 100_000 })
    expect(exit).toMatchObject({ cause: 'exited', code: 0, bytes: 1_288_895 })
    const { pieces } = await command.output()
    expect(pieces.at(0)?.bytes.toString()).toMatch(/^1\n2\n/)
    expect(pieces.at(-1)?.bytes.toString()).toMatch(/\n199999\n200000\n$/)
  })
})

describe('no process outlives its command', () => {
  /** Ways to escape from the shell; each leaves a process behind that reports itself. */
  const escapes = {
    'a child': 'sleep 1000 & echo begun; wait',
    'a child without output': 'sleep 1000 >/dev/null 2>&1 & echo begun; wait',
    'a child that ignores SIGHUP': 'nohup sleep 1000 >/dev/null 2>&1 & echo begun; wait',
    'a child in its own session': 'setsid sleep 1000 >/dev/null 2>&1 & echo begun; wait',
    'a child in its own session that ignores SIGTERM':
      'setsid sh -c "trap \\"\\" TERM; sleep 1000; sleep 1000" & echo begun; wait',
    'an orphaned grandchild': '(setsid sleep 1000 >/dev/null 2>&1 &); echo begun; while :; do sleep 0.1; done',
    'a daemon without our environment and files':
      '(env -i setsid sh -c "(sleep 1000 <&- >&- 2>&- &)" &); echo begun; while :; do sleep 0.1; done',
  }

  for (const [who, line] of Object.entries(escapes)) {
    test(`${who} is stopped with it`, async () => {
      const command = await start(line, { graceMs: 200 })
      await untilPrinted(command, 'begun\n')
      await until(() => descendantsOf(command).some(isSleeping))
      const escaped = descendantsOf(command).filter(isSleeping)
      expect(await command.stop()).toMatchObject({ exit: { cause: 'stopped', survivors: [] } })
      expect(escaped.filter(({ pid, startTime }) => isRunning({ bootId: currentBootId(), pid, startTime }))).toEqual([])
    })
  }

  test('processes that remain after the shell has ended are stopped and named', async () => {
    // Each is a shell until it has become its program.
    const isSleeping = (variable: string): string => `[ "$(cat /proc/$${variable}/comm)" = sleep ]`
    const begin = 'sleep 1000 & a=$!; setsid sleep 1000 >/dev/null 2>&1 & b=$!'
    const script = `${begin}; until ${isSleeping('a')} && ${isSleeping('b')}; do :; done; echo done`
    const { exit } = await run(script, { lingerMs: 100 })
    expect(exit).toMatchObject({ cause: 'exited', code: 0, leftBehind: ['sleep', 'sleep'], survivors: [] })
  })

  test('processes that end soon after the shell are waited for', async () => {
    const { command, exit } = await run('echo a > >(sleep 0.1; sed s/a/b/)', { lingerMs: 20_000 })
    expect(exit).toMatchObject({ cause: 'exited', code: 0, leftBehind: [] })
    expect(await printed(command)).toBe('b\n')
  })

  // Limited: root has no limit on processes, and a failing test must not exhaust the machine.
  test('processes that keep starting others while they are stopped are stopped too', async () => {
    const breeder =
      'trap "" TERM; echo begun; for i in $(seq 150); do (trap "" TERM; sleep 1000) & sleep 0.01; done; wait'
    const command = await start(breeder, { graceMs: 50 })
    await untilPrinted(command, 'begun\n')
    await until(() => descendantsOf(command).length > 5)
    expect(await command.stop()).toMatchObject({ exit: { cause: 'stopped', survivors: [] } })
  })

  test('a process that keeps replacing itself is caught', async () => {
    const hop = join(folder, 'hop.sh')
    // Each starts the next one in its own session and ends: there are never more than two, and the five hundredth is
    // the last.
    writeFileSync(hop, 'trap "" TERM\n[ $1 -lt 500 ] || exit\nsetsid sh $0 $(($1 + 1)) &\n')
    const command = await start(`sh ${hop} 1; echo begun; while :; do sleep 0.1; done`, { graceMs: 50 })
    await untilPrinted(command, 'begun\n')
    expect(await command.stop()).toMatchObject({ exit: { cause: 'stopped', survivors: [] } })
    expect(processesOfThisFile()).toEqual([])
  })

  test('without a subreaper, processes that left both parent and group are found by their mark', async () => {
    const spool = mkdtempSync(join(folder, 'spool-'))
    const mark = randomUUID()
    const escaping = '(setsid sleep 1000 >/dev/null 2>&1 &); echo begun; while :; do sleep 0.1; done'
    const program = join(import.meta.dirname, 'supervisor.ts')
    const supervisor = spawn(process.execPath, ['-C', '@tapetree/source', program], {
      stdio: ['pipe', 'ignore', 'ignore'],
    })
    supervisor.stdin.end(`${JSON.stringify(order({ spool, mark, command: escaping }))}\n`)
    const command = attach(spool)
    await untilPrinted(command, 'begun\n')
    const orphans = () => processesOfThisFile().filter((pid) => environmentOf(pid).some((each) => each.includes(mark)))
    await until(() =>
      orphans().some((pid) => readProcess(pid)?.name === 'sleep' && readProcess(pid)?.sessionId === pid),
    )
    expect(await command.stop()).toMatchObject({ exit: { cause: 'stopped', survivors: [] } })
    expect(orphans()).toEqual([])
    if (supervisor.exitCode === null) await once(supervisor, 'exit')
  })
})

describe('a supervisor', () => {
  test('that is killed leaves a command with an unknown outcome', async () => {
    const command = await start('echo begun; sleep 1000')
    await untilPrinted(command, 'begun\n')
    const waiting = command.wait()
    process.kill(supervisorOf(command), 'SIGKILL')
    expect(await waiting).toEqual({ type: 'lost' })
    expect(await printed(command)).toBe('begun\n')
    await command.endStrays()
    expect(processesOfThisFile()).toEqual([])
  })

  test('whose folder is removed is not waited for', async () => {
    const command = await start(untilGo('removed'))
    const supervisor = supervisorOf(command)
    const waiting = command.wait()
    rmSync(command.spool, { recursive: true })
    expect(await waiting).toEqual({ type: 'lost' })
    writeFileSync(join(folder, 'removed'), '')
    await until(() => readProcess(supervisor)?.isZombie ?? true)
  })

  test('ignores signals of the terminal', async () => {
    const command = await start(untilGo('calm'))
    for (const signal of ['SIGINT', 'SIGHUP'] as const) process.kill(supervisorOf(command), signal)
    writeFileSync(join(folder, 'calm'), '')
    expect(await command.wait()).toMatchObject({ exit: { cause: 'exited', code: 0 } })
  })

  test('that hangs is killed with all its processes', async () => {
    const command = await start('sleep 1000')
    const pid = supervisorOf(command)
    process.kill(pid, 'SIGSTOP')
    expect(await command.stop()).toMatchObject({ type: 'ended', exit: { cause: 'stopped' } })
    await until(() => readProcess(pid)?.isZombie ?? true)
  })

  test('that was started in advance and died is replaced, and the command runs once', async () => {
    await start('true').then((command) => command.wait())
    const spare = listProcesses().filter(({ parentId, name }) => parentId === process.pid && name !== 'bash')
    expect(spare.length).toBeGreaterThan(0)
    for (const { pid } of spare) process.kill(pid, 'SIGKILL')
    const { command, exit } = await run('echo once')
    expect(exit.code).toBe(0)
    expect(await printed(command)).toBe('once\n')
    expect(readClaim(command.spool)).toMatchObject({ claim: { by: 'supervisor' } })
  })

  test('ends when its parent exits without an order', async () => {
    await start('true').then((command) => command.wait())
    await dismissSupervisor()
    await until(() => listProcesses().every(({ parentId }) => parentId !== process.pid))
  })
})

describe('a process is identified as the supervisor only', () => {
  test.each([
    ['start time', { startTime: '1' }],
    ['boot', { bootId: 'another' }],
    ['number', { pid: 1 }],
  ])('if its %s is the same', async (_, change) => {
    const command = await start(untilGo('same'))
    const { claim } = readClaim(command.spool)
    const path = join(command.spool, 'claim')
    const written = readFileSync(path)
    writeFileSync(path, JSON.stringify({ ...claim, ...change }))
    expect(await command.state()).toEqual({ type: 'lost' })
    writeFileSync(path, written)
    expect(await command.state()).toEqual({ type: 'running' })
    writeFileSync(join(folder, 'same'), '')
    await command.wait()
    rmSync(join(folder, 'same'))
  })
})

describe('a command starts once or never', () => {
  test('a cancelled one does not start', async () => {
    const spool = mkdtempSync(join(folder, 'spool-'))
    const command = attach(spool)
    expect(await command.state()).toEqual({ type: 'unclaimed' })
    expect(command.forestall()).toBe(true)
    expect(await command.stop()).toEqual({ type: 'unclaimed' })
  })

  test('a started one cannot be cancelled, and does not start again', async () => {
    const counter = join(folder, 'counter')
    const { command } = await run(`echo x >> ${counter}`)
    expect(command.forestall()).toBe(false)
    const again = await startCommand({ ...options('echo x >> counter'), spool: command.spool })
    expect(await again.wait()).toMatchObject({ exit: { code: 0 } })
    expect(readFileSync(counter, 'utf8')).toBe('x\n')
  })

  test('a cancelled one may be started by the process that cancelled it', async () => {
    const spool = mkdtempSync(join(folder, 'spool-'))
    expect(attach(spool).forestall()).toBe(true)
    const command = await startCommand({ ...options('echo now'), spool })
    expect(await command.wait()).toMatchObject({ exit: { code: 0 } })
    expect(await printed(command)).toBe('now\n')
  })

  test('one whose start is aborted in time does not start', async () => {
    const spool = mkdtempSync(join(folder, 'spool-'))
    await dismissSupervisor()
    const controller = new AbortController()
    const started = startCommand({ ...options(`touch ${spool}/ran`), spool, signal: controller.signal })
    controller.abort(new Error('not now'))
    await expect(started).rejects.toThrow('not now')
    await dismissSupervisor()
    await until(() => listProcesses().every(({ parentId }) => parentId !== process.pid))
    expect(existsSync(join(spool, 'ran'))).toBe(false)
  })

  test('of a supervisor and a recovery that race for it exactly one wins', async () => {
    const won = { supervisor: 0, recovery: 0 }
    let delayMs = 100 // converges to where both are equally fast on this machine
    for (let round = 0; round < 8; round++) {
      const spool = mkdtempSync(join(folder, 'race-'))
      const [answer, isForestalled] = await Promise.all([
        sendOrder(order({ spool, command: 'echo ran' })),
        wait(delayMs).then(() => attach(spool).forestall()),
      ])
      expect(answer).toBe(isForestalled ? 'silent' : 'claimed')
      if (!isForestalled) expect(await attach(spool).wait()).toMatchObject({ exit: { code: 0 } })
      expect(await printed(attach(spool))).toBe(isForestalled ? '' : 'ran\n')
      won[isForestalled ? 'recovery' : 'supervisor']++
      delayMs = Math.max(0, delayMs + (isForestalled ? 40 : -40))
    }
    console.log('claim races won by', won)
  })
})

function env(): Record<string, string> {
  return { PATH: process.env['PATH'] ?? '', TEST_CANARY: canary }
}

function options(command: string): Omit<CommandOptions, 'spool'> {
  return { command, cwd: folder, env: env(), deadlineMs: 60_000 }
}

function order(more: Pick<Order, 'spool' | 'command'> & Partial<Order>): Order {
  const limits = { outputCapBytes: 1000, outputLimitBytes: 1000, graceMs: 1000, lingerMs: 100, redaction: {} }
  return { ...options(more.command), ...limits, claim: 1, mark: randomUUID(), ...more }
}

function start(command: string, more: Partial<CommandOptions> = {}): Promise<Command> {
  return startCommand({ ...options(command), spool: mkdtempSync(join(folder, 'spool-')), ...more })
}

async function run(command: string, more?: Partial<CommandOptions>): Promise<{ command: Command; exit: CommandExit }> {
  const started = await start(command, more)
  return { command: started, exit: exitOf(await started.wait()) }
}

function exitOf(outcome: CommandOutcome): CommandExit {
  if (outcome.type === 'ended') return outcome.exit
  throw new Error('It was lost')
}

async function printed(command: Command): Promise<string> {
  const { pieces } = await command.output()
  return pieces.map(({ bytes }) => bytes.toString()).join('…')
}

function untilGo(name: string): string {
  return `until [ -e ${join(folder, name)} ]; do sleep 0.02; done`
}

async function untilPrinted(command: Command, text: string): Promise<void> {
  await expect.poll(() => printed(command), { timeout: 20_000 }).toBe(text)
}

async function until(check: () => boolean): Promise<void> {
  await expect.poll(check, { timeout: 20_000 }).toBe(true)
}

function supervisorOf(command: Command): number {
  const { claim } = readClaim(command.spool)
  if (!claim || !isRunning(claim)) throw new Error('There is no supervisor')
  return claim.pid
}

function descendantsOf(command: Command): ReturnType<typeof listProcesses> {
  const all = listProcesses().filter(({ isZombie }) => !isZombie)
  const found = new Set(all.filter(({ parentId }) => parentId === supervisorOf(command)))
  for (const parent of found) for (const each of all) if (each.parentId === parent.pid) found.add(each)
  return [...found]
}

function isSleeping({ pid }: { pid: number }): boolean {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').startsWith('sleep\x001000')
  } catch {
    return false
  }
}

function processesOfThisFile(): number[] {
  const own = listProcesses().filter(
    ({ pid, isZombie }) => !isZombie && environmentOf(pid).includes(`TEST_CANARY=${canary}`),
  )
  return own.map(({ pid }) => pid)
}
