import { readLiveDraft, systemClock, type Clock } from '@tapetree/agent/run'
import type { WireStateValues } from '@tapetree/client/protocol'
import { SessionError, type Owner, type Session, type SessionStore } from '@tapetree/session'
import type { LogLine } from '@tapetree/session/log-store'
import { Listeners } from '@tapetree/session/util/listeners'
import { emitWarning, RequestProblem } from '../util/problem-error.ts'
import type { DriverEvent, SessionDriver, SlashCommand } from './driver.ts'

export interface WatchedDriverOptions {
  store: SessionStore
  clock?: Clock
}

/** Whether a session could not be opened because another process writes it. */
export function isOwned(error: unknown): boolean {
  return error instanceof SessionError && (error.code === 'session-owned' || error.code === 'read-only')
}

export interface WatchSink {
  take: (lines: LogLine[]) => void
  onRewritten: () => void
  /** The node that owns the session; undefined if none does. Called when it has changed, and again while `isTold` is false. */
  onOwner?: (node: string | undefined) => void
  /** Whether the owner announces lines and sends text, so that looking for them can take its time. */
  isTold?: () => boolean
}

/** How often the log is polled if its store does not report changes. Text in flight is polled as often during a run. */
const lookEveryMs = { running: 150, quiet: 1000 }

