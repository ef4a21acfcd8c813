import { mkdir, readFile } from 'node:fs/promises'
import { readFileSync } from 'node:fs'
import type { Socket } from 'node:net'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { limits, type Operation } from '@tapetree/client/protocol'
import { randomFrom } from '../../../scripts/figure/random.ts'
import { WireScreen } from '../../../packages/server/src/testing/wire-screen.ts'
import { checkLog } from '../sync/check-log.ts'
import { RawSockets } from '../sync/raw-sockets.ts'
import { differenceOf, foldOf, Referee } from '../sync/referee.ts'
import { readLog } from '../sync/stage.ts'
import type { Violation } from '../sync/violation.ts'
import { agentFolder, type ForeignTask } from './foreign-stage.ts'
import { InnerHost, KilledHost, type Host, type ServerProgram } from './hosts.ts'
import { judgeForeign } from './judge.ts'
import { promptOf, randomSteps, type Deed } from './steps.ts'

export interface ConversationOptions {
  seed: number
  folder: string
  /** If it is set, the server is a process, and is killed. */
  server?: ServerProgram
}

export interface ConversationResult {
  violations: Violation[]
  figures: Record<'turns' | 'calls' | 'agents' | 'kills' | 'restarts' | 'commands' | 'frames' | 'lines', number>
}

const restMs = 120_000
/** A run without a new line for so long is cancelled at the end. */
const patienceMs = 250

/** One session with a foreign agent and several screens, and what happens to all of them, as a seed has it. */
export async function playConversation(options: ConversationOptions): Promise<ConversationResult> {
  const conversation = new Conversation(options)
  try {
    await conversation.open()
    await conversation.play()
    await conversation.settle()
    return await conversation.judge()
  } finally {
    await conversation.close()
  }
}

class Conversation {
  readonly #options: ConversationOptions
  #random: () => number
  readonly #sockets = new RawSockets()
  readonly #referee = new Referee(() => this.#host?.inner)
  readonly #screens: WireScreen[] = []
  readonly #stalled = new Map<WireScreen, Socket>()
  /** Without deaths and errors: everything that was said must be there. */
  readonly #isCalm: boolean
  readonly #closings: { from: number; to: number }[] = []
  #host: Host | undefined
  #commands = 0
  #restarts = 0
  #kills = 0

  constructor(options: ConversationOptions) {
    this.#options = options
    this.#random = randomFrom(options.seed)
    this.#isCalm = this.#random() < 0.3 && options.server === undefined
  }

