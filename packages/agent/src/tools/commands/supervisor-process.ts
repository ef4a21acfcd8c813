import { spawn, type ChildProcessByStdio } from 'node:child_process'
import { existsSync } from 'node:fs'
import type { Readable, Writable } from 'node:stream'
import { fileURLToPath } from 'node:url'
import type { CommandLimits } from './exit-file.ts'
import { markVariable } from './process-tree.ts'
import { programUrl } from '../../util/program-url.ts'
import type { RedactionPolicy } from '@tapetree/redact'

/** The order for a supervisor. It contains secrets, so it is sent through a pipe and never stored. */
export interface Order {
  spool: string
  /** The number of the claim to take first. */
  claim: number
  /** Identifies the processes of this command. */
  mark: string
  command: string
  cwd: string
  env: Record<string, string>
  /** The command line of a sandbox, to which the shell is appended. */
  box?: readonly string[]
  /** The limits that `box` sets, for the record. */
  limits?: CommandLimits
  /** The command is ended after this long. */
  deadlineMs: number
  /** What to redact from its output before it is written to disk. */
  redaction: RedactionPolicy
  /** How much output is stored: the beginning and the end. */
  outputCapBytes: number
  /** The command is ended when it has printed more than this. */
  outputLimitBytes: number
  /** Time between SIGTERM and SIGKILL. */
  graceMs: number
  /** How long processes may outlive their shell. */
  lingerMs: number
}

type Supervisor = ChildProcessByStdio<Writable, Readable, null>

/**
 * A supervisor started in advance: Node takes about twenty times as long to start as a shell. It ends with this
 * process, because its standard input then ends without an order.
 */
let spare: Supervisor | undefined

/** Sends the order to its own supervisor. `silent`: it ended, or the signal aborted, before it claimed the command. */
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

/** Starts the next supervisor, unless there is one. */
export function prepareSupervisor(): void {
  if (spare) return
  const prepared = spawnSupervisor()
  keepAlive(prepared, false)
  prepared.once('close', () => {
    if (spare === prepared) spare = undefined
  })
  spare = prepared
}

/** Ends the supervisor that waits for an order; resolves when it has exited. */
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

/** In its own session and group, so that it survives the agent, and without the agent's environment. */
function spawnSupervisor(): Supervisor {
  const { PATH, TMPDIR, NODE_COMPILE_CACHE, [markVariable]: marks } = process.env
  const env = { PATH, TMPDIR, NODE_COMPILE_CACHE, [markVariable]: marks }
  const [file, args] = asSubreaper(process.execPath, programArguments())
  const supervisor = spawn(file, args, { cwd: '/', env, stdio: ['pipe', 'pipe', 'ignore'], detached: true })
  supervisor.on('error', () => undefined) // a close event follows
  supervisor.stdin.on('error', () => undefined)
  return supervisor
}

/** The number of the system call `prctl`. */
const prctl: Partial<Record<NodeJS.Architecture, number>> = { x64: 157, arm64: 167 }
const setChildSubreaper = 36

/**
 * A command line that makes the program a subreaper: every orphaned descendant becomes its child, so none
 * escapes. Node cannot request that; Perl can, and the setting survives `exec`. Without Perl, processes that
 * leave both parent and group are found only by the mark in their environment.
 */
function asSubreaper(file: string, program: string[]): [file: string, args: string[]] {
  const perl = '/usr/bin/perl'
  const number = process.platform === 'linux' ? prctl[process.arch] : undefined
  if (number === undefined || !existsSync(perl)) return [file, program]
  return [perl, ['-e', `syscall(${number}, ${setChildSubreaper}, 1, 0, 0, 0); exec {$ARGV[0]} @ARGV`, file, ...program]]
}

/** A supervisor that runs from source imports our other packages from source, too. */
function programArguments(): string[] {
  const program = fileURLToPath(programUrl('supervisor', import.meta.url))
  return program.endsWith('.ts') ? ['-C', '@tapetree/source', program] : [program]
}

/** Whether this process waits for the supervisor before it exits. */
function keepAlive(supervisor: Supervisor, isWaitedFor: boolean): void {
  for (const handle of [supervisor, supervisor.stdin, supervisor.stdout] as Partial<NodeJS.Timeout>[]) {
    if (isWaitedFor) handle.ref?.()
    else handle.unref?.()
  }
}
