import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { constants } from 'node:os'

export interface CheckRun {
  /** The folder in which it runs. */
  cwd: string
  environment: Readonly<Record<string, string | undefined>>
  timeoutMs: number
  signal?: AbortSignal
}

export interface CheckEnd {
  /** 0 if it passed. As in a shell: 128 and the number of the signal that ended it; 124 after the timeout. */
  exitCode: number
  durationMs: number
  /** The end of what it printed. */
  output: string
}

const timedOut = 124
const maxOutput = 8000

/** Runs a command that the user typed, such as the tests of a project. It ends with everything that it has started. */
export async function runCheck(command: string, run: CheckRun): Promise<CheckEnd> {
  const { cwd, environment, timeoutMs, signal } = run
  signal?.throwIfAborted()
  const startedAt = performance.now()
  // A group of its own, so that all of its processes can be ended at once.
  const child = spawn(command, {
    cwd,
    env: environment,
    shell: true,
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let output = ''
  const keep = (chunk: string): void => void (output = (output + chunk).slice(-maxOutput))
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', keep)
  const stop = (): void => {
    if (child.pid === undefined) return
    try {
      process.kill(-child.pid, 'SIGKILL')
    } catch {
      // It has ended.
    }
  }
  let isOverdue = false
  const timer = setTimeout(() => {
    isOverdue = true
    stop()
  }, timeoutMs)
  signal?.addEventListener('abort', stop, { once: true })
  try {
    const [code, ended] = (await once(child, 'exit')) as [number | null, NodeJS.Signals | null]
    const exitCode = isOverdue ? timedOut : (code ?? 128 + (ended ? constants.signals[ended] : 0))
    return { exitCode, durationMs: Math.round(performance.now() - startedAt), output }
  } finally {
    clearTimeout(timer)
    signal?.removeEventListener('abort', stop)
    // What it left in the background.
    stop()
  }
}
