import { fork, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { onlyModel, allowAll } from '@tapetree/agent'
import { script, scriptedModel } from '@tapetree/agent/testing'
import type { Operation } from '@tapetree/client/protocol'
import { openFileStore } from '@tapetree/session/stores/file'
import { agentSessions } from '../../../packages/server/src/drivers/agent-sessions.ts'
import { defaultTenant, TokenStore } from '../../../packages/server/src/auth/token-store.ts'
import type { Order } from '../../../packages/server/src/live/testing/owning-process.ts'
import { startServer, type RunningServer } from '../../../packages/server/src/server.ts'
import { WireScreen } from '../../../packages/server/src/testing/wire-screen.ts'
import { randomFrom } from '../../../scripts/figure/random.ts'
import type { HistoryResult } from './history.ts'
import { differenceOf, foldOf, Referee } from './referee.ts'
import { readLog } from './stage.ts'

export interface OwnerHistoryOptions {
  seed: number
  folder: string
}

/**
 * A session that another process owns, as a terminal does. Screens watch it through a server while its owner talks, closes it, opens it
 * again, leaves it or is killed with `kill -9`; their commands are refused until the server has taken it over.
 */
export async function playOwnerHistory(options: OwnerHistoryOptions): Promise<HistoryResult> {
  const history = new OwnerHistory(options)
  try {
    await history.open()
    await history.play()
    await history.settle()
    return history.judge()
  } finally {
    await history.close()
  }
}

const program = join(import.meta.dirname, '../../../packages/server/src/live/testing/owning-process.ts')
const patienceMs = 60_000

class OwnerHistory {
  readonly #options: OwnerHistoryOptions
  readonly #random: () => number
  readonly #referee = new Referee(() => undefined)
  readonly #screens: WireScreen[] = []
  #owner!: ChildProcess
  #server: RunningServer | undefined
  #closeStore: () => Promise<void> = () => Promise.resolve()
  #sessionId = ''
  #commands = 0
  #steps = 0
  #isOwnerBusy = false

  constructor(options: OwnerHistoryOptions) {
    this.#options = options
    this.#random = randomFrom(options.seed)
  }

  async open(): Promise<void> {
    const { folder } = this.#options
    this.#owner = fork(program, [folder], { execArgv: ['-C', '@tapetree/source'] })
    const [{ sessionId }] = (await once(this.#owner, 'message')) as [{ sessionId: string }]
    this.#sessionId = sessionId
    this.#owner.on('message', () => (this.#isOwnerBusy = false))
    const store = openFileStore({ folder })
    this.#closeStore = () => store.close()
    let says = script()
    for (let answer = 0; answer < 200; answer++) says = says.text(`Answer ${answer} `, 'of the server.').step()
    const models = onlyModel(scriptedModel(says))
    const sessions = agentSessions({ store, models, tools: () => [], gate: () => allowAll, hasSubagents: false })
    const tokens = await TokenStore.open({ file: join(folder, 'tokens.json') })
    const token = tokens.takeFirstToken() ?? ''
    this.#server = await startServer({ tenants: new Map([[defaultTenant, sessions]]), tokens })
    const url = `${this.#server.url.replace('http', 'ws')}/api/sessions/${sessionId}/ws`
    const headers = { authorization: `Bearer ${token}` }
    const count = 2 + this.#int(5)
    for (let index = 0; index < count; index++) {
      const id = `screen-${index}`
      this.#screens.push(new WireScreen({ id, url, headers, watcher: this.#referee, window: 500, backoffMs: 15 }))
    }
  }

  async play(): Promise<void> {
    for (const screen of this.#screens) screen.connect()
    const says = 2 + this.#int(4)
    for (let said = 0; said < says; said++) {
      this.#order()
      while (this.#isOwnerBusy) await this.#stepAndWait()
    }
    // In the middle of an answer, or before it has begun.
    this.#order()
    for (let left = this.#int(15); left > 0; left--) await this.#stepAndWait()
    await this.#endOwner()
    for (let left = 5 + this.#int(15); left > 0; left--) await this.#stepAndWait()
  }

  /** The owner has gone, so a command gets through, and everybody sees all of the log. */
  async settle(): Promise<void> {
    for (const screen of this.#screens) if (screen.isAway) screen.connect()
    const [first] = this.#screens as [WireScreen]
    const isSettled = (): boolean => {
      const head = readLog(this.#options.folder, this.#sessionId).length
      return this.#screens.every(({ isAttached, unacknowledged, cursor, state }) => {
        const run = state.get('run')?.value as { is_busy: boolean } | undefined
        return isAttached && unacknowledged.size === 0 && cursor?.seq === head && run?.is_busy === false
      })
    }
    const until = performance.now() + patienceMs
    const id = this.#send(first, 'rename', { name: 'taken over' })
    while (!this.#referee.acks.has(id) || !isSettled()) {
      if (performance.now() > until) {
        const seen = this.#screens.map(({ id: name, cursor, state }) => [name, cursor?.seq, state.get('run')?.value])
        return this.#referee.wrong('I4', `there was no rest: ${JSON.stringify(seen)}`)
      }
      await setTimeout(10)
    }
    const ack = this.#referee.acks.get(id)
    if (!ack?.ok) this.#referee.wrong('I6', `the session was not taken over: ${JSON.stringify(ack?.error)}`)
    for (const { id: name, state } of this.#screens) {
      const readOnly = state.get('read_only')?.value
      if (readOnly !== null) this.#referee.wrong('I4', `${name} still says read-only: ${JSON.stringify(readOnly)}`)
    }
  }

  judge(): HistoryResult {
    const referee = this.#referee
    const lines = readLog(this.#options.folder, this.#sessionId)
    const whole = foldOf(lines)
    for (const screen of this.#screens) {
      // What the killed owner had said stays in flight until its run is resumed or closed.
      const inFlight = new Map([...screen.transcript.inFlight].filter(([, { run }]) => run !== whole.run?.runId))
      const difference = differenceOf({ ...screen.transcript, inFlight }, whole)
      if (difference !== undefined) referee.wrong('I4', `${screen.id} does not show the log: ${difference}`)
    }
    for (const [seq, text] of referee.seen)
      if (lines[seq - 1] !== text) referee.wrong('I2', `line ${seq} was sent, and another one is in the log`)
    for (const [id, { ok, error }] of referee.acks) {
      const count = lines.filter((line) => line.includes(`"cause":{"cmd":${JSON.stringify(id)}`)).length
      if (ok && count > 1) referee.wrong('I6', `command ${id} took effect ${count} times`)
      if (!ok && count > 0) referee.wrong('I6', `command ${id} was refused (${error?.type}) and took effect`)
    }
    const { frames, commands, violations } = referee
    const figures = {
      screens: this.#screens.length,
      steps: this.#steps,
      frames,
      lines: lines.length,
      commands: commands.size,
    }
    return { violations, figures }
  }

  async close(): Promise<void> {
    for (const screen of this.#screens) screen.cut()
    this.#owner.kill('SIGKILL')
    await this.#server?.close()
    await this.#closeStore()
  }

  #order(): void {
    const pieces = Array.from({ length: 1 + this.#int(20) }, (_, index) => `piece ${index} 🙂 `)
    const order: Order = { type: 'say', prompt: `say ${this.#int(1000)}`, pieces, pauseMs: this.#int(40) }
    this.#isOwnerBusy = true
    this.#owner.send(order)
  }

  async #endOwner(): Promise<void> {
    if (this.#random() < 0.3) return this.#letGo()
    const gone = once(this.#owner, 'exit')
    this.#owner.kill('SIGKILL')
    await gone
    // At once: what the owner wrote last may not have been read yet.
    if (this.#random() < 0.7) this.#send(this.#any(this.#screens), 'rename', { name: 'at once' })
  }

  /** Its process stays, and has nothing to do with the session any more. */
  async #letGo(): Promise<void> {
    const left = Promise.withResolvers<void>()
    this.#owner.on('message', ({ type }: { type: string }) => {
      if (type === 'left') left.resolve()
    })
    this.#owner.send({ type: 'leave' } satisfies Order)
    await left.promise
  }

  async #stepAndWait(): Promise<void> {
    this.#steps++
    this.#step(this.#any(this.#screens))
    await setTimeout(this.#random() * 40)
  }

  #step(screen: WireScreen): void {
    const step = this.#random()
    if (step < 0.12) return screen.cut()
    if (step < 0.3) return screen.isAway ? screen.connect() : screen.reload()
    if (step < 0.36 && screen.cursor) return screen.connect({ seq: screen.cursor.seq, crc: 'ffffffff' })
    if (step < 0.46) return void this.#send(screen, 'rename', { name: `name ${this.#commands}` })
    if (step < 0.52) return void this.#send(screen, 'queue.add', { message: `later ${this.#commands}` })
    if (step < 0.56) return void this.#send(screen, 'prompt', { text: `word ${this.#commands}` })
    if (screen.isAway) screen.connect()
  }

  #send(screen: WireScreen, op: Operation, args: Record<string, unknown>): string {
    const id = `cmd-${++this.#commands}`
    this.#referee.commands.set(id, { id, op, args })
    screen.command(op, args, id)
    return id
  }

  #int(count: number): number {
    return Math.floor(this.#random() * count)
  }

  #any<T>(list: readonly T[]): T {
    return list[this.#int(list.length)] as T
  }
}
