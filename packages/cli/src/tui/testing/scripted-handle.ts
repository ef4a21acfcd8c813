import {
  SessionCommands,
  type ConnectionStatus,
  type PresenceNews,
  type SessionChange,
  type SessionHandle,
  type StateValues,
} from '@tapetree/client'
import type { Arguments, Operation, StateKey } from '@tapetree/client/protocol'
import { text, type Content, type Message, type RunOutcome } from '@tapetree/session'
import type { Line, PermissionRequestRecord, RecordDraft } from '@tapetree/session/format'
import { emptyTranscript, reduceTranscript, type Transcript, type TranscriptInput } from '@tapetree/session/view'
import { Listeners } from '@tapetree/session/util/listeners'

/** The result of a command, set by a test. */
export type Reply = (op: Operation, args: unknown) => unknown

/** A session whose log a test writes line by line, and which only records its commands. */
export class ScriptedHandle extends SessionCommands implements SessionHandle {
  readonly sessionId: string
  /** The commands, in order. */
  readonly calls: { op: Operation; args: unknown }[] = []
  readonly presence: PresenceNews[] = []
  /** How many entries it was asked to keep, each time. */
  readonly forgotten: number[] = []
  reply: Reply = () => undefined
  isClosed = false
  #transcript: Transcript = emptyTranscript()
  #status: ConnectionStatus = { type: 'attached' }
  #state = new Map<StateKey, unknown>()
  readonly #listeners = new Listeners<SessionChange>()
  #seq = 0

  constructor(sessionId = 'scripted') {
    super()
    this.sessionId = sessionId
  }

  get transcript(): Transcript {
    return this.#transcript
  }

  get status(): ConnectionStatus {
    return this.#status
  }

  state<Key extends StateKey>(key: Key): StateValues[Key] | undefined {
    return this.#state.get(key) as StateValues[Key] | undefined
  }

  subscribe(listener: (change: SessionChange) => void): () => void {
    return this.#listeners.add(listener)
  }

  async run<Op extends Operation>(op: Op, args: Arguments<Op>): Promise<unknown> {
    this.calls.push({ op, args })
    return this.reply(op, args)
  }

  async loadOlder(): Promise<boolean> {
    return false
  }

  forgetOlder(keep: number): void {
    this.forgotten.push(keep)
  }

  present(presence: PresenceNews): void {
    this.presence.push(presence)
  }

  async close(): Promise<void> {
    this.isClosed = true
  }

  setState<Key extends StateKey>(key: Key, value: StateValues[Key]): void {
    this.#state.set(key, value)
    this.#tell({ type: 'state', key })
  }

  setStatus(status: ConnectionStatus): void {
    this.#status = status
    this.#tell({ type: 'status' })
  }

  user(words: string): string {
    return this.message({ role: 'user', content: [text(words)] })
  }

  assistant(...content: (string | Content)[]): string {
    return this.message({
      role: 'assistant',
      content: content.map((each) => (typeof each === 'string' ? text(each) : each)),
    })
  }

  message(message: Message, id = `e${this.#seq + 1}`): string {
    const parentId = this.#transcript.path.leafId
    this.take({ type: 'line', line: { ...this.#base(id), type: 'message', parentId, message } })
    return id
  }

  record(record: RecordDraft): void {
    this.take({ type: 'line', line: { ...this.#base(`r${this.#seq + 1}`), ...record } as unknown as Line })
  }

  startRun(runId = 'run-1'): void {
    this.record({ type: 'run_start', runStart: { runId, leafId: null } })
    this.setState('run', { runId, isBusy: true, waitingFor: null })
  }

  endRun(outcome: RunOutcome = 'completed', runId = 'run-1'): void {
    this.record({ type: 'run_end', runEnd: { runId, outcome } })
    this.setState('run', { runId: null, isBusy: false, waitingFor: null })
  }

  requestPermission(request: PermissionRequestRecord['permissionRequest']): void {
    this.record({ type: 'permission_request', permissionRequest: request })
  }

  resolve(requestId: string): void {
    this.record({ type: 'permission_result', permissionResult: { requestId, outcome: 'allowed' } })
  }

  /** Streamed text, after what has arrived of it. */
  streamText(item: string, words: string): void {
    const before = this.#transcript.inFlight.get(item)?.parts.find(({ kind }) => kind === 'text')
    const off = before ? before.off + before.text.length : 0
    this.take({ type: 'delta', item, part: 0, kind: 'text', off, text: words, run: 'run-1' })
  }

  take(input: TranscriptInput): void {
    this.#transcript = reduceTranscript(this.#transcript, input)
    this.#seq = this.#transcript.seq
    this.#tell({ type: 'transcript' })
  }

  #base(id: string): { id: string; seq: number; timestamp: string } {
    return { id, seq: this.#seq + 1, timestamp: new Date(1_700_000_000_000 + this.#seq * 1000).toISOString() }
  }

  #tell(change: SessionChange): void {
    this.#listeners.notify(change)
  }
}
