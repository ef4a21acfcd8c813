import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as wait } from 'node:timers/promises'
import { readClaim } from '../../../packages/agent/src/tools/commands/claim.ts'
import type { Machine } from './machine.ts'
import { greeting, hosts, keepersIn, openAllowed } from './network.ts'

const program = join(import.meta.dirname, 'agent-process.ts')
const lineCount = 30
/** It takes about a second and a half, tries to leave the sandbox at the end, and has an exit code of its own. */
function commandFor({ outside, ports: { tcp } }: Machine, allowedPort: number): string {
  const wrong = [`http://${hosts.other}:${tcp}/`, `--noproxy "" http://127.0.0.1:${tcp}/`, `http://127.0.0.1:${tcp}/`]
  return [
    `for i in $(seq ${lineCount}); do echo "line $i."; sleep 0.05; done`,
    `curl -s -m 9 http://${hosts.allowed}:${allowedPort}/; echo`,
    ...wrong.map((url) => `curl -s -m 3 ${url} > /dev/null`),
    `touch finished; (echo x >> ${outside}/file) 2>/dev/null; exit 7`,
  ].join('; ')
}
const longestDelayMs = 1600
/** How long processes of a killed command may take to end. */
const graceMs = 10_000

export const victims = ['agent', 'keeper', 'supervisor', 'agent and keeper', 'agent and supervisor'] as const
export type Victim = (typeof victims)[number]

/**
 * Kills the agent, the supervisor of its command or the keeper of its network at a moment of chance, and resumes the run. Returns what is wrong: a lost
 * line, a wrong exit code, a host that was reached or not, a process or a change that is left behind.
 */
export async function killAndResume(
  machine: Machine,
  victim: Victim,
  random: () => number,
): Promise<string | undefined> {
  const { folder, work } = machine
  for (const name of ['sessions', 'keep']) {
    rmSync(join(folder, name), { recursive: true, force: true })
    mkdirSync(join(folder, name))
  }
  rmSync(join(work, 'finished'), { force: true })
  const before = machine.fingerprint()
  await using allowed = await openAllowed()
  const agent = start('start', folder, commandFor(machine, allowed.port))
  const lines = linesOf(agent)
  const { value: first } = await lines.next()
  if (first === undefined) return `the agent did not start: ${agent.stderrText()}`
  const { spool, isBoxed } = JSON.parse(first) as { spool: string; isBoxed: boolean }
  if (!isBoxed) return 'the command did not run in a sandbox'
  await wait(random() * longestDelayMs)
  const isAgentKilled = victim.startsWith('agent')
  const isKeeperKilled = victim.endsWith('keeper')
  if (isAgentKilled) agent.child.kill('SIGKILL')
  if (isKeeperKilled) for (const pid of keepersIn(folder)) killQuietly(pid)
  if (victim.endsWith('supervisor')) {
    const { claim } = readClaim(spool)
    // Without a claim, the command has not begun, and nobody may begin it but the agent that resumes.
    if (claim?.by === 'supervisor') killQuietly(claim.pid)
  }
  const last = isAgentKilled ? await resume(folder) : await lastLine(lines)
  if (agent.child.exitCode === null && agent.child.signalCode === null) await once(agent.child, 'exit')
  const { result = '' } = JSON.parse(last ?? '{}') as { result?: string }
  const shown = Array.from(result.matchAll(/line (\d+)\./g), ([, number]) => Number(number))
  const isWhole = shown.length === lineCount && result.includes('Exit code 7.')
  // A command that is about to enter the network of a killed keeper does not start.
  const isRefused = isKeeperKilled && shown.length === 0 && /The command did not start|nsenter: /.test(result)
  const isKnownLoss = isRefused || (victim.endsWith('supervisor') && result.includes('Outcome unknown'))
  if (!isWhole && !isKnownLoss) return `the result is neither whole nor said to be unknown: ${result.slice(0, 300)}`
  if (shown.some((number, index) => number !== index + 1)) return `lines are missing or out of order: ${shown.join()}`
  if (isWhole && !existsSync(join(work, 'finished'))) return 'the command ended early'
  const [reached] = machine.reached.splice(0)
  if (reached !== undefined) return `the network was not filtered: it reached the ${reached}`
  if (isWhole && !isKeeperKilled && !result.includes(greeting)) return 'the allowed host was not reached'
  const left = await processesLeft(folder)
  if (left.length > 0) return `processes are left behind: ${left.join('; ').slice(0, 300)}`
  const after = machine.fingerprint()
  return after === before ? undefined : 'the machine outside of the working folder has changed'
}

interface Started {
  child: ChildProcess
  stderrText: () => string
}

function start(...args: string[]): Started {
  const child = spawn(process.execPath, ['-C', '@tapetree/source', program, ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let text = ''
  child.stderr.on('data', (chunk: Buffer) => void (text += chunk.toString()))
  return { child, stderrText: () => text.slice(-500) }
}

function linesOf({ child }: Started): AsyncIterator<string> {
  if (!child.stdout) throw new Error('The agent has no output.')
  return createInterface({ input: child.stdout })[Symbol.asyncIterator]()
}

async function lastLine(lines: AsyncIterator<string>): Promise<string | undefined> {
  let last: string | undefined
  for (let next = await lines.next(); !next.done; next = await lines.next()) last = next.value
  return last
}

async function resume(folder: string): Promise<string | undefined> {
  return lastLine(linesOf(start('resume', folder)))
}

function killQuietly(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {
    // it has ended
  }
}

/** The command lines of all processes that name the folder, and keepers in it, once those that are about to end have ended. */
async function processesLeft(folder: string): Promise<string[]> {
  for (const deadline = Date.now() + graceMs; ; await wait(50)) {
    const found = readdirSync('/proc')
      .filter((name) => /^\d+$/.test(name))
      .flatMap((pid) => {
        try {
          const line = readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ')
          return line.includes(folder) ? [line] : []
        } catch {
          return []
        }
      })
      .concat(keepersIn(folder).map((pid) => `keeper ${pid}`))
    if (found.length === 0 || Date.now() > deadline) return found
  }
}
