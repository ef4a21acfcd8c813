import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import type { Operation } from '@tapetree/client/protocol'
import { randomFrom } from '../../../scripts/figure/random.ts'
import { WireScreen } from '../../../packages/server/src/testing/wire-screen.ts'
import type { KillableServer, Ready } from '../server-kill/killable-server.ts'
import type { ServerRelay } from '../server-kill/server-relay.ts'
import type { Task } from '../server-kill/words.ts'
import { checkLog } from './check-log.ts'
import type { HistoryResult } from './history.ts'
import { differenceOf, foldOf, Referee } from './referee.ts'
import { readLog } from './stage.ts'

export interface KillHistoryOptions {
  seed: number
  folder: string
  servers: ServerRelay
}

/** Screens of a server in another process, which is killed with `kill -9` in the middle of it. */
export async function playKillHistory(options: KillHistoryOptions): Promise<HistoryResult> {
  const history = new KillHistory(options)
  try {
    await history.play()
    await history.settle()
    return await history.judge()
  } finally {
    history.close()
  }
}

class KillHistory {
  readonly #options: KillHistoryOptions
  readonly #random: () => number
  readonly #referee = new Referee(() => undefined)
  readonly #screens: WireScreen[] = []
  #ready: Ready | undefined
  #commands = 0
  #steps = 0

  constructor(options: KillHistoryOptions) {
    this.#options = options
    this.#random = randomFrom(options.seed)
  }

  async play(): Promise<void> {
    await this.#start(this.#options.servers.get())
    const count = 3 + this.#int(10)
    for (let index = 0; index < count; index++) this.#newScreen()
    for (const screen of this.#screens) screen.connect()
    const steps = 30 + this.#int(30)
    const killAt = 5 + this.#int(steps - 5)
    for (this.#steps = 0; this.#steps < steps; this.#steps++) {
      if (this.#steps === killAt) await this.#start(await this.#options.servers.kill())
      this.#step(this.#any(this.#screens))
      await setTimeout(this.#random() * 12)
    }
  }

  async settle(): Promise<void> {
    for (const screen of this.#screens) if (screen.isAway) screen.connect()
    const until = performance.now() + 60_000
    while (!this.#isAtRest()) {
      if (performance.now() > until) {
        const [screen] = this.#screens
        const state = JSON.stringify(Object.fromEntries(screen?.state ?? []))
        this.#referee.wrong('I4', `there was no rest: ${state.slice(0, 1000)}`)
        return
      }
      for (const { id } of pendingOf(this.#screens[0]))
        this.#send(this.#any(this.#screens), 'permission.answer', { request_id: id, outcome: 'allowed' })
      await setTimeout(10)
    }
  }

  async judge(): Promise<HistoryResult> {
    const { folder } = this.#options
    const referee = this.#referee
    const lines = readLog(folder, this.#ready?.sessionId ?? '')
    const whole = foldOf(lines)
    for (const screen of this.#screens) {
      const difference = differenceOf(screen.transcript, whole)
      if (difference !== undefined) referee.wrong('I4', `${screen.id} does not show the log: ${difference}`)
    }
    for (const [seq, text] of referee.seen)
      if (lines[seq - 1] !== text)
        referee.wrong('I2', `line ${seq} was sent and is ${lines[seq - 1] === undefined ? 'gone' : 'another'}`)
    const ran = (await readFile(this.#marks, 'utf8').catch(() => '')).split('\n').filter(Boolean)
    for (const [callId, runs] of Object.entries(Object.groupBy(ran, (each) => each)))
      if ((runs?.length ?? 0) > 1) referee.wrong('I7', `call ${callId} ran ${runs?.length} times`)
    const { commands, acks } = referee
    const violations = [...referee.violations, ...checkLog({ lines, commands, acks, closings: [] })]
    const figures = {
      screens: this.#screens.length,
      steps: this.#steps,
      frames: referee.frames,
      lines: lines.length,
      commands: commands.size,
    }
    return { violations, figures }
  }

  close(): void {
    for (const screen of this.#screens) screen.cut()
  }

  get #marks(): string {
    return join(this.#options.folder, 'marks')
  }

  async #start(server: KillableServer): Promise<void> {
    const { folder, seed } = this.#options
    const { sessionId, port, token } = this.#ready ?? {}
    const task: Task = {
      folder,
      seed: seed + this.#steps,
      play: 'talk',
      marks: this.#marks,
      ...(sessionId !== undefined && { sessionId }),
      ...(port !== undefined && { port }),
      ...(token !== undefined && { token }),
    }
    this.#ready = await server.host(task)
  }

  #step(screen: WireScreen): void {
    const step = this.#random()
    if (step < 0.06) return screen.cut()
    if (step < 0.16) return screen.isAway ? screen.connect() : screen.reload()
    if (step < 0.2 && screen.cursor) return screen.connect({ seq: screen.cursor.seq, crc: 'ffffffff' })
    if (step < 0.28) {
      const { id, op, args } = this.#any([...this.#referee.commands.values()]) ?? {}
      if (id !== undefined && args) screen.command(op as Operation, args, id)
      return
    }
    if (step < 0.4) {
      const request = this.#any(pendingOf(screen))
      if (!request) return
      for (let count = 2; count > 0; count--)
        this.#send(this.#any(this.#screens), 'permission.answer', { request_id: request.id, outcome: 'allowed' })
      return
    }
    const text = `word ${this.#commands}`
    const waiting = this.#any(screen.transcript.waiting)?.id
    const runId = screen.transcript.run?.runId
    const entry = this.#any([...screen.transcript.path.items])?.id ?? null
    if (step < 0.45 && waiting !== undefined) return this.#send(screen, 'queue.move', { id: waiting, before_id: null })
    if (step < 0.5 && waiting !== undefined) return this.#send(screen, 'queue.remove', { id: waiting })
    if (step < 0.55 && runId !== undefined) return this.#send(screen, 'cancel', { run_id: runId })
    if (step < 0.58) return this.#send(screen, 'branch', { entry_id: entry })
    if (step < 0.65) return this.#send(screen, 'steer', { text })
    if (step < 0.8) return this.#send(screen, 'queue.add', { message: text })
    return this.#send(screen, 'prompt', { text })
  }

  #send(screen: WireScreen, op: Operation, args: Record<string, unknown>): void {
    const id = `cmd-${++this.#commands}`
    this.#referee.commands.set(id, { id, op, args })
    screen.command(op, args, id)
  }

  #newScreen(): void {
    const { url, token } = this.#ready as Ready
    const headers = { authorization: `Bearer ${token}` }
    const id = `screen-${this.#screens.length}`
    this.#screens.push(new WireScreen({ id, url, headers, watcher: this.#referee, window: 500, backoffMs: 15 }))
  }

  #isAtRest(): boolean {
    const head = Math.max(...this.#screens.map(({ cursor }) => cursor?.seq ?? 0))
    return this.#screens.every(({ isAttached, unacknowledged, cursor, state, transcript }) => {
      const run = state.get('run')?.value as { is_busy: boolean; run_id: string | null } | undefined
      const isIdle = run?.is_busy === false && run.run_id === null && transcript.permissions.length === 0
      return isAttached && isIdle && unacknowledged.size === 0 && cursor?.seq === head
    })
  }

  #int(count: number): number {
    return Math.floor(this.#random() * count)
  }

  #any<T>(list: readonly T[]): T {
    return list[this.#int(list.length)] as T
  }
}

function pendingOf(screen: WireScreen | undefined): { id: string }[] {
  return (screen?.transcript.permissions ?? []).map(({ requestId }) => ({ id: requestId }))
}
