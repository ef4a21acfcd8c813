import { spawn, type ChildProcess } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import type { Acknowledgement, Report, WriterOptions } from './report.ts'

const program = fileURLToPath(new URL('./writer.ts', import.meta.url))

/** A writer in a process of its own, seen from whoever is going to kill it. */
export class WriterProcess {
  readonly acknowledged: Acknowledgement[] = []
  /** What it said about a failure of its own: a killed writer has none. */
  failure: string | undefined
  durableCount = 0
  readonly #child: ChildProcess
  readonly #closed: Promise<void>
  #isReady = false
  #isInLongWrite = false
  #rest = ''
  #onReport = (): void => undefined

  /** Loads the program and leaves it waiting, so that nobody waits for it later. */
  constructor(options: { compileCache: string }) {
    const child = spawn(process.execPath, ['-C', '@tapetree/source', program], {
      env: { ...process.env, NODE_COMPILE_CACHE: options.compileCache },
      stdio: ['pipe', 'pipe', 'pipe'],
    })
    this.#child = child
    child.stdin.on('error', () => undefined) // it may be dead when it is told to go
    child.stdout.setEncoding('utf8').on('data', (chunk: string) => this.#take(chunk))
    let complaint = ''
    child.stderr.setEncoding('utf8').on('data', (chunk: string) => (complaint += chunk))
    this.#closed = new Promise((resolve) => {
      child.on('close', (code, signal) => {
        if (signal !== 'SIGKILL') this.failure ??= `ended with ${signal ?? code}: ${complaint.slice(0, 2000)}`
        resolve()
      })
    })
  }

  /** Resolves when it has been told to begin. */
  async go(options: WriterOptions): Promise<void> {
    await this.#until(() => this.#isReady)
    this.#child.stdin?.write(`${JSON.stringify(options)}\n`)
  }

  /** Resolves when so many durable appends have been acknowledged, or when it has ended by itself. */
  async hasAcknowledged(count: number): Promise<void> {
    await this.#until(() => this.durableCount >= count)
  }

  /** Makes it write a lot at once. Resolves when that write has just begun. */
  async beginsLongWrite(): Promise<void> {
    this.#child.stdin?.write('burst\n')
    await this.#until(() => this.#isInLongWrite)
  }

  /** `kill -9`. Resolves when it is dead and everything that it said has been read. */
  async kill(): Promise<void> {
    this.#child.kill('SIGKILL')
    await this.#closed
  }

  async #until(condition: () => boolean): Promise<void> {
    await Promise.race([
      this.#closed,
      new Promise<void>((resolve) => {
        this.#onReport = () => {
          if (condition()) resolve()
        }
        this.#onReport()
      }),
    ])
  }

  #take(chunk: string): void {
    const lines = (this.#rest + chunk).split('\n')
    // A line that the kill cut short was not said.
    this.#rest = lines.pop() as string
    for (const line of lines) this.#hear(JSON.parse(line) as Report)
    this.#onReport()
  }

  #hear(report: Report): void {
    switch (report.type) {
      case 'ready':
        this.#isReady = true
        return
      case 'writing':
        this.#isInLongWrite = true
        return
      case 'acknowledged': {
        const { type: _, ...acknowledgement } = report
        this.acknowledged.push(acknowledgement)
        if (report.durability === 'durable') this.durableCount++
        return
      }
      case 'failed':
        this.failure = report.reason
        return
      default:
        report satisfies never
    }
  }
}
