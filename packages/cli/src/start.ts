import { mkdirSync } from 'node:fs'
import { enableCompileCache } from 'node:module'
import { homedir } from 'node:os'
import { isAbsolute, join } from 'node:path'
import type { Io } from './command-line/io.ts'

/** Runs the command in this process: signals, streams and the exit code are its concern, and nothing else's. */
export async function start(args: readonly string[]): Promise<void> {
  const home = process.env['HOME'] ?? homedir()
  keepCompiledCode(home)
  loadInLittleMemory()
  process.on('uncaughtException', (error) => stopAt(error))
  const signal = signalOfProcess()
  const { runCli } = await import('./cli.ts')
  const io: Io = {
    stdin: process.stdin,
    stdout: process.stdout,
    stderr: process.stderr,
    env: process.env,
    cwd: process.cwd(),
    home,
    signal,
  }
  await leave(await runCli(args, io))
}

/** Code that was compiled once is not compiled again. Where that cannot be, everything works without it. */
function keepCompiledCode(home: string): void {
  const folder = cacheFolder(home)
  try {
    // Node would make the folders for everybody to read.
    mkdirSync(folder, { recursive: true, mode: 0o700 })
    enableCompileCache(folder)
  } catch {
    // A home that cannot be written to is no reason to stop.
  }
}

function cacheFolder(home: string): string {
  const { TAPETREE_HOME: own, XDG_CACHE_HOME: cache } = process.env
  if (own !== undefined && isAbsolute(own)) return join(own, 'cache', 'code')
  return join(cache !== undefined && isAbsolute(cache) ? cache : join(home, '.cache'), 'tapetree', 'code')
}

const loadingMs = 5000

/** Loading code makes so much garbage that the heap would grow for it, and stay so. When that is over, it grows as it likes. */
function loadInLittleMemory(): void {
  // As a built-in it is there at once; an import would read all of its names.
  const { setFlagsFromString } = process.getBuiltinModule('node:v8')
  setFlagsFromString('--semi-space-growth-factor=1')
  setTimeout(() => setFlagsFromString('--semi-space-growth-factor=2'), loadingMs).unref()
}

const graceMs = 5000

/**
 * The first signal asks, the second does what signals do. A terminal that is gone and a system that shuts down do not send a second one:
 * whoever has not ended by then is ended.
 */
function signalOfProcess(): AbortSignal {
  const controller = new AbortController()
  process.once('SIGINT', () => controller.abort())
  const leaveSoon = (name: 'SIGTERM' | 'SIGHUP'): void => {
    controller.abort()
    setTimeout(() => process.kill(process.pid, name), graceMs).unref()
  }
  for (const name of ['SIGTERM', 'SIGHUP'] as const) process.once(name, () => leaveSoon(name))
  onceTerminalIsGone(() => leaveSoon('SIGHUP'))
  return controller.signal
}

/** That something cannot be written is known to whoever wrote it, and is no reason to drop everything; only a terminal does not come back. */
function onceTerminalIsGone(leave: () => void): void {
  let isGone = false
  for (const stream of [process.stdout, process.stderr]) {
    stream.on('error', ({ code }: NodeJS.ErrnoException) => {
      if (code !== 'EIO' || !stream.isTTY || isGone) return
      isGone = true
      leave()
    })
  }
}

/** Handles that are still open, such as idle connections, do not hold the process; output that is still on its way does. */
async function leave(code: number): Promise<void> {
  process.exitCode = code
  await Promise.all([process.stdout, process.stderr].map(flushed))
  process.exit()
}

function flushed(stream: NodeJS.WriteStream): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  // Not even a failure to write may keep the process.
  stream.write('', () => resolve())
  return promise
}

function stopAt(error: unknown): void {
  const { message, stack } = error instanceof Error ? error : { message: String(error), stack: undefined }
  const details = process.env['TAPETREE_DEBUG'] === undefined ? '' : `${stack ?? ''}\n`
  process.stderr.write(
    `tapetree stopped at an error that it did not expect: ${message.replaceAll(/\s+/g, ' ')}\n${details}` +
      'Your sessions are safe. Please report it with what `tapetree doctor` says; TAPETREE_DEBUG=1 shows where it was.\n',
    () => process.exit(1),
  )
}
