import { crc32 } from 'node:zlib'
import { textOf, type Report } from './report.ts'

/** An attempt to append a line, and how it ended. */
export interface Attempt {
  session: string
  id: string
  writer: string
  isStale: boolean
  /** When it began, in milliseconds. */
  atMs: number
  outcome:
    | { type: 'open' }
    | { type: 'acknowledged'; seq: number; atMs: number }
    | { type: 'refused'; code: string; message: string; atMs: number }
    | { type: 'abandoned' }
    /** The writer was killed meanwhile. */
    | { type: 'killed' }
}

/** A line as the database has it. */
export interface StoredLine {
  n: number
  line: string
}

export type Logs = ReadonlyMap<string, readonly StoredLine[]>

/** What writers tried and were told, and who owned which session. */
export class History {
  readonly attempts = new Map<string, Attempt>()
  /** The sessions of each writer that it has opened. */
  readonly sessions = new Map<string, Set<string>>()
  /** The process of each writer, as its writer records name it. */
  readonly processes = new Map<string, string>()
  /** The writers whose sessions were given to others while they were paused: they must be fenced. */
  readonly deposed = new Set<string>()
  /** When the newest attempt began that was acknowledged, for each session. */
  readonly #newest = new Map<string, number>()

  hear(writer: string, report: Report): void {
    const atMs = Date.now()
    switch (report.type) {
      case 'tried': {
        const { session, id, isStale = false } = report
        this.attempts.set(id, { session, id, writer, isStale, atMs, outcome: { type: 'open' } })
        return
      }
      case 'acknowledged':
        this.#settle(report.id, { type: 'acknowledged', seq: report.seq, atMs })
        this.#newest.set(report.session, this.attempts.get(report.id)?.atMs ?? 0)
        return
      case 'refused':
        this.#settle(report.id, { type: 'refused', code: report.code, message: report.message, atMs })
        return
      case 'abandoned':
        this.#settle(report.id, { type: 'abandoned' })
        return
      case 'opened': {
        const opened = this.sessions.get(writer) ?? new Set<string>()
        this.sessions.set(writer, opened.add(report.session))
        return
      }
      case 'ready':
      case 'drained':
      case 'failed':
        return
      default:
        report satisfies never
    }
  }

  /** What the writer had under way may or may not be in the log. */
  killed(writer: string): void {
    for (const attempt of this.attempts.values()) {
      if (attempt.writer === writer && attempt.outcome.type === 'open') attempt.outcome = { type: 'killed' }
    }
  }

  /** Forgets that these were acknowledged: they may or may not be in the log. */
  forgetAcknowledged(which: (id: string) => boolean): void {
    for (const attempt of this.attempts.values()) {
      if (attempt.outcome.type === 'acknowledged' && which(attempt.id)) attempt.outcome = { type: 'killed' }
    }
  }

  /** Whether an append to this session was acknowledged that began after this moment. */
  wentOn(session: string, sinceMs: number): boolean {
    return (this.#newest.get(session) ?? 0) > sinceMs
  }

  #settle(id: string, outcome: Attempt['outcome']): void {
    const attempt = this.attempts.get(id)
    if (attempt) attempt.outcome = outcome
  }
}

/** Compares what writers were told with the logs that they left, without any code of the package. */
export function findProblems(history: History, logs: Logs): string[] {
  const problems: string[] = []
  const found = new Map<string, { session: string; seq: number }>()
  for (const [session, lines] of logs) problems.push(...checkLog(history, { session, lines, found }))
  for (const attempt of history.attempts.values()) {
    const stored = found.get(attempt.id)
    const problem = isLeftBehind(attempt, history)
      ? undefined
      : (checkAttempt(attempt, stored) ?? checkRefusal(attempt, history))
    if (problem !== undefined) problems.push(`session ${attempt.session}, ${attempt.id}: ${problem}`)
  }
  return problems
}

