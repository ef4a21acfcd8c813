import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'

const program = ['/usr/sbin/nats-server', '/usr/bin/nats-server', '/usr/local/bin/nats-server'].find((path) =>
  existsSync(path),
)

/** Why no server can be started here; undefined if one can. */
export const missingNats =
  program === undefined ? 'nats-server is not installed in /usr/sbin or /usr/bin, so its tests are skipped.' : undefined

/** A NATS server of its own, on loopback. */
export class NatsProcess {
  readonly #options: readonly string[]
  #process: ChildProcess | undefined
  #port = 0

  private constructor(options: readonly string[]) {
    this.#options = options
  }

  static async start(options: readonly string[] = []): Promise<NatsProcess> {
    const server = new NatsProcess(options)
    await server.resume()
    return server
  }

  get port(): number {
    return this.#port
  }

  get url(): string {
    return `nats://127.0.0.1:${this.#port}`
  }

  /** Starts the server after `stop`, on the same port. */
  async resume(): Promise<void> {
    const options = ['-a', '127.0.0.1', '-p', String(this.#port || -1), ...this.#options]
    const child = spawn(program ?? 'nats-server', options, { stdio: ['ignore', 'ignore', 'pipe'] })
    this.#process = child
    let said = ''
    await new Promise<void>((resolve, reject) => {
      child.stderr.on('data', (text: Buffer) => {
        said = `${said}${text.toString()}`.slice(-4000)
        this.#port = Number(/client connections on 127\.0\.0\.1:(\d+)/.exec(said)?.[1] ?? this.#port)
        if (said.includes('Server is ready')) resolve()
      })
      child.once('exit', () => reject(new Error(`nats-server ended while it started: ${said}`)))
    })
  }

  signal(signal: 'SIGSTOP' | 'SIGCONT'): void {
    this.#process?.kill(signal)
  }

  /** Ends the server as a crash does. */
  async stop(): Promise<void> {
    const running = this.#process
    this.#process = undefined
    if (!running || running.exitCode !== null || running.signalCode !== null) return
    const ended = once(running, 'exit')
    running.kill('SIGKILL')
    await ended
  }
}
