import { spawn, type ChildProcessByStdio } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import type { Readable } from 'node:stream'
import { fileURLToPath } from 'node:url'

/** One of our programs in its own process. */
export interface Child extends AsyncDisposable {
  readonly process: ChildProcessByStdio<null, Readable, Readable>
  /** The next line that it prints. Rejects with its stderr if it exits first. */
  line(): Promise<string>
  /** Resolves with its exit code, or the signal that ended it. */
  readonly ended: Promise<number | string>
}

export interface ChildOptions {
  env: Record<string, string>
  cwd: string
}

export function startChild(program: URL, args: readonly string[], { env, cwd }: ChildOptions): Child {
  const child = spawn(process.execPath, ['-C', '@tapetree/source', fileURLToPath(program), ...args], {
    env,
    cwd,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let complaints = ''
  child.stderr.on('data', (text: Buffer) => (complaints += text.toString()))
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  const ended = once(child, 'close').then(([code, signal]) => (code ?? signal) as number | string)
  return {
    process: child,
    ended,
    line: async () => {
      const { value, done } = await lines.next()
      if (done) throw new Error(`The child ended. ${complaints}`)
      return value
    },
    [Symbol.asyncDispose]: async () => {
      child.kill('SIGKILL')
      await ended
    },
  }
}
