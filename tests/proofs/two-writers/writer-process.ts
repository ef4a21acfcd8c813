import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import type { Answer, Order, Report } from './orders.ts'

/** A process of the proof, seen from outside. */
export class WriterProcess {
  readonly #child: ChildProcess
  readonly #waiting = new Map<number, PromiseWithResolvers<Answer>>()
  readonly #onAcknowledged: (tenure: string, id: string) => void
  #orders = 0
  #hasStopped = Promise.withResolvers<void>()
  #isInTrap = false
  #isAlive = true

  private constructor(child: ChildProcess, onAcknowledged: (tenure: string, id: string) => void) {
    this.#child = child
    this.#onAcknowledged = onAcknowledged
  }

  static start(onAcknowledged: (tenure: string, id: string) => void): WriterProcess {
    const program = fileURLToPath(new URL('./worker.ts', import.meta.url))
    const child = spawn(process.execPath, ['-C', '@tapetree/source', program], {
      stdio: ['ignore', 'pipe', 'inherit', 'ipc'],
    })
    const started = new WriterProcess(child, onAcknowledged)
    child.on('message', (report: Report) => started.#take(report))
    child.on('exit', () => started.#exited())
    createInterface(child.stdout!).on('line', (line) => started.#note(line))
    return started
  }

  get pid(): string {
    return String(this.#child.pid)
  }

  get isAlive(): boolean {
    return this.#isAlive
  }

  async tell(order: Order): Promise<Answer> {
    const number = (this.#orders += 1)
    const answer = Promise.withResolvers<Answer>()
    this.#waiting.set(number, answer)
    if (this.#isAlive) this.#child.send({ number, order })
    else this.#exited()
    return answer.promise
  }

  /** Resolves when the process has stopped itself in a trap, or has done its work without coming there. */
  async hasStopped(work: Promise<unknown>): Promise<void> {
    await Promise.race([this.#hasStopped.promise, work])
    this.#hasStopped = Promise.withResolvers<void>()
  }

  stop(): void {
    this.#child.kill('SIGSTOP')
  }

  /** A process that stops itself says so just before: asked too early, it would stop afterwards and for good. */
  resume(): void {
    this.#child.kill('SIGCONT')
    if (this.#isInTrap && this.#isAlive) setTimeout(() => this.resume(), 10)
  }

  async kill(): Promise<void> {
    if (!this.#isAlive) return
    this.#child.kill('SIGKILL')
    // Not `exit`: what it said last may still be on its way.
    await once(this.#child, 'close')
  }

  #note(line: string): void {
    this.#isInTrap = line === 'stopped'
    if (this.#isInTrap) this.#hasStopped.resolve()
  }

  #take(report: Report): void {
    if (report.type === 'acknowledged') return this.#onAcknowledged(report.tenure, report.id)
    this.#waiting.get(report.number)?.resolve(report.answer)
    this.#waiting.delete(report.number)
  }

  #exited(): void {
    this.#isAlive = false
    for (const { resolve } of this.#waiting.values())
      resolve({ type: 'failed', code: 'dead', message: 'The process died.' })
    this.#waiting.clear()
  }
}
