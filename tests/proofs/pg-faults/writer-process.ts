import { spawn, type ChildProcess } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import type { History } from './history.ts'
import type { Order, Report, WriterOptions } from './report.ts'

const program = fileURLToPath(new URL('./writer.ts', import.meta.url))

/** A writer in a process of its own, which reports to a history. */
export class WriterProcess {
  readonly name: string
  /** Why it ended by itself, which it never should. */
  failure: string | undefined
  readonly #history: History
  readonly #child: ChildProcess
  readonly #closed: Promise<void>
  readonly #drained = Promise.withResolvers<void>()
  #isKilled = false
  #rest = ''

  constructor(options: { name: string; history: History; begin: WriterOptions }) {
    this.name = options.name
    this.#history = options.history
    const child = spawn(process.execPath, ['-C', '@tapetree/source', program], { stdio: ['pipe', 'pipe', 'pipe'] })
    this.#child = child
    options.history.processes.set(this.name, String(child.pid))
    child.stdin.on('error', () => undefined) // it may be dead when it is told something
    child.stdout.setEncoding('utf8').on('data', (chunk: string) => this.#take(chunk))
    let complaint = ''
    child.stderr.setEncoding('utf8').on('data', (chunk: string) => (complaint += chunk))
    this.#closed = new Promise((resolve) => {
      child.on('close', (code, signal) => {
        if (!this.#isKilled) this.failure ??= `ended with ${signal ?? code}: ${complaint.slice(0, 2000)}`
        this.#drained.resolve()
        resolve()
      })
    })
    this.tell({ type: 'begin', name: this.name, ...options.begin })
  }

  tell(order: Order): void {
    this.#child.stdin?.write(`${JSON.stringify(order)}\n`)
  }

  signal(signal: NodeJS.Signals): void {
    this.#child.kill(signal)
  }

  /** Resolves when no append is under way any more, or it has ended. */
  async drain(): Promise<void> {
    this.tell({ type: 'drain' })
    await this.#drained.promise
  }

  /** `kill -9`. Resolves when it is dead and everything that it said has been read. */
  async kill(): Promise<void> {
    this.#isKilled = true
    this.#child.kill('SIGKILL')
    await this.#closed
    this.#history.killed(this.name)
  }

  #take(chunk: string): void {
    const lines = (this.#rest + chunk).split('\n')
    // A line that the kill cut short was not said.
    this.#rest = lines.pop() as string
    for (const line of lines) {
      const report = JSON.parse(line) as Report
      if (report.type === 'failed') this.failure = report.reason
      if (report.type === 'drained') this.#drained.resolve()
      this.#history.hear(this.name, report)
    }
  }
}
