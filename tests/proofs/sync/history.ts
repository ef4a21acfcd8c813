import type { Socket } from 'node:net'
import { setImmediate, setTimeout } from 'node:timers/promises'
import { isDeepStrictEqual } from 'node:util'
import { FakeClock } from '@tapetree/agent/testing'
import { readStateValue, RemoteSession } from '@tapetree/client'
import { limits, type Operation } from '@tapetree/client/protocol'
import type { Transcript } from '@tapetree/session/view'
import { randomFrom } from '../../../scripts/figure/random.ts'
import { faults, type Fault } from '../../../packages/server/src/testing/fault.ts'
import { WireScreen } from '../../../packages/server/src/testing/wire-screen.ts'
import { checkLog } from './check-log.ts'
import { RawSockets } from './raw-sockets.ts'
import { differenceOf, foldOf, Referee } from './referee.ts'
import { readLog, Stage } from './stage.ts'
import type { Violation } from './violation.ts'

export interface HistoryOptions {
  seed: number
  folder: string
  fault?: Fault
}

export interface HistoryResult {
  violations: Violation[]
  figures: { screens: number; steps: number; frames: number; lines: number; commands: number }
}

/** One session with many screens, and what happens to them, as a seed has it. Then everything is held against the log. */
export async function playHistory(options: HistoryOptions): Promise<HistoryResult> {
  const history = new History(options)
  try {
    await history.open()
    await history.play()
    // A bug that has been caught need not be played to its end.
    if (!history.isCaught) await history.settle()
    return await history.judge()
  } finally {
    await history.close()
  }
}

/** With a bug in the server there may be no rest. */
const restMs = { right: 60_000, faulty: 1500 }

/** Bugs that show only where a screen takes nothing. */
const needsStall = new Set<Fault | undefined>([
  'a socket that is filled without a bound',
  'a stalled client that holds the others up',
])

type Choice = [weight: number, op: Operation, args: Record<string, unknown>]