/** The start of a line that may change the model or the thinking level in force. */
const changesConfig = /^\{"seq":\d+,"type":"(?:model_change|thinking_level|leaf|branch_summary)"/

/**
 * A session that another process writes. Follows its log and its streaming text, and rejects every command.
 * Finds the owner without touching its lock: only a command claims the session.
 */
export class WatchedDriver implements SessionDriver {
  readonly session: Session
  readonly #clock: Clock
  readonly #closing = new AbortController()
  /** Items of the draft whose line is in the log. */
  readonly #landed = new Set<string>()
  readonly #listeners = new Listeners<DriverEvent>(emitWarning)
  #owner: Owner | undefined
  #onOwner: WatchSink['onOwner']
  #hurry = new AbortController()
  #chosen: Record<string, unknown> = {}
  #following: Promise<void> = Promise.resolve()
  #reading: Promise<void> = Promise.resolve()

  private constructor(session: Session, clock: Clock) {
    this.session = session
    this.#owner = session.owner
    this.#clock = clock
  }

  /** Undefined if no other process owns the session any more. */
  static async open(
    sessionId: string,
    { store, clock = systemClock }: WatchedDriverOptions,
  ): Promise<WatchedDriver | undefined> {
    const session = await store.open(sessionId)
    if (!session.owner) {
      await session.close()
      return undefined
    }
    const driver = new WatchedDriver(session, clock)
    await driver.#readConfig()
    return driver
  }

  get isBusy(): boolean {
    return this.#owner !== undefined && this.session.openRun !== null
  }

  /** Null once its owner has ended: the next command claims the session. */
  get readOnly(): WireStateValues['read_only'] {
    if (!this.#owner) return null
    const { reason, host, process } = this.#owner
    const known = { ...(host !== undefined && { host }), ...(process !== undefined && { process }) }
    return { reason, ...(host !== undefined && { owner: known }) }
  }

  config(): Record<string, unknown> {
    const { permissionMode, permissionModeReason: reason } = this.session
    return { ...this.#chosen, mode: permissionMode ?? null, ...(reason !== undefined && { mode_reason: reason }) }
  }

  slashCommands(): readonly SlashCommand[] {
    return []
  }

  subscribe(listener: (event: DriverEvent) => void): () => void {
    return this.#listeners.add(listener)
  }

  async perform(): Promise<never> {
    throw await this.problem()
  }

  /** Names the current owner. */
  async problem(): Promise<RequestProblem> {
    await this.#lookForOwner()
    const { reason, owner } = this.readOnly ?? { reason: 'Another process is writing this session.' }
    return new RequestProblem(409, 'session-owned', reason, { ...(owner && { owner }) })
  }

  async canResume(): Promise<boolean> {
    return false
  }

  async close(): Promise<void> {
    await this.stop()
    await this.session.close()
  }

  /**
   * Passes on what the owner writes, in order: the lines after this one, then all later ones. A failed read is
   * retried. Calls `onRewritten` if the log does not continue from there, as after a failed write of its owner.
   */
  follow(after: number, sink: WatchSink): void {
    this.#onOwner = sink.onOwner
    sink.onOwner?.(this.#owner?.host)
    let last = after
    const read = async (): Promise<void> => {
      await this.session.refresh()
      if (this.session.head.seq < last) return sink.onRewritten()
      const lines: LogLine[] = []
      for await (const line of this.session.lines({ after: last })) lines.push(line)
      if (this.#closing.signal.aborted) return
      const newest = lines.at(-1)
      if (newest) last = newest.type === 'lost' ? newest.seq + newest.count - 1 : newest.seq
      for (const line of lines) if (line.type === 'line') this.#noteAttempt(line.text)
      if (lines.some((line) => line.type === 'line' && changesConfig.test(line.text))) await this.#readConfig()
      sink.take(lines)
    }
    const look = async (): Promise<void> => {
      const reading = read()
      this.#reading = reading.catch(() => undefined)
      await reading
      await this.#hearDraft()
      await this.#lookForOwner()
      if (sink.isTold?.() === false) sink.onOwner?.(this.#owner?.host)
    }
    this.#following = this.#lookAgain(look, () => this.isBusy && sink.isTold?.() !== true)
  }

  /** Reads the log now: there may be more lines, or another owner. */
  look(): void {
    this.#hurry.abort('look')
  }

  /** The node that owns it now; undefined if none does. */
  async ownerNode(): Promise<string | undefined> {
    await this.#lookForOwner()
    return this.#owner?.host
  }

  /** Resolves when all known lines were passed on. */
  async caughtUp(): Promise<void> {
    await this.#reading
  }

  /** Nothing is passed on after this resolves. */
  async stop(): Promise<void> {
    this.#closing.abort('stopped')
    await this.#following
  }

  async #lookAgain(look: () => Promise<void>, isInHurry: () => boolean): Promise<void> {
    const { signal } = this.#closing
    while (!signal.aborted) {
      const over = new AbortController()
      this.#hurry = new AbortController()
      const either = AbortSignal.any([signal, over.signal, this.#hurry.signal])
      // Subscribes before reading, so that lines written meanwhile are not missed.
      const changed = this.session.changed(either).catch(() => new Promise<void>(() => undefined))
      // A failed read may succeed later, for example on a network folder.
      await look().catch(() => undefined)
      const waited = this.#clock.wait(isInHurry() ? lookEveryMs.running : lookEveryMs.quiet, either)
      await Promise.race([changed, waited.catch(() => undefined)])
      over.abort('looked')
    }
  }

  /**
   * Draft text ends with the line of its item. The owner empties the draft some time after that line, so text
   * of an item in the log is stale.
   */
  async #hearDraft(): Promise<void> {
    const { localFolder, openRun } = this.session
    if (localFolder === undefined || !this.isBusy || !openRun) return
    const draft = await readLiveDraft(localFolder)
    for (const item of new Set(draft.map((text) => text.item))) {
      if (await this.#isInLog(item)) this.#landed.add(item)
    }
    for (const text of draft) {
      if (!this.#landed.has(text.item)) this.#tell({ ...text, run: text.run ?? openRun.runId })
    }
  }

  async #isInLog(item: string): Promise<boolean> {
    return this.session.getEntry(item).then(
      () => true,
      () => false,
    )
  }

  /** An attempt ends its item without an entry. */
  #noteAttempt(line: string): void {
    if (!line.includes('"type":"attempt"')) return
    const { attempt } = JSON.parse(line) as { attempt?: { item?: string } }
    if (attempt?.item !== undefined) this.#landed.add(attempt.item)
  }

  async #lookForOwner(): Promise<void> {
    const owner = await this.session.currentOwner()
    if (owner?.reason === this.#owner?.reason) return
    this.#owner = owner
    this.#onOwner?.(owner?.host)
    this.#tell({ type: 'config_changed' })
  }

  async #readConfig(): Promise<void> {
    const { model, thinkingLevel } = await this.session.getContext()
    const { provider, modelId } = model ?? {}
    this.#chosen = { model: model && { provider, model_id: modelId }, thinking_level: thinkingLevel }
  }

  #tell(event: DriverEvent): void {
    this.#listeners.notify(event)
  }
}
