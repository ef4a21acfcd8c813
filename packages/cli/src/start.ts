import { mkdirSync } from 'node:fs'
import { enableCompileCache } from 'node:module'
import { homedir } from 'node:os'
import { isAbsolute, join } from 'node:path'
import { isatty } from 'node:tty'
import type { Io } from './command-line/io.ts'

/** Runs the command in this process and handles signals, streams and the exit code. */
export async function start(args: readonly string[]): Promise<void> {
  const home = process.env['HOME'] ?? homedir()
  keepCompiledCode(home)
  loadInLittleMemory()
  process.on('uncaughtException', (error) => stopAt(error))
  const signals = signalsOfProcess()
  const { runCli } = await import('./cli.ts')
  const io: Io = {
    stdin: process.stdin,
    stdout: process.stdout,
    stderr: process.stderr,
    env: process.env,
    cwd: process.cwd(),
    home,
    ...signals,
  }
  await leave(await runCli(args, io))
}

/** Caches compiled code. Everything works without the cache. */
function keepCompiledCode(home: string): void {
  const folder = cacheFolder(home)
  try {
    // Node would create the folders readable by everyone.
    mkdirSync(folder, { recursive: true, mode: 0o700 })
    enableCompileCache(folder)
  } catch {
    // A home folder that is not writable is no reason to stop.
  }
}

function cacheFolder(home: string): string {
  const { TAPETREE_HOME: own, XDG_CACHE_HOME: cache } = process.env
  if (own !== undefined && isAbsolute(own)) return join(own, 'cache', 'code')
  return join(cache !== undefined && isAbsolute(cache) ? cache : join(home, '.cache'), 'tapetree', 'code')
}

const loadingMs = 5000
/** By then the chat has painted and loaded the rest of its code. */
const loadedMs = 2000

/**
 * Slows heap growth while code loads: the garbage of loading would make the heap grow and stay large. Then collects it once. The collector
 * would wait for more garbage, which a chat that waits for its user does not make.
 */
function loadInLittleMemory(): void {
  // A built-in is available at once; an import would read all of its names.
  const { setFlagsFromString } = process.getBuiltinModule('node:v8')
  setFlagsFromString('--semi-space-growth-factor=1')
  setTimeout(() => setFlagsFromString('--semi-space-growth-factor=2'), loadingMs).unref()
  setTimeout(() => {
    // A collector that scripts can call is only in contexts that are made while the flag is set.
    setFlagsFromString('--expose-gc')
    const collect = process.getBuiltinModule('node:vm').runInNewContext('gc') as (how: object) => void
    setFlagsFromString('--no-expose-gc')
    collect({ type: 'major', flavor: 'last-resort' })
  }, loadedMs).unref()
}

/** How long a command may take to stop. */
const stopMs = 5000

/**
 * The first signal asks the command to stop, the second ends the process. A lost terminal or a shutting-down system sends no second signal,
 * so a deadline ends the process instead, which a command may extend. A command that listens for SIGHUP reloads instead, unless the terminal is gone.
 */
function signalsOfProcess(): Required<Pick<Io, 'signal' | 'onHangup' | 'extendStop'>> {
  const controller = new AbortController()
  const listeners = new Set<() => void>()
  let graceMs = stopMs
  const stop = (): void => {
    // Without listeners, the next signal ends the process.
    process.off('SIGINT', stop)
    process.off('SIGTERM', terminate)
    controller.abort()
  }
  const leaveSoon = (name: 'SIGTERM' | 'SIGHUP'): void => {
    stop()
    setTimeout(() => process.kill(process.pid, name), graceMs).unref()
  }
  const terminate = (): void => leaveSoon('SIGTERM')
  process.on('SIGINT', stop)
  const hangUp = (): void => {
    const hadTerminal = process.stdin.isTTY
    if (listeners.size > 0 && !(hadTerminal && !isatty(0))) {
      for (const listener of listeners) listener()
      return
    }
    process.off('SIGHUP', hangUp)
    leaveSoon('SIGHUP')
  }
  process.on('SIGTERM', terminate)
  process.on('SIGHUP', hangUp)
  onceTerminalIsGone(() => {
    process.off('SIGHUP', hangUp)
    leaveSoon('SIGHUP')
  })
  return {
    signal: controller.signal,
    extendStop: (ms) => (graceMs = stopMs + ms),
    onHangup: (listener) => {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
  }
}

/** Ignores write errors, which the writer handles; only a lost terminal ends the process. */
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

/** Open handles, such as idle connections, do not delay the exit; pending output does. */
async function leave(code: number): Promise<void> {
  process.exitCode = code
  await Promise.all([process.stdout, process.stderr].map(flushed))
  process.exit()
}

function flushed(stream: NodeJS.WriteStream): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  // Even a failed write must not delay the exit.
  stream.write('', () => resolve())
  return promise
}

function stopAt(error: unknown): void {
  const { message, stack } = error instanceof Error ? error : { message: String(error), stack: undefined }
  const details = process.env['TAPETREE_DEBUG'] === undefined ? '' : `${stack ?? ''}\n`
  process.stderr.write(
    `tapetree stopped because of an unexpected error: ${message.replaceAll(/\s+/g, ' ')}\n${details}` +
      'Your sessions are safe. Please report this error with the output of `tapetree doctor`; TAPETREE_DEBUG=1 shows the stack trace.\n',
    () => process.exit(1),
  )
}