  async open(): Promise<void> {
    const { folder, server } = this.#options
    const task: ForeignTask = {
      folder,
      features: this.#any(['load', 'load', 'resume', 'none']),
      steerPolicy: this.#any(['skip-remaining', 'after-batch', 'interrupt']),
    }
    await mkdir(agentFolder(folder), { recursive: true })
    this.#host = server === undefined ? await InnerHost.open(task) : await KilledHost.open(task, server)
    for (let count = 2 + this.#int(4); count > 0; count--) this.#newScreen()
    for (const screen of this.#screens) screen.connect()
  }

  async play(): Promise<void> {
    await this.#waitUntil(() => this.#screens.some(({ isAttached }) => isAttached))
    const count = 20 + this.#int(30)
    const endAt = this.#isCalm ? -1 : this.#int(this.#options.server === undefined ? count * 3 : count)
    for (let step = 0; step < count; step++) {
      // What happens in a step does not depend on how many numbers the one before has used.
      this.#random = randomFrom(this.#options.seed * 1000 + step)
      if (step === endAt) await this.#restart()
      await this.#step()
      const random = this.#random()
      if (random < 0.7) await setTimeout(random * 30)
      this.#checkBuffers()
    }
  }

  /** All come back, questions are answered, what hangs is stopped, what waits is sent; then there must be rest. */
  async settle(): Promise<void> {
    for (const screen of this.#screens) if (screen.isAway) screen.connect()
    let head = 0
    let movedAt = performance.now()
    let asked = new Set<string>()
    const help = (): void => {
      const screen = this.#healthy().find(({ isAttached }) => isAttached)
      if (!screen) return
      for (const { requestId } of screen.transcript.permissions) {
        if (asked.has(requestId)) continue
        asked.add(requestId)
        this.#send(screen, 'permission.answer', { request_id: requestId, outcome: 'allowed' })
      }
      const now = screen.cursor?.seq ?? 0
      if (now !== head) [head, movedAt] = [now, performance.now()]
      if (performance.now() - movedAt < patienceMs) return
      movedAt = performance.now()
      asked = new Set()
      const runId = screen.transcript.run?.runId
      if (runId !== undefined) return this.#send(screen, 'cancel', { run_id: runId })
      const [waiting] = screen.transcript.waiting
      if (!waiting) return
      if (waiting.held) this.#send(screen, 'queue.release', { id: waiting.id })
      this.#send(screen, 'queue.release', {})
    }
    if (!(await this.#waitUntil(() => this.#isAtRest(this.#healthy()), help)))
      this.#referee.wrong(this.#stalled.size > 0 ? 'I10' : 'I4', `there was no rest: ${this.#restlessness()}`)
    this.#checkBuffers()
    for (const socket of this.#stalled.values()) socket.uncork()
    this.#stalled.clear()
    if (!(await this.#waitUntil(() => this.#isAtRest(this.#screens), help)))
      this.#referee.wrong('I4', `a stalled screen did not catch up: ${this.#restlessness()}`)
    // Who has said nothing for the time of a lease is not there.
    for (const screen of this.#screens) void screen.ping()
    await this.#waitUntil(() => this.#screens.every(({ state }) => this.#knowsAll(state)))
  }

  async judge(): Promise<ConversationResult> {
    const { folder } = this.#options
    const referee = this.#referee
    const lines = readLog(folder, this.#host?.sessionId ?? '')
    const whole = foldOf(lines)
    for (const screen of this.#screens) {
      const difference = differenceOf(screen.transcript, whole)
      if (difference === undefined) continue
      referee.wrong('I4', `${screen.id} does not show the log: ${difference}`)
      if (screen.isFromSnapshot) referee.wrong('I12', `${screen.id} began with a snapshot: ${difference}`)
    }
    for (const { id, state } of this.#screens) {
      const known = JSON.stringify(state.get('presence')?.value)
      if (!this.#knowsAll(state)) referee.wrong('I14', `${id} thinks that ${known} are there, and not all screens`)
    }
    for (const [seq, text] of referee.seen)
      if (lines[seq - 1] !== text) referee.wrong('I2', `line ${seq} was sent, and is not the one in the log`)
    const deeds = await readDeeds(folder)
    const { commands, acks } = referee
    const kills = this.#kills
    const restarts = this.#restarts
    const violations = [
      ...referee.violations,
      ...checkLog({ lines, commands, acks, closings: this.#closings }),
      ...judgeForeign({ lines, deeds, restarts, kills }),
    ]
    const figures = {
      turns: deeds.filter(({ type }) => type === 'prompt').length,
      calls: lines.filter((line) => line.includes('"tool_use_id"')).length,
      agents: deeds.filter(({ type }) => type === 'start').length,
      kills: kills + deeds.filter((deed) => deed.type === 'fatal' && deed.why === 'die').length,
      restarts,
      commands: commands.size,
      frames: referee.frames,
      lines: lines.length,
    }
    return { violations, figures }
  }

  async close(): Promise<void> {
    for (const socket of this.#stalled.values()) socket.uncork()
    for (const screen of this.#screens) screen.cut()
    await this.#host?.close()
    this.#sockets.close()
  }

  async #step(): Promise<void> {
    const screen = this.#any(this.#screens)
    const [request] = screen.transcript.permissions
    if (request && this.#random() < 0.5) return this.#race(request.requestId)
    const step = this.#random()
    if (step < 0.05) return screen.cut()
    if (step < 0.13) return screen.isAway ? screen.connect() : screen.reload()
    if (step < 0.16 && screen.cursor) return screen.connect({ seq: screen.cursor.seq, crc: 'ffffffff' })
    if (step < 0.18) return screen.isAttached ? screen.send({ type: 'from_the_future', data: { a: 1 } }) : undefined
    if (step < 0.21) return this.#stallOne()
    if (step < 0.25) return this.#isCalm ? undefined : this.#killAgent()
    if (step < 0.3) return this.#resend(screen)
    return this.#command(screen)
  }

  #command(screen: WireScreen): void {
    const { waiting, run, path } = screen.transcript
    const one = this.#any(waiting)?.id ?? 'q-0-00000000'
    const other = this.#any(waiting)?.id ?? null
    const number = this.#commands + 1
    const text = (): string => promptOf(`word-${number}`, randomSteps(this.#random, { number, calm: this.#isCalm }))
    const entry = this.#any([...path.items])?.id
    const choices: [weight: number, op: Operation, args: () => Record<string, unknown>][] = [
      [8, 'prompt', () => ({ text: text(), when_busy: this.#any(['queue', 'steer', 'reject']) })],
      [3, 'steer', () => ({ text: text() })],
      [2, 'follow_up', () => ({ text: text() })],
      [2, 'queue.add', () => ({ message: text(), ...(this.#random() < 0.3 && { delivery: 'steer' }) })],
      [1, 'queue.edit', () => ({ id: one, message: text() })],
      [1, 'queue.move', () => ({ id: one, before_id: other })],
      [1, 'queue.hold', () => (this.#random() < 0.5 ? { id: one } : { reason: 'wait' })],
      [2, 'queue.release', () => (this.#random() < 0.5 ? { id: one } : {})],
      [1, 'queue.remove', () => ({ id: one })],
      [0.3, 'queue.clear', () => ({})],
      [2, 'cancel', () => ({ run_id: run?.runId ?? 'none' })],
      [0.5, 'rename', () => ({ name: `name ${number}` })],
      [0.7, 'branch', () => ({ entry_id: entry ?? null })],
    ]
    let at = this.#random() * choices.reduce((sum, [weight]) => sum + weight, 0)
    const [, op, args] = choices.find(([weight]) => (at -= weight) < 0) ?? choices[0] ?? []
    if (op && args) this.#send(screen, op, args())
  }

  #send(screen: WireScreen, op: Operation, args: Record<string, unknown>): void {
    const id = `cmd-${++this.#commands}`
    this.#referee.commands.set(id, { id, op, args })
    screen.command(op, args, id)
  }

  #resend(screen: WireScreen): void {
    const { id, op, args } = this.#any([...this.#referee.commands.values()]) ?? {}
    if (id !== undefined && args) screen.command(op as Operation, args, id)
  }

  /** Several answer the same question, not all of them the same. */
  #race(requestId: string): void {
    for (let count = 1 + this.#int(3); count > 0; count--) {
      const outcome = this.#any(['allowed', 'allowed', 'rejected'])
      this.#send(this.#any(this.#screens), 'permission.answer', { request_id: requestId, outcome })
    }
  }

  /** As `kill -9` does. */
  #killAgent(): void {
    const folder = agentFolder(this.#options.folder)
    const pid = deedsIn(folder).findLast((deed) => deed.type === 'start')?.pid
    if (pid === undefined || !isAgent(pid, folder)) return
    this.#kills++
    process.kill(pid, 'SIGKILL')
  }

  async #restart(): Promise<void> {
    for (const socket of this.#stalled.values()) socket.uncork()
    this.#stalled.clear()
    const { folder } = this.#options
    const host = this.#host as Host
    const from = readLog(folder, host.sessionId).length
    this.#restarts++
    await host.restart()
    this.#closings.push({ from, to: readLog(folder, host.sessionId).length })
  }

  #stallOne(): void {
    const candidates = this.#healthy().filter(({ isAttached }) => isAttached)
    // Somebody has to stay awake.
    if (candidates.length < 3) return
    const screen = this.#any(candidates)
    const socket = this.#sockets.stall(screen.localPort)
    if (socket) this.#stalled.set(screen, socket)
  }

  #newScreen(): void {
    const { port, sessionId, token } = this.#host as Host
    const id = `screen-${this.#screens.length}`
    const url = `ws://127.0.0.1:${port}/api/sessions/${sessionId}/ws`
    const headers = { authorization: `Bearer ${token}` }
    this.#screens.push(new WireScreen({ id, url, headers, watcher: this.#referee, window: 500, backoffMs: 10 }))
  }

  #healthy(): WireScreen[] {
    return this.#screens.filter((screen) => !this.#stalled.has(screen))
  }

  #isAtRest(screens: readonly WireScreen[]): boolean {
    const head = Math.max(...screens.map(({ cursor }) => cursor?.seq ?? 0))
    return screens.every(({ isAttached, unacknowledged, cursor, state, transcript }) => {
      const run = state.get('run')?.value as { is_busy: boolean; run_id: string | null } | undefined
      const isIdle = run?.is_busy === false && run.run_id === null && transcript.permissions.length === 0
      const isDone = transcript.waiting.length === 0 && transcript.run === null
      return isAttached && isIdle && isDone && unacknowledged.size === 0 && cursor?.seq === head
    })
  }

  #restlessness(): string {
    const states = this.#screens.map(({ id, isAttached, cursor, unacknowledged, state, transcript }) => {
      const { waiting, permissions, run } = transcript
      const open = [...unacknowledged]
      return { id, isAttached, seq: cursor?.seq, open, state: state.get('run')?.value, waiting, permissions, run }
    })
    return JSON.stringify(states[0]).slice(0, 1500)
  }

  #knowsAll(state: WireScreen['state']): boolean {
    const there = (state.get('presence')?.value ?? []) as { id: string }[]
    return (
      there.length === this.#screens.length && this.#screens.every(({ id }) => there.some((each) => each.id === id))
    )
  }

  #checkBuffers(): void {
    for (const [{ id }, socket] of this.#stalled) {
      const most = 256 * 1024 + limits.maxFrameBytes
      if (socket.writableLength > most) this.#referee.wrong('I9', `${socket.writableLength} bytes wait for ${id}`)
    }
  }

  async #waitUntil(isTrue: () => boolean, meanwhile?: () => void): Promise<boolean> {
    const until = performance.now() + restMs
    while (!isTrue()) {
      if (performance.now() > until) return false
      meanwhile?.()
      await setTimeout(4)
    }
    return true
  }

  #int(count: number): number {
    return Math.floor(this.#random() * count)
  }

  #any<T>(list: readonly T[]): T {
    return list[this.#int(list.length)] as T
  }
}

function isAgent(pid: number, folder: string): boolean {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes(folder)
  } catch {
    return false
  }
}

async function readDeeds(folder: string): Promise<Deed[]> {
  return parseDeeds(await readFile(join(agentFolder(folder), 'ledger.jsonl'), 'utf8').catch(() => ''))
}

function deedsIn(folder: string): Deed[] {
  try {
    return parseDeeds(readFileSync(join(folder, 'ledger.jsonl'), 'utf8'))
  } catch {
    return []
  }
}

function parseDeeds(text: string): Deed[] {
  return text
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line) as Deed)
}
