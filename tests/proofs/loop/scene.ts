import { text, type WaitingMessage } from '@tapetree/session'
import type { LogCheck } from './check-log.ts'
import type { OpenCall } from './driven-model.ts'
import { DrivenTools } from './driven-tools.ts'
import { DyingDisk, type Remains } from './dying-disk.ts'
import { Life } from './life.ts'
import { Oracle } from './oracle.ts'
import type { Setup } from './setup.ts'
import { Speaker } from './speaker.ts'

/** What all cases begin with. */
export interface Base {
  remains: Remains
  sessionId: string
}

/** Long enough to come to an end from anywhere, short enough to notice that there is none. */
const maxTailSteps = 1000
const maxCrashes = 3

/**
 * The real loop on a real session, with everything around it in our hand: what the model says, when a tool ends, what the user
 * does, when time passes, when a line is on the disk and when the process dies. Between two actions everything comes to rest.
 */
export class Scene {
  readonly setup: Setup
  /** All that was done. */
  readonly trace: string[] = []
  crashes = 0
  readonly #sessionId: string
  readonly #speaker: Speaker
  readonly #tools: DrivenTools
  readonly #oracle: Oracle
  #disk: DyingDisk
  #life!: Life
  #submissions = 0
  #prompts = 0

  static async open(setup: Setup, base: Base): Promise<Scene> {
    const scene = new Scene(setup, base)
    await scene.#openLife()
    await scene.#begin()
    return scene
  }

  private constructor(setup: Setup, { remains, sessionId }: Base) {
    this.setup = setup
    this.#sessionId = sessionId
    this.#speaker = new Speaker(setup.calls)
    this.#tools = new DrivenTools({ isDeaf: setup.isDeaf ?? false, hasDeadline: setup.hasDeadline ?? false })
    this.#oracle = new Oracle(setup, this.#tools)
    this.#disk = this.#diskWith(remains)
    this.#oracle.log.startCounting()
  }

  get problem(): string | undefined {
    return this.#oracle.problem
  }

  get log(): LogCheck {
    return this.#oracle.log
  }

  get requests(): number {
    return this.#oracle.requests
  }

  /** The log, line by line. */
  get lines(): string[] {
    return this.#disk.lines.map(({ bytes }) => new TextDecoder().decode(bytes))
  }

