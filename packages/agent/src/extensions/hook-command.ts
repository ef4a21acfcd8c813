import { settledWithin } from '@tapetree/session/util/deadline'
import { spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import type { Readable } from 'node:stream'
import type { CommandBox } from '../tools/commands/command.ts'
import { readProcess } from '../tools/commands/process-table.ts'
import { endTree, findTree, markVariable } from '../tools/commands/process-tree.ts'
import { inBox } from '../tools/commands/program-box.ts'
import { ExtensionFailure } from './extension-failure.ts'

export interface HookCommand {
  command: string
  /** Written to its standard input. */
  input: string
  cwd: string
  env: Readonly<Record<string, string>>
  /** The sandbox in which it runs. */
  box?: CommandBox | undefined
}

export interface EndedCommand {
  exitCode: number | null
  /** `exit code 3`, `SIGKILL`. */
  how: string
  stdout: string
  /** The end of its standard error. */
  stderr: string
}

const maxStdoutBytes = 8 * 1024 * 1024
const maxStderrBytes = 16 * 1024
/** How long processes may take to end after SIGTERM. */
const graceMs = 500
/** How long to read from the pipe of an ended process. */
const drainMs = 200

/**
 * Runs a command of the settings in its own process group, and waits for it. When it has ended, or the signal
 * aborts, none of its processes is left.
 */
export async function runHookCommand(
  { command, input, cwd, env, box }: HookCommand,
  signal: AbortSignal,
): Promise<EndedCommand> {
  signal.throwIfAborted()
  const mark = randomUUID()
  const program = inBox({ file: '/bin/sh', args: ['-c', command], env }, box)
  const process = spawn(program.file, program.args, {
    cwd,
    env: { ...program.env, [markVariable]: mark },
    stdio: ['pipe', 'pipe', 'pipe'],
    detached: true,
  })
  const ended = Promise.withResolvers<Pick<EndedCommand, 'exitCode' | 'how'>>()
  process.once('error', (cause) =>
    ended.reject(new ExtensionFailure('threw', `It could not be started: ${cause.message}`, { cause })),
  )
  process.once('exit', (exitCode, killedBy) => ended.resolve({ exitCode, how: killedBy ?? `exit code ${exitCode}` }))
  const closed = new Promise<void>((resolve) => process.once('close', () => resolve()))
  const tooMuch = new AbortController()
  const stdout = collect(process.stdout, { maxBytes: maxStdoutBytes, onMore: () => tooMuch.abort() })
  const stderr = collectEnd(process.stderr, maxStderrBytes)
  process.stdin.on('error', () => undefined) // it need not read its input
  process.stdin.end(input)
  const { pid } = process
  const tree = pid === undefined ? undefined : { pid, groupId: pid, mark, since: readProcess(pid)?.startTime ?? '0' }
  const stop = AbortSignal.any([signal, tooMuch.signal])
  try {
    if ((await settledWithin(ended.promise, { signal: stop })) === 'settled') await ended.promise
    if (!stop.aborted) await settledWithin(closed, { ms: drainMs })
  } finally {
    if (tree) await endTree(() => findTree(tree), graceMs)
    for (const stream of [process.stdin, process.stdout, process.stderr]) stream.destroy()
  }
  if (tooMuch.signal.aborted) throw new ExtensionFailure('wrong-value', `It wrote more than ${maxStdoutBytes} bytes.`)
  return { ...(await ended.promise), stdout: stdout(), stderr: stderr() }
}

function collect(stream: Readable, limit: { maxBytes: number; onMore: () => void }): () => string {
  const chunks: Buffer[] = []
  let bytes = 0
  stream.on('error', () => undefined)
  stream.on('data', (chunk: Buffer) => {
    bytes += chunk.length
    if (bytes > limit.maxBytes) limit.onMore()
    else chunks.push(chunk)
  })
  return () => Buffer.concat(chunks).toString('utf8')
}

function collectEnd(stream: Readable, maxBytes: number): () => string {
  let kept = Buffer.alloc(0)
  stream.on('error', () => undefined)
  stream.on('data', (chunk: Buffer) => {
    kept = Buffer.concat([kept, chunk]).subarray(-maxBytes)
  })
  return () => kept.toString('utf8')
}
