// The parent of one command. It reads one order from standard input, claims it, runs the command, and records
// the outcome in the spool folder. It outlives the agent that started it, and enforces all limits itself.
import { spawn, execFileSync, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { accessSync, closeSync, constants, statSync, mkdtempSync, openSync, rmSync } from 'node:fs'
import { Socket } from 'node:net'
import { isAbsolute, join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { createRedactor } from '@tapetree/redact'
import { takeClaim } from './claim.ts'
import { reserveExit, writeExit, type CommandExit } from './exit-file.ts'
import type { Order } from './supervisor-process.ts'
import { ownIdentity } from './process-table.ts'
import { endTree, findTree, markVariable, whenGone } from './process-tree.ts'
import { RedactedOutput, OutputWriter } from './spooled-output.ts'
import { tmpdir } from 'node:os'

interface OutputPipe {
  /** Both outputs of the command: one pipe keeps their order. */
  writeFile: number
  reader: () => Socket
}

/**
 * Opens a pipe. Node creates sockets instead of pipes, and a program cannot open a socket through
 * `/dev/stderr`. So this is a named pipe whose name is removed once both ends are open.
 */
function openOutputPipe(): OutputPipe {
  const folder = mkdtempSync(join(tmpdir(), 'tapetree-pipe-'))
  try {
    const path = join(folder, 'output')
    execFileSync('mkfifo', ['-m', '600', path], { stdio: 'ignore' })
    const readFile = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK)
    const writeFile = openSync(path, constants.O_WRONLY)
    return { writeFile, reader: () => new Socket({ fd: readFile, readable: true, writable: false }) }
  } finally {
    rmSync(folder, { recursive: true })
  }
}

const longestTimerMs = 2 ** 31 - 1
/** How long a pipe may stay open after the last process of the command: another process may have inherited its end. */
const drainMs = 1000
const drainSteps = 20

// Prepared before the order arrives.
const self = ownIdentity()
const pipe = openOutputPipe()
findTree({ mark: '', since: self.startTime }) // the first call takes longer
process.stdout.on('error', () => undefined) // the agent may be gone
for (const signal of ['SIGHUP', 'SIGINT'] as const) process.on(signal, () => undefined)

const order = await readOrder()
if (order) await obey(order)
process.exit()

/** Undefined if the agent ended without sending a complete order. */
async function readOrder(): Promise<Order | undefined> {
  let text = ''
  process.stdin.setEncoding('utf8')
  for await (const chunk of process.stdin) text += chunk as string
  return text.endsWith('\n') ? (JSON.parse(text) as Order) : undefined
}

async function obey(order: Order): Promise<void> {
  const stopped = new AbortController()
  process.on('SIGTERM', () => stopped.abort())
  if (!takeClaim(order.spool, order.claim, { by: 'supervisor', mark: order.mark })) return
  process.stdout.write('claimed\n')
  reserveExit(order.spool)
  writeExit(order.spool, await supervise(order, stopped.signal))
}

async function supervise(order: Order, stopped: AbortSignal): Promise<CommandExit> {
  const begun = await begin(order)
  if (typeof begun === 'string') return describe(order, { cause: 'not-started', error: begun })
  const { output, shell } = begun
  const startedAt = performance.now()
  const exited = once(shell, 'exit') as Promise<ShellExit>
  const interrupted = Promise.withResolvers<'timed-out' | 'stopped' | 'overflowed'>()
  const deadline = setTimeout(() => interrupted.resolve('timed-out'), Math.min(order.deadlineMs, longestTimerMs))
  if (stopped.aborted) interrupted.resolve('stopped')
  stopped.addEventListener('abort', () => interrupted.resolve('stopped'))
  const redacted = new RedactedOutput(output, createRedactor(order.redaction).byteStream())
  const reader = pipe.reader()
  reader.on('data', (chunk: Buffer) => {
    redacted.write(chunk)
    if (output.bytes > order.outputLimitBytes) interrupted.resolve('overflowed')
  })

  const root = { pid: process.pid, groupId: shell.pid as number, mark: order.mark, since: self.startTime }
  const tree = () => findTree(root)
  const cause = await Promise.race([exited.then(() => 'exited' as const), interrupted.promise])
  const durationMs = Math.round(performance.now() - startedAt)
  clearTimeout(deadline)
  const leftBehind = cause === 'exited' ? await whenGone(tree, order.lingerMs) : []
  const isGone = cause === 'exited' && leftBehind.length === 0
  const survivors = isGone ? [] : await endTree(tree, order.graceMs)
  const [code, signal] = survivors.length === 0 ? await exited : await Promise.race([exited, wait(drainMs, noExit)])
  await drain(reader)
  redacted.close()
  const { bytes, error } = output
  const names = { leftBehind: leftBehind.map(nameOf), survivors: survivors.map(nameOf) }
  return describe(order, { cause, code, signal, bytes, durationMs, ...names, ...(error !== undefined && { error }) })
}

type ShellExit = [code: number | null, signal: NodeJS.Signals | null]
const noExit: ShellExit = [null, null]

function describe({ deadlineMs, limits }: Order, exit: Pick<CommandExit, 'cause'> & Partial<CommandExit>): CommandExit {
  const known = { deadlineMs, ...(limits && { limits }) }
  return { code: null, signal: null, bytes: 0, durationMs: 0, ...known, leftBehind: [], survivors: [], ...exit }
}

/**
 * Reads until no process can write any more. In steps, so that output that arrived during a suspension is still
 * read.
 */
async function drain(reader: Socket): Promise<void> {
  const drained = reader.closed ? undefined : once(reader, 'close')
  for (let step = 0; step < drainSteps && !reader.closed; step++) {
    await Promise.race([drained, wait(drainMs / drainSteps)])
  }
}

/** Opens the output and starts the shell; or returns a sentence that explains the failure. */
async function begin(order: Order): Promise<{ output: OutputWriter; shell: ChildProcess } | string> {
  if (!isFolder(order.cwd)) return `There is no folder ${order.cwd}.`
  try {
    const output = new OutputWriter(order.spool, order.outputCapBytes)
    return { output, shell: await startShell(order) }
  } catch (error) {
    return (error as Error).message
  }
}

/** A shell in its own session and group. */
async function startShell({ command, cwd, env, box = [], mark }: Order): Promise<ChildProcess> {
  const marks = [env[markVariable], mark].filter(Boolean).join(' ')
  const shellFile = findShell(env['PATH'] ?? '')
  const [file, ...args] = [...box, shellFile, '-c', command]
  const shell = spawn(file, args, {
    cwd,
    env: { ...env, [markVariable]: marks },
    stdio: ['ignore', pipe.writeFile, pipe.writeFile],
    detached: true,
  })
  closeSync(pipe.writeFile)
  await once(shell, 'spawn')
  return shell
}

function findShell(path: string): string {
  const candidates = [...path.split(':').filter(isAbsolute), '/bin', '/usr/bin'].map((folder) => join(folder, 'bash'))
  return candidates.find(isExecutable) ?? '/bin/sh'
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return statSync(path).isFile()
  } catch {
    return false
  }
}

function isFolder(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false
}

function nameOf({ name }: { name: string }): string {
  return name
}
