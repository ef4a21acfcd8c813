import { RemoteSession } from '@tapetree/client'
import type { Attached } from '@tapetree/client/protocol'
import { setTimeout } from 'node:timers/promises'
import { promptOf } from '../takeover/words.ts'

/** A message of a client, and what the client was told about it. */
export interface SentJob {
  tag: string
  /** `open`: no answer has come. `refused`: it was told that it failed, and it may be in the log or not. */
  told: 'open' | 'acknowledged' | 'refused'
  sentMs: number
  /** When a client saw the end of it. */
  doneMs?: number
}

/** A session with a client on each server. Jobs are sent by any of them, one after the other. */
export class WatchedSession {
  readonly id: string
  readonly jobs: SentJob[] = []
  readonly clients: RemoteSession[] = []
  /** Lines as they were sent, by their number. */
  readonly seen = new Map<number, string>()
  readonly problems: string[] = []
  readonly #random: () => number
  readonly #pauseMs: number
  readonly #wakeUps = new Set<() => void>()
  /** The jobs whose last message a client has got. */
  readonly #done = new Set<string>()
  /** Called when a client has got the last message of the job. */
  readonly #ends = new Map<string, () => void>()
  #isDraining = false
  #hurriedMs = 0
  #pause = new AbortController()
  #working: Promise<void> = Promise.resolve()

  constructor(id: string, { random, pauseMs }: { random: () => number; pauseMs: number }) {
    this.id = id
    this.#random = random
    this.#pauseMs = pauseMs
  }

  async connect(urls: readonly string[]): Promise<void> {
    for (const [index, baseUrl] of urls.entries()) {
      const id = `${this.id}-${index}`
      const client = await RemoteSession.open({
        baseUrl,
        token: 'proof',
        sessionId: this.id,
        client: { id },
        random: this.#random,
        wakeUps: (wakeUp) => {
          this.#wakeUps.add(wakeUp)
          return () => this.#wakeUps.delete(wakeUp)
        },
        connect: (url, protocols) => this.#socket(id, url, protocols),
      })
      this.clients.push(client)
    }
    await Promise.all(this.clients.map(({ ready }) => ready))
  }

  begin(): void {
    this.#working = this.#work()
  }

  /**
   * Sends the next job without a pause, unless one was sent after this time. Clients connect at once, as a browser does
   * whose network is back: by themselves they would wait for up to 30 seconds.
   */
  hurry(sinceMs: number): void {
    for (const wakeUp of this.#wakeUps) wakeUp()
    this.#hurriedMs = sinceMs
    this.#pause.abort()
    this.#pause = new AbortController()
  }

  /** Sends no more jobs. Resolves when the last one is done. */
  async drain(): Promise<void> {
    this.#isDraining = true
    this.#pause.abort()
    await this.#working
  }

  async close(): Promise<void> {
    await Promise.all(this.clients.map((client) => client.close()))
  }

  /** Whether a job that was sent after this time is done. */
  wentOn(sinceMs: number): boolean {
    return this.jobs.some(({ sentMs, doneMs }) => sentMs > sinceMs && doneMs !== undefined)
  }

  async #work(): Promise<void> {
    for (let count = 1; !this.#isDraining; count++) {
      const job: SentJob = { tag: `${this.id}.${count}`, told: 'open', sentMs: Date.now() }
      this.jobs.push(job)
      const client = this.clients[Math.floor(this.#random() * this.clients.length)] as RemoteSession
      const calls = 1 + Math.floor(this.#random() * 2)
      try {
        await client.prompt(promptOf({ tag: job.tag, calls, stepMs }), { whenBusy: 'queue' })
        job.told = 'acknowledged'
      } catch {
        job.told = 'refused'
      }
      if (job.told === 'acknowledged') await this.#untilDone(job)
      if (job.told === 'refused') await setTimeout(retryMs)
      else if (job.sentMs > this.#hurriedMs) await this.#rest()
    }
  }

  async #rest(): Promise<void> {
    await setTimeout(this.#random() * this.#pauseMs, undefined, this.#pause).catch(() => undefined) // it is in a hurry
  }

  async #untilDone(job: SentJob): Promise<void> {
    const waiting = new AbortController()
    const ended = new Promise<void>((resolve) => this.#ends.set(job.tag, resolve))
    const isLate = setTimeout(patienceMs, true, { signal: waiting.signal }).catch(() => false)
    // The answer may have come before the acknowledgement.
    if (!this.#done.has(job.tag) && (await Promise.race([ended, isLate])) === true) {
      this.problems.push(`job ${job.tag} was acknowledged, and not done in ${patienceMs / 1000} s`)
      this.#isDraining = true
    } else job.doneMs = Date.now()
    waiting.abort()
    this.#ends.delete(job.tag)
  }

  /** Each socket gets every line from where it began, once and in order. */
  #socket(client: string, url: string, protocols: string[]): WebSocket {
    const socket = new WebSocket(url, protocols)
    let next: number | undefined
    socket.addEventListener('message', ({ data }) => {
      const text = String(data)
      const frame = JSON.parse(text) as { seq?: number; type: string; data?: unknown }
      if (frame.type === 'attached') next = (frame.data as Attached).from
      if (typeof frame.seq !== 'number' || frame.data !== undefined) return
      if (frame.seq !== next) this.problems.push(`${client} got line ${frame.seq}, and line ${next} was due`)
      next = frame.seq + 1
      const before = this.seen.get(frame.seq) ?? text
      if (before !== text) this.problems.push(`${client} got another line ${frame.seq} than others`)
      this.seen.set(frame.seq, text)
      const [, tag] = endOfJob.exec(text) ?? []
      if (tag === undefined) return
      this.#done.add(tag)
      this.#ends.get(tag)?.()
    })
    return socket
  }
}

/** About how long the model speaks and a tool runs. */
const stepMs = 400
/** What the model says last. */
const endOfJob = /Done: (\S+)\./
const retryMs = 500
const patienceMs = 90_000
