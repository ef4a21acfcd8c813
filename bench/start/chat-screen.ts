import { spawn, type IPty } from '@lydell/node-pty'
import { readFileSync } from 'node:fs'
import { setTimeout as wait } from 'node:timers/promises'
import type { FakeHome } from '../../packages/cli/src/testing/fake-home.ts'
import { bundle } from '../../packages/cli/src/testing/bundled-command.ts'

/** The chat in a pseudo-terminal, from its start to its first picture. */
export class ChatScreen implements Disposable {
  readonly #pty: IPty
  /** Resolves with the milliseconds from the start. */
  readonly painted: Promise<number>

  constructor({ cwd, env }: Pick<FakeHome, 'cwd' | 'env'>) {
    const start = performance.now()
    this.#pty = spawn(process.execPath, [bundle], { cols: 100, rows: 30, cwd, env })
    const { promise, resolve, reject } = Promise.withResolvers<number>()
    let shown = ''
    this.#pty.onData((data) => {
      shown += data
      if (shown.includes('tapetree')) resolve(performance.now() - start)
    })
    this.#pty.onExit(({ exitCode }) => reject(new Error(`The chat ended with ${exitCode} and had shown ${shown}`)))
    promise.catch(() => undefined)
    this.painted = promise
  }

  /** Lets it end by itself, and keep the code that it has compiled, as it does for whoever uses it a second time. */
  async leave(): Promise<void> {
    await this.painted
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#pty.onExit(() => resolve())
    this.#pty.kill('SIGTERM')
    await promise
  }

  /** Of the process, when it has come to rest: what the system says is in memory. */
  async idleMegabytes(): Promise<number> {
    await this.painted
    let last = this.#residentKilobytes()
    for (let quiet = 0; quiet < 5;) {
      await wait(400)
      const now = this.#residentKilobytes()
      quiet = Math.abs(now - last) < 256 ? quiet + 1 : 0
      last = now
    }
    return (last * 1024) / 1e6
  }

  #residentKilobytes(): number {
    const status = readFileSync(`/proc/${this.#pty.pid}/status`, 'utf8')
    return Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1])
  }

  [Symbol.dispose](): void {
    this.#pty.kill('SIGKILL')
  }
}
