import { payloadToWire, type WireStateValues, type Attached, type StateKey } from '@tapetree/client/protocol'
import type { Session, StoppedRun } from '@tapetree/session'
import type { DriverEvent, SessionDriver } from './driver.ts'
import { fitFrame, cutWhole } from './in-flight.ts'

/** Why a run pauses. */
export type Pause = Extract<DriverEvent, { type: 'auto_retry_start' | 'auto_compaction_start' }>

/** At most this many messages are listed. */
const maxListed = 100
/** Length in code units to which long texts are shortened. */
const maxShownText = 500

type ListedMessage = WireStateValues['queue']['messages'][number]
type OpenQuestion = WireStateValues['permissions'][number]

/** The state for all screens, except presence. */
export function stateValues(driver: SessionDriver, pause: Pause | null): Omit<WireStateValues, 'presence'> {
  const { session } = driver
  const { turns, toolCalls, runMs, tokens, cost } = session.totals
  return {
    run: runValue(driver, pause),
    queue: queueValue(session),
    permissions: fitFrame(
      session.pendingPermissions.map((each) => payloadToWire('permission_request', each) as OpenQuestion),
      { shorten: withoutInput },
    ),
    usage: { turns, tool_calls: toolCalls, run_ms: runMs, tokens, cost },
    plan: fitFrame(session.plan),
    config: driver.config(),
    commands: fitFrame(driver.slashCommands()),
    read_only: driver.readOnly ?? null,
    language_servers: fitFrame(driver.languageServers?.() ?? []),
  }
}

function runValue(driver: SessionDriver, pause: Pause | null): WireStateValues['run'] {
  const { openRun } = driver.session
  const { isBusy } = driver
  // An open run without a process at work is interrupted.
  const leftBehind = openRun && !isBusy ? { type: 'resume' as const, run_id: openRun.runId } : null
  const stopped = stoppedRun(driver)
  const run_id = openRun?.runId ?? null
  const { storage, inbox } = driver.session
  const storing = storage.type === 'waiting' ? { type: 'storage' as const, run_id, since: storage.since } : null
  const { toolProblem: reason } = driver
  const isWanted = isBusy || (!inbox.hold && inbox.messages.some(({ held }) => !held))
  const away = isWanted && reason !== undefined ? { type: 'tool_host' as const, run_id, reason } : null
  return {
    run_id,
    is_busy: isBusy,
    waiting_for: storing ?? away ?? (pause ? pauseOnWire(pause) : leftBehind),
    ...(stopped?.type === 'storage-failed' && { stopped }),
  }
}

/** Why a write failed, for clients: without paths of this machine. */
export function storageReason({ cause }: { cause?: unknown }): string {
  const code = (cause as NodeJS.ErrnoException | undefined)?.code
  const isFull = code === 'ENOSPC' || code === 'EDQUOT' || (cause instanceof Error && /\bfull\b/.test(cause.message))
  return isFull ? 'The disk is full.' : `The storage accepts no data (${code ?? 'unknown error'}).`
}

/** Why the open run of a live session does not continue; undefined if there is none, or it does. */
export function stoppedRun({ session, isBusy }: SessionDriver): StoppedRun | undefined {
  if (isBusy || !session.openRun) return undefined
  const { storageFailure } = session
  if (storageFailure) return { type: 'storage-failed', reason: storageReason(storageFailure) }
  return { type: 'interrupted', reason: 'The process of the run has ended.' }
}

function pauseOnWire(pause: Pause): WireStateValues['run']['waiting_for'] {
  const { type, runId: run_id } = pause
  if (type === 'auto_compaction_start') return { type, run_id, reason: pause.reason }
  const { attempt, delayMs: delay_ms, error } = pause
  return { type, run_id, attempt, delay_ms, error }
}

function queueValue({ inbox: { messages, hold } }: Session): WireStateValues['queue'] {
  const listed = messages.slice(0, maxListed).map((each) => payloadToWire('submission', each) as ListedMessage)
  return {
    queue_length: messages.filter(({ delivery }) => delivery === 'follow-up').length,
    total: messages.length,
    hold: hold && { reason: cutWhole(hold.reason, maxShownText) },
    messages: fitFrame(listed, { shorten: withShortText }),
  }
}

function withShortText(listed: ListedMessage): ListedMessage {
  const message = cutWhole(listed.message, maxShownText)
  return message === listed.message ? listed : { ...listed, message, truncated: true }
}

function withoutInput({ input, ...question }: OpenQuestion): OpenQuestion {
  return input === undefined ? question : { ...question, truncated: true }
}

export interface BoardValue {
  value: unknown
  rev: number
  bytes: Buffer
}

/** Values of which only the latest counts. Each change has a revision. */
export class StateBoard {
  readonly #values = new Map<StateKey, BoardValue & { json: string }>()
  #rev = 0

  get rev(): number {
    return this.#rev
  }

  /** Returns whether the value changed. */
  set<Key extends StateKey>(key: Key, value: WireStateValues[Key]): boolean {
    const json = JSON.stringify(value)
    if (this.#values.get(key)?.json === json) return false
    const rev = ++this.#rev
    const bytes = Buffer.from(`{"type":"state","data":{"key":${JSON.stringify(key)},"value":${json}},"rev":${rev}}`)
    this.#values.set(key, { value, rev, bytes, json })
    return true
  }

  get<Key extends StateKey>(key: Key): WireStateValues[Key] | undefined {
    return this.#values.get(key)?.value as WireStateValues[Key] | undefined
  }

  /** Values newer than a revision, oldest change first. */
  newerThan(rev: number): BoardValue[] {
    return [...this.#values.values()].filter((each) => each.rev > rev).sort((left, right) => left.rev - right.rev)
  }

  /** Values newer than a revision, with their keys. */
  since(rev: number): { key: StateKey; value: unknown; rev: number }[] {
    return [...this.#values].filter(([, each]) => each.rev > rev).map(([key, { value, rev }]) => ({ key, value, rev }))
  }

  all(): Attached['state'] {
    return Object.fromEntries([...this.#values].map(([key, { value, rev }]) => [key, { value, rev }]))
  }
}
