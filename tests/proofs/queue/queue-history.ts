import { join } from 'node:path'
import { setImmediate, setTimeout } from 'node:timers/promises'
import type { Operation as OperationName, ServerFrame } from '@tapetree/client/protocol'
import { randomFrom } from '../../../scripts/figure/random.ts'
import { WireScreen } from '../../../packages/server/src/testing/wire-screen.ts'
import type { ServerRelay } from '../server-kill/server-relay.ts'
import type { Task } from '../server-kill/words.ts'
import { Gates } from '../sync/talkative-model.ts'
import { readLog, Stage } from '../sync/stage.ts'
import { checkLinearizable, type Operation } from './linearize.ts'
import { queueAgent } from './queue-agent.ts'
import { QueueModel, type QueueLine } from './queue-model.ts'

export interface QueueHistoryOptions {
  seed: number
  folder: string
  /** Given where the server is to be killed on the way. */
  servers?: ServerRelay
}

export interface QueueHistoryResult {
  problems: string[]
  figures: { operations: number; accepted: number; delivered: number; waiting: number; refused: number }
}

/** Eight clients at one queue, for at most forty operations. */
export async function playQueueHistory(options: QueueHistoryOptions): Promise<QueueHistoryResult> {
  const history = new QueueHistory(options)
  try {
    await history.play()
    await history.settle()
    return history.judge()
  } finally {
    await history.close()
  }
}

/** Where the server is, and what one has to know to come in. */
interface Place {
  url: string
  token: string
  sessionId: string
  port: number
}

const clientCount = 8
const restMs = 60_000

type Choice = [weight: number, op: OperationName, args: Record<string, unknown>]

class QueueHistory {
  readonly #options: QueueHistoryOptions
  readonly #random: () => number
  readonly #screens: WireScreen[] = []
  readonly #operations = new Map<string, Operation>()
  readonly #notices = new Map<WireScreen, string[]>()
  readonly #wasCut = new Set<WireScreen>()
  readonly #runs = new Set<string>()
  readonly #problems: string[] = []
  #clock = 0
  #stage: Stage | undefined
  #place: Place | undefined

  constructor(options: QueueHistoryOptions) {
    this.#options = options
    this.#random = randomFrom(options.seed)
  }

  async play(): Promise<void> {
    await this.#start()
    for (let index = 0; index < clientCount; index++) this.#newScreen()
    await this.#until(() => this.#screens.every(({ isAttached }) => isAttached))
    const count = 15 + this.#int(26)
    const killAt = this.#options.servers ? this.#int(count) : -1
    for (let step = 0; step < count; step++) {
      if (step === killAt) await this.#kill()
      this.#step()
      const pause = this.#random()
      if (pause < 0.5) await setImmediate()
      else if (pause < 0.9) await setTimeout(pause * 4)
    }
  }