function checkAttempt(
  { session, isStale, outcome }: Attempt,
  stored: { session: string; seq: number } | undefined,
): string | undefined {
  if (stored && stored.session !== session) return `it is in the log of ${stored.session}`
  switch (outcome.type) {
    case 'acknowledged':
      if (isStale) return 'an append with an old term was acknowledged'
      if (!stored) return `LOST: it was acknowledged with seq ${outcome.seq} and is not in the log`
      if (stored.seq !== outcome.seq) return `it was acknowledged with seq ${outcome.seq} and has ${stored.seq}`
      return undefined
    case 'refused':
      if (outcome.code === 'outcome-unknown') return undefined
      if (stored) return `it is in the log as ${stored.seq}, but was refused: ${outcome.code}, ${outcome.message}`
      if (isStale && outcome.code === 'other') return `it failed with ${outcome.message}`
      return undefined
    case 'open':
      return 'it was neither acknowledged nor refused'
    case 'abandoned':
    case 'killed':
      return isStale && stored ? `STALE: an append with an old term is in the log as ${stored.seq}` : undefined
    default:
      outcome satisfies never
      return undefined
  }
}

/**
 * Whether a writer lost its session while the outcome of this append was unknown to it. The append may be in the log, but only in the term
 * of that writer, which the check of the log looks at.
 */
function isLeftBehind({ session, writer, isStale, outcome }: Attempt, history: History): boolean {
  const isOwned = history.sessions.get(writer)?.has(session) ?? false
  return isOwned && !isStale && history.deposed.has(writer) && outcome.type === 'refused' && outcome.code === 'fenced'
}

/** A session is refused only if another writer took it over, or after it has waited for a minute. */
function checkRefusal({ session, writer, atMs, outcome }: Attempt, history: History): string | undefined {
  const isOwned = history.sessions.get(writer)?.has(session) ?? false
  if (outcome.type !== 'refused' || !isOwned) return undefined
  if (outcome.code === 'fenced') return 'it was fenced by nobody'
  const waitedMs = outcome.atMs - atMs
  return waitedMs < patienceMs ? `it was given up after ${waitedMs} ms: ${outcome.message}` : undefined
}

/** A session waits for a minute; the last pause before its end may be left out. */
const patienceMs = 55_000

interface LogToCheck {
  session: string
  lines: readonly StoredLine[]
  /** The attempts whose lines were found, of all logs. */
  found: Map<string, { session: string; seq: number }>
}

type RawLine = { seq: number; type: string; id: string } & Record<string, unknown>

function checkLog(history: History, { session, lines, found }: LogToCheck): string[] {
  const problems: string[] = []
  let owner = { term: 0, process: '' }
  for (const [index, { n, line }] of lines.entries()) {
    const raw = proven(line)
    const place = `session ${session}, line ${n}`
    if (!raw) problems.push(`${place}: it does not prove itself: ${line.slice(0, 80)}`)
    if (n !== index + 1) problems.push(`${place}: it is where line ${index + 1} belongs`)
    if (!raw) continue
    if (raw.seq !== n) problems.push(`${place}: it has seq ${raw.seq}`)
    if (raw.type === 'writer') {
      const next = raw['writer'] as { term: number; process: string }
      if (next.term <= owner.term) problems.push(`${place}: term ${next.term} follows term ${owner.term}`)
      owner = next
    }
    if (raw.type !== 'message') continue
    const attempt = history.attempts.get(raw.id)
    if (!attempt) problems.push(`${place}: nobody tried to append ${raw.id}`)
    if (found.has(raw.id)) problems.push(`${place}: DOUBLED: ${raw.id} is in a log twice`)
    found.set(raw.id, { session, seq: raw.seq })
    if (!line.includes(textOf(raw.id))) problems.push(`${place}: the text of ${raw.id} has changed`)
    if (!attempt) continue
    if (attempt.isStale) problems.push(`${place}: STALE: ${raw.id} was appended with an old term`)
    const writer = history.processes.get(attempt.writer)
    if (owner.term > 0 && writer !== owner.process) {
      problems.push(`${place}: STALE: ${raw.id} of process ${writer} is in the term of process ${owner.process}`)
    }
  }
  return problems
}

const sealLength = ',"crc":"00000000"}'.length

function proven(line: string): RawLine | undefined {
  const bytes = Buffer.from(line)
  const crc = crc32(bytes.subarray(0, -sealLength)).toString(16).padStart(8, '0')
  if (bytes.subarray(-sealLength).toString() !== `,"crc":"${crc}"}`) return undefined
  return JSON.parse(line) as RawLine
}
