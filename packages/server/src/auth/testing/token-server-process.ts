import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { dirname, join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { ask } from '../../testing/running-server.ts'

const program = fileURLToPath(new URL('token-server.ts', import.meta.url))

/** A real server over a shared token file, in a process that can be killed at any moment and started again. */
export class TokenServerProcess {
  url = ''
  session = ''
  readonly #file: string
  #child: ChildProcess | undefined

  constructor(file: string) {
    this.#file = file
  }

  async start(): Promise<void> {
    const child = spawn(process.execPath, ['-C', '@tapetree/source', program, this.#file], {
      stdio: ['ignore', 'pipe', 'inherit'],
      // A restart does not compile everything again.
      env: { ...process.env, NODE_COMPILE_CACHE: join(dirname(this.#file), 'cache') },
    })
    this.#child = child
    const [line] = (await once(createInterface({ input: child.stdout }), 'line')) as [string]
    Object.assign(this, JSON.parse(line))
  }

  async kill(): Promise<void> {
    const child = this.#child
    if (!child || child.exitCode !== null || child.signalCode !== null) return
    child.kill('SIGKILL')
    await once(child, 'exit')
  }

  /** Whether the server accepts this token. */
  async takes(token: string): Promise<boolean> {
    const { status } = await ask('/api/caller', { url: this.url, token })
    if (status !== 200 && status !== 401 && status !== 429) throw new Error(`/api/caller answered ${status}`)
    return status === 200
  }
}