  async settle(): Promise<void> {
    this.#stage?.gates.open()
    for (const screen of this.#screens) if (screen.isAway) screen.connect()
    const isAtRest = (): boolean => {
      const head = Math.max(...this.#screens.map(({ cursor }) => cursor?.seq ?? 0))
      return this.#screens.every(({ isAttached, unacknowledged, cursor, state, transcript }) => {
        const run = state.get('run')?.value as { is_busy: boolean } | undefined
        // What may go out goes out, and until then there is no rest.
        const isDone = transcript.hold !== null || transcript.waiting.every(({ held }) => held)
        return isAttached && unacknowledged.size === 0 && cursor?.seq === head && run?.is_busy === false && isDone
      })
    }
    if (!(await this.#until(isAtRest))) this.#problems.push('there was no rest')
    // What was sent before the answer has arrived with it.
    await Promise.all(this.#screens.map((screen) => screen.ping()))
  }

  judge(): QueueHistoryResult {
    const lines = readLog(this.#options.folder, this.#place?.sessionId ?? '').map(
      (text) => JSON.parse(text) as QueueLine,
    )
    const operations = [...this.#operations.values()]
    const model = new QueueModel()
    for (const line of lines) model.apply(line)
    const problems = [...this.#problems, ...checkLinearizable(lines, operations)]
    const waiting = model.waiting.map(({ id }) => id).join()
    for (const { id, state } of this.#screens) {
      const { messages = [] } = (state.get('queue')?.value ?? {}) as { messages?: { id: string }[] }
      const seen = messages.map((message) => message.id).join()
      if (seen !== waiting) problems.push(`${id} sees ${seen || 'nobody'} waiting, and there is ${waiting || 'nobody'}`)
    }
    for (const [screen, notices] of this.#notices)
      if (!this.#wasCut.has(screen)) problems.push(...checkNotices(screen.id, notices, model))
    const accepted = operations.filter(({ op, answer }) => op === 'queue.add' && answer?.ack.ok).length
    const refused = operations.filter(({ answer }) => answer && !answer.ack.ok).length
    const { delivered } = model
    if (new Set(delivered.map(({ id }) => id)).size !== delivered.length) problems.push('a message was delivered twice')
    const figures = {
      operations: operations.length,
      accepted,
      delivered: delivered.length,
      waiting: model.waiting.length,
      refused,
    }
    return { problems, figures }
  }

  async close(): Promise<void> {
    for (const screen of this.#screens) screen.cut()
    await this.#stage?.close()
  }

  #step(): void {
    const screen = this.#any(this.#screens)
    const step = this.#random()
    if (screen.transcript.run) this.#runs.add(screen.transcript.run.runId)
    if (step < 0.04) {
      this.#wasCut.add(screen)
      return screen.isAway ? screen.connect() : screen.cut()
    }
    if (step < 0.08) return this.#random() < 0.5 ? this.#stage?.gates.close() : this.#stage?.gates.open()
    if (step < 0.14) return this.#sendAgain(screen)
    const waiting = screen.transcript.waiting.map(({ id }) => id)
    const known = [...new Set([...waiting, ...waiting, ...this.#acceptedIds()])]
    const id = this.#any(known) ?? 'q-0-00000000'
    const message = `message ${this.#operations.size}`
    const runId = this.#random() < 0.7 ? screen.transcript.run?.runId : this.#any([...this.#runs])
    const choices: Choice[] = [
      [8, 'queue.add', { message }],
      [1, 'queue.add', { message, delivery: 'steer' }],
      [2, 'steer', { text: message }],
      [3, 'queue.edit', { id, message: `${message}, edited` }],
      [1, 'queue.edit', { id, delivery: this.#any(['steer', 'follow-up']) }],
      [3, 'queue.move', { id, before_id: this.#random() < 0.3 ? null : (this.#any(known) ?? null) }],
      [2, 'queue.hold', { id }],
      [1, 'queue.hold', { reason: 'wait' }],
      [2, 'queue.release', { id }],
      [2, 'queue.release', {}],
      [2, 'queue.remove', { id }],
      [0.5, 'queue.clear', {}],
      [1, 'cancel', { run_id: runId ?? 'none' }],
    ]
    let at = this.#random() * choices.reduce((sum, [weight]) => sum + weight, 0)
    const [, op, args] = choices.find(([weight]) => (at -= weight) < 0) as Choice
    const command: Operation = { id: `cmd-${this.#operations.size + 1}`, op, args, sentAt: ++this.#clock }
    this.#operations.set(command.id, command)
    screen.command(op, args, command.id)
  }

  /** What was not answered, or was: the same command must do nothing more. One that was refused may be tried anew, and is not. */
  #sendAgain(screen: WireScreen): void {
    const done = [...this.#operations.values()].filter(({ answer }) => answer?.ack.ok)
    const command = this.#any(done)
    if (command) screen.command(command.op as OperationName, command.args, command.id)
  }

  #acceptedIds(): string[] {
    return [...this.#operations.values()].flatMap(({ answer }) => {
      const { id } = (answer?.ack.result ?? {}) as { id?: string }
      return id === undefined ? [] : [id]
    })
  }

  #newScreen(): void {
    const { url, token } = this.#place as Place
    const watcher = {
      ack: (_: WireScreen, ack: NonNullable<Operation['answer']>['ack']) => {
        const operation = this.#operations.get(ack.id)
        if (operation && !operation.answer) operation.answer = { ack, at: ++this.#clock }
      },
      notice: (screen: WireScreen, frame: ServerFrame) => void this.#noticesOf(screen).push(noticeName(frame)),
      closed: (screen: WireScreen) => void this.#wasCut.add(screen),
    }
    const headers = { authorization: `Bearer ${token}` }
    const screen = new WireScreen({
      id: `client-${this.#screens.length}`,
      url,
      headers,
      watcher,
      window: 500,
      backoffMs: 10,
    })
    this.#screens.push(screen)
    screen.connect()
  }

  #noticesOf(screen: WireScreen): string[] {
    const notices = this.#notices.get(screen) ?? []
    this.#notices.set(screen, notices)
    return notices
  }

  async #start(): Promise<void> {
    const { folder, servers, seed } = this.#options
    const { sessionId, port, token } = this.#place ?? {}
    const known = {
      ...(sessionId !== undefined && { sessionId }),
      ...(port !== undefined && { port }),
      ...(token !== undefined && { token }),
    }
    if (servers) {
      const task: Task = { folder, seed, play: 'queue', marks: join(folder, 'marks'), ...known }
      this.#place = await servers.get().host(task)
      return
    }
    const random = randomFrom(seed + 1)
    const gates = new Gates(random)
    this.#stage = await Stage.open({ folder, random, gates, agent: queueAgent(() => gates.pass()) })
    this.#place = this.#stage
  }

  async #kill(): Promise<void> {
    for (const screen of this.#screens) this.#wasCut.add(screen)
    await this.#options.servers?.kill()
    await this.#start()
  }

  async #until(isTrue: () => boolean): Promise<boolean> {
    const until = performance.now() + restMs
    while (!isTrue()) {
      if (performance.now() > until) return false
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

function noticeName(frame: ServerFrame): string {
  if (frame.type === 'queue_updated') return `${frame.data.action} ${frame.data.message_id ?? ''}`
  if (frame.type === 'queue_message_sending') return `sending ${frame.data.message_id}`
  return frame.type === 'queue_message_sent' ? `sent ${frame.data.message_id}` : frame.type
}

/** Of every message that went out of the queue: sending, removed, sent. While it is announced it may still be made to steer, and back. */
function checkNotices(screen: string, notices: readonly string[], { delivered }: QueueModel): string[] {
  return delivered.flatMap(({ id, delivery }) => {
    const own = notices.filter((notice) => notice.endsWith(` ${id}`)).map((notice) => notice.split(' ')[0])
    // One that steers is not in the queue, or not any more.
    const isRight =
      delivery === 'steer' ? !own.includes('sent') : /sending,(removed,added,)*removed,sent$/.test(own.join())
    return isRight ? [] : [`${screen} was told of ${id} (${delivery}): ${own.join()}`]
  })
}