class History {
  readonly #options: HistoryOptions
  #random: () => number
  readonly #clock = new FakeClock()
  readonly #sockets = new RawSockets()
  readonly #referee = new Referee(() =>
    this.#stage ? { durable: this.#stage.witness.lines, spoken: this.#stage.spoken } : undefined,
  )
  readonly #screens: WireScreen[] = []
  /** Screens as people have them. */
  readonly #remotes: RemoteSession[] = []
  readonly #stalled = new Map<WireScreen, Socket>()
  readonly #runs = new Set<string>()
  #stage: Stage | undefined
  #commands = 0
  #steps = 0

  constructor(options: HistoryOptions) {
    this.#options = options
    this.#random = randomFrom(options.seed)
  }

  get #live(): Stage['live'] {
    return (this.#stage as Stage).live
  }

  get isCaught(): boolean {
    const { fault } = this.#options
    return fault !== undefined && this.#referee.violations.some(({ invariant }) => invariant === faults[fault])
  }

  async open(): Promise<void> {
    const { folder, fault } = this.#options
    // The model has numbers of its own: how often it is asked depends on the machine, what the screens do must not.
    const random = randomFrom(Math.floor(this.#random() * 2 ** 32))
    const isLong = this.#random() < 0.1 || fault === 'a socket that is filled without a bound'
    this.#stage = await Stage.open({ folder, random, clock: this.#clock, isLong, ...(fault && { fault }) })
    const count = this.#random() < 0.1 ? 20 + this.#int(31) : 3 + this.#int(5)
    for (let index = 0; index < count; index++) this.#newScreen()
    const [first] = this.#screens
    // One comes with a cursor before the line that nobody knows.
    first?.restore([this.#stage.witness.lines.get(1) as string])
    first?.connect()
    for (const screen of this.#screens.slice(1)) screen.connect()
    for (const window of [500, 1 + this.#int(10)]) await this.#openRemote(window)
  }

  async play(): Promise<void> {
    const count = 25 + this.#int(35)
    await this.#waitUntil(() => this.#screens.some(({ isAttached }) => isAttached))
    if (needsStall.has(this.#options.fault)) await this.#stallFromTheStart()
    for (this.#steps = 0; this.#steps < count; this.#steps++) {
      // Each step has numbers of its own: what happens in it does not depend on how many the one before has used.
      this.#random = randomFrom(this.#options.seed * 1000 + this.#steps)
      await this.#step()
      const random = this.#random()
      if (random < 0.4) await setImmediate()
      else if (random < 0.8) await setTimeout(random * 3)
      this.#checkBuffers()
    }
  }

  /** Who stalls goes on stalling; everybody else must come to rest all the same. */
  async settle(): Promise<void> {
    const stage = this.#stage as Stage
    stage.gates.open()
    for (const screen of this.#screens) if (screen.isAway) screen.connect()
    const healthy = (): WireScreen[] => this.#screens.filter((screen) => !this.#stalled.has(screen))
    const isAtRest = (): boolean =>
      !this.#live.driver.isBusy &&
      this.#live.session.pendingPermissions.length === 0 &&
      healthy().every(
        ({ isAttached, cursor, unacknowledged }) =>
          isAttached && unacknowledged.size === 0 && cursor?.seq === this.#live.session.head.seq,
      )
    if (
      !(await this.#waitUntil(
        () => isAtRest() && this.#areRemotesCurrent(),
        () => this.#answerAll(healthy()),
      ))
    ) {
      this.#referee.wrong(this.#stalled.size > 0 ? 'I10' : 'I4', `there was no rest: ${this.#restlessness(healthy())}`)
    }
    this.#checkBuffers()
    for (const socket of this.#stalled.values()) socket.uncork()
    this.#stalled.clear()
    // What it had asked for may have begun a run of its own.
    if (!(await this.#waitUntil(isAtRest, () => this.#answerAll(this.#screens))))
      this.#referee.wrong('I4', `a stalled screen did not catch up: ${this.#restlessness(this.#screens)}`)
    // With a bug, there has been enough to catch it.
    if (this.#options.fault === undefined) await this.#goBack(isAtRest)
    await this.#settlePresence()
  }

  /** To an answer whose calls have run, and on from there. */
  async #goBack(isAtRest: () => boolean): Promise<void> {
    const answers = readLog(this.#options.folder, (this.#stage as Stage).sessionId)
      .map((line) => JSON.parse(line) as { id: string; message?: { content: { type: string }[] } })
      .filter(({ message }) => message?.content.some(({ type }) => type === 'tool_use'))
    const answer = this.#any(answers)
    if (!answer) return
    const screen = this.#any(this.#screens)
    this.#send(screen, 'branch', { entry_id: answer.id })
    await this.#waitUntil(isAtRest)
    this.#send(screen, 'prompt', { text: 'And now?' })
    if (!(await this.#waitUntil(isAtRest, () => this.#answerAll(this.#screens))))
      this.#referee.wrong('I4', `there was no rest after a branch: ${this.#restlessness(this.#screens)}`)
  }

  async judge(): Promise<HistoryResult> {
    const { folder } = this.#options
    const stage = this.#stage as Stage
    const referee = this.#referee
    if (!this.isCaught) await this.#freshScreen()
    const lines = readLog(folder, stage.sessionId)
    const whole = foldOf(lines)
    for (const screen of this.#screens) {
      const difference = differenceOf(screen.transcript, whole)
      if (difference === undefined) continue
      referee.wrong('I4', `${screen.id} does not show the log: ${difference}`)
      if (screen.isFromSnapshot) referee.wrong('I12', `${screen.id} began with a snapshot: ${difference}`)
    }
    for (const { clientId, transcript } of this.#remotes) {
      const difference = differenceOf(transcript, whole)
      if (difference !== undefined) referee.wrong('I4', `${clientId} does not show the log: ${difference}`)
    }
    this.#checkState(whole.waiting)
    for (const [seq, text] of referee.seen)
      if (lines[seq - 1] !== text) referee.wrong('I1', `line ${seq} is not the one that was sent`)
    if (!this.#live.inFlight.isEmpty) referee.wrong('I5', 'text is in flight at rest')
    const { commands, acks } = referee
    const violations = [
      ...referee.violations,
      ...checkLog({ lines, commands, acks, ran: stage.ran, closings: stage.closings }),
    ]
    const figures = {
      screens: this.#screens.length + this.#remotes.length,
      steps: this.#steps,
      frames: referee.frames,
      lines: lines.length,
      commands: commands.size,
    }
    return { violations, figures }
  }

  async close(): Promise<void> {
    for (const socket of this.#stalled.values()) socket.uncork()
    for (const screen of this.#screens) screen.cut()
    for (const remote of this.#remotes) await remote.close()
    await this.#stage?.close()
    this.#sockets.close()
  }

  async #step(): Promise<void> {
    const stage = this.#stage as Stage
    const screen = this.#any(this.#screens)
    const { runId } = this.#live.session.openRun ?? {}
    if (runId !== undefined) this.#runs.add(runId)
    // A question does not wait for long.
    if (this.#live.session.pendingPermissions.length > 0 && this.#random() < 0.25) return this.#race()
    const step = this.#random()
    if (step < 0.06) return screen.cut()
    if (step < 0.14) return screen.isAway ? screen.connect() : screen.reload()
    if (step < 0.18) return this.#comeWithWrongCursor(screen)
    if (step < 0.21) return this.#stallOne()
    if (step < 0.24) return screen.isAttached ? screen.send({ type: 'from_the_future', data: { a: 1 } }) : undefined
    if (step < 0.27) {
      const visibility = this.#random() < 0.5 ? 'visible' : 'hidden'
      return screen.isAttached ? screen.send({ type: 'presence', data: { visibility } }) : undefined
    }
    if (step < 0.32) return this.#random() < 0.5 ? stage.gates.close() : stage.gates.open()
    if (step < 0.35 && !needsStall.has(this.#options.fault)) return this.#restart()
    if (step < 0.4) return this.#resend(screen)
    return this.#command(screen)
  }

  #command(screen: WireScreen): void {
    const waiting = this.#live.session.inbox.messages
    const one = this.#any(waiting)?.id ?? 'q-0-00000000'
    const other = this.#any(waiting)?.id ?? null
    const text = `word ${this.#commands}${this.#random() < 0.1 ? ' 😀'.repeat(5000) : ''}`
    const entry = this.#any([...screen.transcript.path.items])?.id
    const run = this.#random() < 0.7 ? this.#live.session.openRun?.runId : this.#any([...this.#runs])
    const choices: Choice[] = [
      [6, 'prompt', { text, when_busy: this.#any(['queue', 'steer', 'reject']) }],
      [2, 'steer', { text }],
      [2, 'follow_up', { text }],
      [3, 'queue.add', { message: text }],
      [1, 'queue.add', { message: text, delivery: 'steer' }],
      [2, 'queue.edit', { id: one, message: `${text} (better)` }],
      [2, 'queue.move', { id: one, before_id: other }],
      [1, 'queue.hold', this.#random() < 0.5 ? { id: one } : { reason: 'wait' }],
      [2, 'queue.release', this.#random() < 0.5 ? { id: one } : {}],
      [1, 'queue.remove', { id: one }],
      [0.5, 'queue.clear', {}],
      [2, 'cancel', { run_id: run ?? 'none' }],
      [1, 'label', { entry_id: entry ?? 'none', label: 'here' }],
      [1, 'rename', { name: text.slice(0, 20) }],
      [1, 'branch', { entry_id: entry ?? null }],
    ]
    let at = this.#random() * choices.reduce((sum, [weight]) => sum + weight, 0)
    const [, op, args] = choices.find(([weight]) => (at -= weight) < 0) as Choice
    this.#send(screen, op, args)
  }

  #send(screen: WireScreen, op: Operation, args: Record<string, unknown>): void {
    const id = `cmd-${++this.#commands}`
    this.#referee.commands.set(id, { id, op, args })
    screen.command(op, args, id)
  }

  /** The same command from the same screen once more: because its answer was lost, or because somebody is impatient. */
  #resend(screen: WireScreen): void {
    const { id, op, args } = this.#any([...this.#referee.commands.values()]) ?? {}
    if (id !== undefined && args) screen.command(op as Operation, args, id)
  }

  /** Several answer the same question, not all of them the same. */
  #race(): void {
    const request = this.#any(this.#live.session.pendingPermissions)
    if (!request) return
    const outcomes = ['allowed', 'allowed', 'rejected']
    for (let count = 2 + this.#int(2); count > 0; count--)
      this.#send(this.#any(this.#screens), 'permission.answer', {
        request_id: request.requestId,
        outcome: this.#any(outcomes),
      })
  }

  #answerAll(screens: readonly WireScreen[]): void {
    const screen = screens.find(({ isAttached }) => isAttached)
    for (const { requestId } of this.#live.session.pendingPermissions)
      if (screen) this.#send(screen, 'permission.answer', { request_id: requestId, outcome: 'allowed' })
  }

  #comeWithWrongCursor(screen: WireScreen): void {
    const { cursor } = screen
    if (!cursor) return screen.connect()
    const isAhead = this.#random() < 0.3
    screen.connect(isAhead ? { seq: cursor.seq + 1000, crc: cursor.crc } : { seq: cursor.seq, crc: 'ffffffff' })
  }

  async #stallOne(): Promise<void> {
    const candidates = this.#screens.filter((screen) => !this.#stalled.has(screen) && screen.isAttached)
    // Somebody has to stay awake.
    if (candidates.length < 3) return
    const screen = this.#any(candidates)
    const socket = this.#sockets.stall(screen.localPort)
    if (socket) this.#stalled.set(screen, socket)
  }

  async #restart(): Promise<void> {
    for (const socket of this.#stalled.values()) socket.uncork()
    this.#stalled.clear()
    await (this.#stage as Stage).restart()
  }

  /** Before anything is sent that somebody could be late with. */
  async #stallFromTheStart(): Promise<void> {
    await this.#waitUntil(() => this.#screens.every(({ isAttached }) => isAttached))
    await this.#stallOne()
    if (this.#options.fault !== 'a socket that is filled without a bound') return
    const awake = this.#screens.find((screen) => !this.#stalled.has(screen)) as WireScreen
    for (let count = 0; count < 8; count++) this.#send(awake, 'queue.add', { message: 'long '.repeat(20_000) })
    await this.#waitUntil(() => awake.unacknowledged.size === 0)
    this.#checkBuffers()
  }

  async #openRemote(window: number): Promise<void> {
    const { origin: baseUrl, token, sessionId } = this.#stage as Stage
    const client = { id: `remote-${this.#remotes.length}` }
    this.#remotes.push(await RemoteSession.open({ baseUrl, token, sessionId, client, window, random: () => 0.01 }))
  }

  #newScreen(): void {
    const window = 500
    const { url, token } = this.#stage as Stage
    const id = `screen-${this.#screens.length}`
    this.#screens.push(
      new WireScreen({
        id,
        url,
        headers: { authorization: `Bearer ${token}` },
        watcher: this.#referee,
        window,
        backoffMs: 3,
      }),
    )
  }

  async #freshScreen(): Promise<void> {
    this.#newScreen()
    const screen = this.#screens.at(-1) as WireScreen
    screen.connect()
    await this.#waitUntil(() => screen.isAttached && screen.cursor?.seq === this.#live.session.head.seq)
    // What was sent before the answer has arrived with it.
    await this.#ping(this.#screens)
  }

  async #ping(screens: readonly WireScreen[]): Promise<void> {
    await Promise.race([Promise.all(screens.map((each) => each.ping())), setTimeout(2000)])
  }

  /** Who is there is there, who has gone is gone, and who says nothing for the time of a lease is gone as well. */
  async #settlePresence(): Promise<void> {
    const present = (): string =>
      this.#live.presence
        .list()
        .map(({ id }) => id)
        .filter((id) => !id.startsWith('remote'))
        .sort()
        .join()
    const expected = (screens: readonly WireScreen[]): string =>
      screens
        .map(({ id }) => id)
        .sort()
        .join()
    const leaving = this.#screens.slice(0, 1)
    const [talking, silent] = [this.#screens.slice(1, 3), this.#screens.slice(3)]
    for (const screen of leaving) screen.cut()
    if (!(await this.#waitUntil(() => present() === expected([...talking, ...silent]), undefined, 1000)))
      this.#referee.wrong('I14', `there are ${present()}, and not ${expected([...talking, ...silent])}`)
    this.#clock.advance(limits.presenceLeaseMs - 1)
    await this.#ping(talking)
    this.#clock.advance(2)
    if (!(await this.#waitUntil(() => present() === expected(talking), undefined, 1000)))
      this.#referee.wrong('I14', `a lease is over, and there are ${present()}, and not ${expected(talking)}`)
    // Who was silent and is still connected is back with the first word.
    for (const remote of this.#remotes) remote.present({ visibility: 'visible' })
    await this.#ping(silent)
    if (!(await this.#waitUntil(() => present() === expected([...talking, ...silent]), undefined, 1000)))
      this.#referee.wrong('I14', `all have spoken, and there are ${present()}, and not ${expected(this.#screens)}`)
    const named = (): unknown[] => this.#live.presence.list().map(({ id }) => id)
    await this.#waitUntil(() => this.#remotes.every(({ clientId }) => named().includes(clientId)), undefined, 1000)
    for (const screen of leaving) screen.connect()
    await this.#waitUntil(() => leaving.every(({ isAttached }) => isAttached))
  }

  #checkState(waiting: Transcript['waiting']): void {
    for (const key of ['run', 'queue', 'permissions', 'usage', 'plan', 'presence'] as const) {
      const value = JSON.stringify(this.#live.board.get(key))
      for (const { id, state } of this.#screens) {
        const known = JSON.stringify(state.get(key)?.value)
        if (known !== value) this.#referee.wrong('I4', `${id} knows ${key} as ${known}, and it is ${value}`)
      }
    }
    const queue = readStateValue('queue', this.#live.board.get('queue'))
    const { total, messages = [] } = queue ?? {}
    const expected = messages.map(({ message, truncated }, index) => {
      const whole = waiting[index]
      return truncated ? { ...whole, message: whole?.message.slice(0, message.length), truncated } : whole
    })
    const isListed = total === waiting.length && messages.length >= Math.min(20, waiting.length)
    if (!isListed || !isDeepStrictEqual(messages, expected))
      this.#referee.wrong('I4', 'the queue is not that of the log')
  }

  #checkBuffers(): void {
    for (const [{ id }, socket] of this.#stalled) {
      const most = 256 * 1024 + limits.maxFrameBytes
      if (socket.writableLength > most) this.#referee.wrong('I9', `${socket.writableLength} bytes wait for ${id}`)
    }
  }

  #areRemotesCurrent(): boolean {
    return this.#remotes.every(({ transcript }) => transcript.seq === this.#live.session.head.seq)
  }

  #restlessness(screens: readonly WireScreen[]): string {
    const { driver, session } = this.#live
    const late = screens.filter(({ cursor }) => cursor?.seq !== session.head.seq).length
    const open = screens.flatMap(({ unacknowledged }) => [...unacknowledged]).join()
    const remotes = this.#remotes.map(({ transcript, status }) => ({ seq: transcript.seq, status }))
    return JSON.stringify({ isBusy: driver.isBusy, head: session.head.seq, late, open, run: session.openRun, remotes })
  }

  async #waitUntil(isTrue: () => boolean, meanwhile?: () => void, ms?: number): Promise<boolean> {
    const until = performance.now() + (ms ?? (this.#options.fault ? restMs.faulty : restMs.right))
    while (!isTrue()) {
      if (performance.now() > until) return false
      meanwhile?.()
      await setTimeout(2)
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