  /** What can happen now, always in the same order. */
  actions(): string[] {
    const { session, model, clock, requests, isRunning } = this.#life
    const speaking = this.#speaking?.kind
    const can: string[] = []
    if (this.#disk.isWriting) can.push('disk')
    if (speaking === 'turn') can.push('delta', 'ask', 'end', 'call', 'error', 'overflow')
    if (speaking === 'summary') can.push('delta', 'end', 'error', 'overflow')
    if (speaking === 'turn' && this.#isSummarySpoken) can.push('summary:end', 'summary:error')
    for (const callId of this.#tools.running) can.push(`tool:${callId}`)
    for (const { callId } of requests.pending) can.push(`allow:${callId}`, `deny:${callId}`)
    can.push('steer', 'follow-up')
    if (isRunning && !this.#life.controller?.signal.aborted) can.push('abort')
    if (isRunning && !model.isFull) can.push('compaction')
    if (isRunning && this.setup.hasBackground && !model.isFull && !model.isFilling) can.push('filling')
    if (!isRunning) can.push('prompt', 'retry')
    if (!isRunning && session.inbox.hold) can.push('release')
    if (!isRunning && this.#nextWaiting) can.push('deliver')
    if (clock.waits.some((ms) => ms < Infinity)) can.push('time')
    if (this.#canCrash) can.push('crash', 'crash-before:1', 'crash-after:1')
    return can
  }

  /**
   * Does what is to be done, and lets everything come to rest. `tool:c1~3~steer` does two things, the second when three
   * microtasks have gone by. Gives false where it cannot be done now.
   */
  async take(action: string): Promise<boolean> {
    const [first = '', ticks, second] = action.split('~')
    if (!this.#can(first)) return false
    this.trace.push(action)
    const { crashes } = this
    this.#oracle.stepBegins()
    this.#perform(first)
    if (second !== undefined) {
      for (let tick = Number(ticks); tick > 0; tick--) await Promise.resolve()
      if (!this.#disk.isDead && this.#can(second)) this.#perform(second)
    }
    await this.#rest()
    if (!this.problem && this.#disk.isDead) await this.#reopen()
    const isPrompt = !this.setup.isDiskSlow && !this.setup.isDeaf && crashes === this.crashes
    if (action === 'abort' && isPrompt && this.#life.isRunning) this.#oracle.complain('the run goes on after an abort')
    await this.#oracle.checkAtRest()
    return true
  }

  /** Lets everything finish, always in the same way, and looks whether it does. */
  async finish(): Promise<void> {
    for (let step = 0; step < maxTailSteps && !this.problem; step++) {
      const action = this.#nextOfTail()
      if (action === undefined) return this.#oracle.checkAtEnd()
      await this.take(action)
    }
    this.#oracle.complain('it does not come to an end')
  }

  async #begin(): Promise<void> {
    this.#life.start({ type: 'prompt', content: [text('go')] })
    await this.#rest()
    while (!this.#speaking && this.#disk.isWriting) await this.#step('disk')
    if (this.setup.begins === 'before-the-answer') return
    await this.#step('call')
    while (this.#disk.isWriting) await this.#step('disk')
  }

  async #step(action: string): Promise<void> {
    this.#perform(action)
    await this.#rest()
  }

  /** The model has been asked, and has not come to its end. */
  get #speaking(): OpenCall | undefined {
    const { open } = this.#life.model
    return open?.isOver ? undefined : open
  }

  get #isSummarySpoken(): boolean {
    return this.#life.model.summary?.isOver === false
  }

  get #nextWaiting(): WaitingMessage | undefined {
    const { session } = this.#life
    return session.nextWaiting('steer') ?? session.nextWaiting('follow-up')
  }

  get #canCrash(): boolean {
    return this.crashes < maxCrashes && !this.#disk.isDoomed
  }

  #can(action: string): boolean {
    const [verb, what = ''] = action.split(':')
    switch (verb) {
      case 'crash-before':
      case 'crash-after':
        return this.#canCrash
      case 'fail':
        return this.#tools.running.includes(what)
      case 'cut':
        return this.#speaking?.kind === 'turn'
      case 'note':
        return this.#life.isRunning
      case 'remove':
      case 'hold':
        return this.#life.session.inbox.messages.length > 0
      default:
        return this.actions().includes(action)
    }
  }

  #perform(action: string): void {
    const [verb, what = ''] = action.split(':')
    const { session, model, clock, controller } = this.#life
    switch (verb) {
      case 'disk':
        return this.#disk.finishWriting()
      case 'delta':
      case 'ask':
      case 'end':
      case 'call':
      case 'cut':
      case 'error':
      case 'overflow':
        return this.#speaking && this.#speaker.say(verb, this.#speaking)
      case 'summary':
        return model.summary && this.#speaker.say(what as 'end' | 'error', model.summary)
      case 'tool':
        return this.#tools.end(what, { content: `done ${what}` })
      case 'fail':
        return this.#tools.end(what, new Error('no luck'))
      case 'allow':
      case 'deny':
        return this.#answer(what, verb === 'allow' ? 'allowed' : 'rejected')
      case 'steer':
      case 'follow-up':
        return this.#submit(verb)
      case 'remove':
      case 'hold':
        return this.#change(verb)
      case 'note':
        return this.#note()
      case 'release':
        return this.#mustSucceed(session.changeInbox({ action: 'release' }))
      case 'abort':
        this.#oracle.stopping()
        return controller?.abort()
      case 'compaction':
        model.isFull = true
        return undefined
      case 'filling':
        model.isFilling = true
        return undefined
      case 'time':
        return clock.advance(clock.waits[0] as number)
      case 'prompt':
        return this.#life.start({ type: 'prompt', content: [text(`prompt ${++this.#prompts}`)] })
      case 'retry':
        return this.#life.start({ type: 'leaf' })
      case 'deliver':
        return this.#deliver(this.#nextWaiting)
      case 'crash':
        return this.#disk.die()
      case 'crash-before':
      case 'crash-after':
        return this.#disk.dieAt({ line: Number(what), when: verb === 'crash-before' ? 'before' : 'after' })
      default:
        throw new Error(`There is no action ${action}.`)
    }
  }

  #submit(delivery: 'steer' | 'follow-up'): void {
    const disk = this.#disk
    const submitted = this.#life.session.submit(`${delivery} ${++this.#submissions}`, { delivery })
    this.#mustSucceed(
      submitted.then(({ id }) => {
        if (!disk.isDead) this.#oracle.accepted(id)
      }),
    )
  }

  #note(): void {
    const disk = this.#disk
    void this.#life.note().catch((error: unknown) => {
      if (!disk.isDead) this.#oracle.complain(`a note could not be kept: ${String(error)}`)
    })
  }

  /** Takes back, or holds, the newest message that waits. */
  #change(action: 'remove' | 'hold'): void {
    const { session } = this.#life
    const id = session.inbox.messages.at(-1)?.id
    if (id === undefined) return
    if (action === 'remove') this.#oracle.takingBack(id)
    else this.#oracle.holding(id)
    this.#mustSucceed(session.changeInbox({ action, id }))
  }

  #answer(callId: string, outcome: 'allowed' | 'rejected'): void {
    const { requests } = this.#life
    const asked = requests.pending.find((request) => request.callId === callId)
    if (asked) this.#mustSucceed(requests.answer({ requestId: asked.requestId, outcome }))
  }

  #deliver(message: WaitingMessage | undefined): void {
    this.#oracle.delivering(message?.id)
    if (message) this.#life.start({ type: 'waiting' })
  }

  #mustSucceed(work: Promise<unknown>): void {
    void work.catch((error: unknown) => this.#oracle.complain(`what a user does fails: ${String(error)}`))
  }

  /** Everything that can happen without us happens: there is nothing but microtasks between two of our actions. */
  async #rest(): Promise<void> {
    await new Promise((resolve) => setImmediate(resolve))
    this.#oracle.rests()
  }

  async #reopen(): Promise<void> {
    this.crashes++
    this.#tools.processDied()
    this.#oracle.died()
    const now = this.#life.clock.now()
    await this.#life.bury()
    this.#disk = this.#diskWith(this.#disk.remains)
    await this.#openLife(now)
    const plan = await this.#life.planResume()
    if (plan) this.#life.start({ type: 'resume', plan })
    else if (this.#life.session.openRun) this.#oracle.complain('an open run is not resumed')
    await this.#rest()
  }

  async #openLife(now?: number): Promise<void> {
    const options = { disk: this.#disk, tools: this.#tools, setup: this.setup, sessionId: this.#sessionId }
    this.#life = await Life.open({ ...options, witness: this.#oracle, ...(now !== undefined && { now }) })
    this.#oracle.opened(this.#life)
  }

  #diskWith(remains: Remains): DyingDisk {
    const { isDiskSlow = false, keepsCheckpoint = false } = this.setup
    const disk = new DyingDisk(remains, { isSlow: isDiskSlow, keepsCheckpoint })
    this.#oracle.watch(disk)
    return disk
  }

  /** The next step of a fair end: what is open is finished, the oldest first, and whatever waits is delivered. */
  #nextOfTail(): string | undefined {
    const { session, clock, requests, isRunning } = this.#life
    if (this.#disk.isWriting) return 'disk'
    const [asked] = requests.pending
    if (asked) return `allow:${asked.callId}`
    const [callId] = this.#tools.running
    if (callId !== undefined) return `tool:${callId}`
    if (this.#speaking) return this.setup.tail ?? 'end'
    if (clock.waits.some((ms) => ms < Infinity)) return 'time'
    if (isRunning) return undefined
    if (session.inbox.hold) return 'release'
    return this.#nextWaiting ? 'deliver' : undefined
  }
}
