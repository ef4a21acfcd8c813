import type { SessionHandle } from '@tapetree/client'
import { harmlessLine } from '../../text/harmless.ts'
import { elapsedText } from '../../text/elapsed.ts'
import { runWords } from '../views/status-line.ts'

const patienceMs = 15_000

/** What a run does, in few words: that it works, what it waits for, that it still works, and that it is done. */
export class HeardProgress {
  readonly #now: () => number
  #startedAt: number | undefined
  #saidAt = 0
  #waiting: string | undefined

  constructor(now: () => number) {
    this.#now = now
  }

  news(handle: SessionHandle): string[] {
    const now = this.#now()
    const run = handle.state('run')
    const isBusy = run?.isBusy ?? handle.transcript.run !== null
    const waiting = run?.waitingFor?.type === 'resume' ? undefined : run?.waitingFor?.type
    const lines: string[] = []
    if (isBusy && this.#startedAt === undefined) lines.push('Working.')
    if (waiting !== undefined && waiting !== this.#waiting) {
      lines.push(harmlessLine(runWords({ transcript: handle.transcript, run, now }) ?? waiting))
    }
    if (!isBusy && this.#startedAt !== undefined) lines.push('Ready.')
    this.#waiting = waiting
    this.#startedAt = isBusy ? (this.#startedAt ?? now) : undefined
    if (lines.length > 0) this.#saidAt = now
    return lines
  }

  /** Called now and then: says that it still works, not too often. */
  patience(): string[] {
    const now = this.#now()
    if (this.#startedAt === undefined || now - this.#saidAt < patienceMs) return []
    this.#saidAt = now
    return [`Still working, ${elapsedText(now - this.#startedAt)}.`]
  }
}
