import { SessionError, type Cause, type EntryDraft, type Session } from '@tapetree/session'
import type { RunEnd } from '../loop/loop-context.ts'
import type { AgentParts } from './agent-parts.ts'
import { nextWaiting } from './next-waiting.ts'
import { run, type RunStart } from './run.ts'

/** A run that has begun: its id is in the log. */
export interface Run {
  readonly id: string
  /** Resolves when nothing more is to be delivered, with how the last run ended. */
  readonly done: Promise<RunEnd>
}

/** Appends on the head of a run. */
interface Head {
  append(draft: EntryDraft, request?: undefined, cause?: Cause): Promise<void>
}

/** The one run that a session may have at a time. */
export class RunSlot {
  readonly #session: Session
  readonly #parts: () => AgentParts
  #controller: AbortController | undefined
  #done: Promise<RunEnd> | undefined
  #head: Head | undefined
  #turn: Promise<unknown> = Promise.resolve()
  /** Somebody has put a message there while a run went on. */
  #wasWoken = false

  constructor(session: Session, parts: () => AgentParts) {
    this.#session = session
    this.#parts = parts
  }

  get isBusy(): boolean {
    return this.#controller !== undefined
  }

  /** One after the other: what is done about a run that was left behind is done before anybody else decides about it. */
  async alone<T>(work: () => Promise<T>): Promise<T> {
    const turn = this.#turn.then(work)
    this.#turn = turn.catch(() => undefined)
    return turn
  }

  /** Resolves when the run is in the log. Rejects with `session-busy` where another one goes on. */
  async start(start: RunStart): Promise<Run> {
    if (this.#controller) throw this.busy()
    const begun = Promise.withResolvers<string>()
    const stop = this.#session.subscribe(({ line }) => {
      if (line.type === 'run_start') begun.resolve(line.runStart.runId)
    })
    const controller = new AbortController()
    this.#controller = controller
    const done = this.#work(start, controller.signal)
    this.#done = done
    // Whoever started it hears of it; whoever aborts it need not.
    done.catch(() => undefined)
    try {
      const id = await Promise.race([begun.promise, done.then(({ runId }) => runId)])
      return { id, done }
    } finally {
      stop()
    }
  }

  /** Starts with what waits, if nothing is going on and it may go out. */
  wake(): void {
    // A run that is about to end does not look again if it was stopped.
    this.#wasWoken = this.isBusy
    if (this.#controller || !this.#hasWaiting || this.#session.openRun) return
    // Somebody may have taken it back just now; how the run ends is in the log.
    void this.start({ type: 'waiting' }).catch(() => undefined)
  }

  /** Appends where the conversation stands, also while a run goes on. */
  async append(draft: EntryDraft, cause?: Cause): Promise<void> {
    if (this.#head) await this.#head.append(draft, undefined, cause)
    else await this.#session.append(draft, cause && { cause })
  }

  /** Resolves when the run has ended. */
  async abort(reason?: Error): Promise<void> {
    this.#controller?.abort(reason)
    await this.ended()
  }

  /** Resolves at once where nothing runs. */
  async ended(): Promise<void> {
    await this.#done?.catch(() => undefined)
  }

  busy(): SessionError {
    return new SessionError('session-busy', `Session ${this.#session.id} is busy with a run.`)
  }

  async #work(start: RunStart, signal: AbortSignal): Promise<RunEnd> {
    try {
      let end = await this.#run(start, signal)
      // What came in after the run had looked for the last time.
      while (this.#hasWaiting && end.outcome === 'completed') {
        const waiting = await this.#run({ type: 'waiting' }, signal).catch(unlessTakenBack)
        end = waiting ?? end
      }
      return end
    } finally {
      this.#controller = undefined
      this.#head = undefined
      this.#parts().observe({ type: 'agent_idle' })
      if (this.#wasWoken) this.wake()
    }
  }

  #run(start: RunStart, signal: AbortSignal): Promise<RunEnd> {
    const onRun = (head: Head): void => void (this.#head = head)
    return run(start, { ...this.#parts(), onRun }, signal)
  }

  get #hasWaiting(): boolean {
    return nextWaiting(this.#session, this.#parts().settings) !== undefined
  }
}

function unlessTakenBack(error: unknown): undefined {
  if (error instanceof SessionError && error.code === 'message-not-found') return undefined
  throw error
}
