import { spawn, type ChildProcessByStdio } from 'node:child_process'
import { existsSync } from 'node:fs'
import type { Readable, Writable } from 'node:stream'
import { fileURLToPath } from 'node:url'
import type { Order } from './order.ts'
import { markVariable } from './process-tree.ts'

type Supervisor = ChildProcessByStdio<Writable, Readable, null>

/**
 * The next supervisor, started before it is needed: a process of Node takes some twenty times as long to start as a shell. It
 * belongs to this process and ends with it, because then its standard input ends without an order.
 */
let spare: Supervisor | undefined

/** Gives the order to a supervisor of its own. `silent`: it has ended, or the signal was aborted, before it claimed the command. */
export async function sendOrder(order: Order, signal?: AbortSignal): Promise<'claimed' | 'silent'> {
  const supervisor = spare ?? spawnSupervisor()
  spare = undefined
  keepAlive(supervisor, true)
  const { promise, resolve } = Promise.withResolvers<'claimed' | 'silent'>()
  const giveUp = (): void => resolve('silent')
  supervisor.stdout.once('data', () => resolve('claimed'))
  supervisor.once('close', giveUp)
  signal?.addEventListener('abort', giveUp, { once: true })
  supervisor.stdin.end(`${JSON.stringify(order)}\n`)
  const answer = await promise
  signal?.removeEventListener('abort', giveUp)
  keepAlive(supervisor, false)
  supervisor.stdout.destroy()
  return answer
}

/** Starts the next supervisor, if there is none. */
export function prepareSupervisor(): void {
  if (spare) return
  const prepared = spawnSupervisor()
  keepAlive(prepared, false)
  prepared.once('close', () => {
    if (spare === prepared) spare = undefined
  })
  spare = prepared
}

/** Lets the supervisor go that waits for an order; resolves when it has gone. */
export async function dismissSupervisor(): Promise<void> {
  const dismissed = spare
  if (!dismissed) return
  spare = undefined
  keepAlive(dismissed, true)
  await new Promise<void>((resolve) => {
    dismissed.once('close', () => resolve())
    dismissed.stdin.end()
    dismissed.stdout.resume()
  })
}

/** In a session and group of its own, so that nothing that ends the agent ends it too, and without the agent's environment. */
function spawnSupervisor(): Supervisor {
  const { PATH, TMPDIR, NODE_COMPILE_CACHE, [markVariable]: marks } = process.env
  const env = { PATH, TMPDIR, NODE_COMPILE_CACHE, [markVariable]: marks }
  const [file, args] = asSubreaper(process.execPath, programArguments())
  const supervisor = spawn(file, args, { cwd: '/', env, stdio: ['pipe', 'pipe', 'ignore'], detached: true })
  supervisor.on('error', () => undefined) // it closes too, and that is heard
  supervisor.stdin.on('error', () => undefined)
  return supervisor
}

/** The number of the system call `prctl`. */
const prctl: Partial<Record<NodeJS.Architecture, number>> = { x64: 157, arm64: 167 }
const setChildSubreaper = 36

/**
 * A command line that makes the program a subreaper: every process below it that loses its parent becomes its child, and none
 * can get out of its sight. Node cannot ask for that; Perl can, and it outlasts `exec`. Without Perl, who leaves both parent
 * and group is known by the mark in its environment alone.
 */
function asSubreaper(file: string, program: string[]): [file: string, args: string[]] {
  const perl = '/usr/bin/perl'
  const number = process.platform === 'linux' ? prctl[process.arch] : undefined
  if (number === undefined || !existsSync(perl)) return [file, program]
  return [perl, ['-e', `syscall(${number}, ${setChildSubreaper}, 1, 0, 0, 0); exec {$ARGV[0]} @ARGV`, file, ...program]]
}

/** A supervisor that runs from source imports our other packages from source, too. */
function programArguments(): string[] {
  const isSource = import.meta.url.endsWith('.ts')
  const program = fileURLToPath(new URL(`./supervisor.${isSource ? 'ts' : 'js'}`, import.meta.url))
  return isSource ? ['-C', '@tapetree/source', program] : [program]
}

/** Whether this process waits for the supervisor before it ends. */
function keepAlive(supervisor: Supervisor, isWaitedFor: boolean): void {
  for (const handle of [supervisor, supervisor.stdin, supervisor.stdout] as Partial<NodeJS.Timeout>[]) {
    if (isWaitedFor) handle.ref?.()
    else handle.unref?.()
  }
}
