import { createHash } from 'node:crypto'
import type { CommittedLine } from '@tapetree/session'
import { fromDisk, type DiskLine, type Line } from '@tapetree/session/format'
import type { ModelledDatabase, SessionRow } from './modelled-database.ts'
import type { Link } from './network.ts'
import type { Life, World } from './world.ts'

/** A tool that began to run, outside of the log. */
interface LedgerEntry {
  sessionId: string
  callId: string
  tool: string
  node: string
}

interface SeenNode {
  life: Life
  link: Link
}

/** What is known of a session without asking a node. */
export class SeenSession {
  readonly id: string
  readonly number: number
  readonly lines: Line[] = []
  openRun: string | undefined
  /** When its last line was appended. */
  changedAt = 0
  /** Nothing is left to do in it. */
  isFinished = false

  constructor(id: string, number: number) {
    this.id = id
    this.number = number
  }
}

export interface RefereeFigures {
  lines: number
  calls: number
  runs: number
  resumes: number
  takeovers: number
}

/**
 * Sees every append in the database, every acknowledgement and every start of a tool, in the order in which they happen, and says what
 * must not be.
 */
export class Referee {
  readonly problems: string[] = []
  readonly sessions = new Map<string, SeenSession>()
  readonly ledger: LedgerEntry[] = []
  readonly figures: RefereeFigures = { lines: 0, calls: 0, runs: 0, resumes: 0, takeovers: 0 }
  readonly #world: World
  readonly #digest = createHash('sha256')
  readonly #say: (line: string) => void
  #calls = 0
  database!: ModelledDatabase
  onLine: (session: SeenSession, line: Line) => void = () => undefined

  constructor(world: World, say: (line: string) => void) {
    this.#world = world
    this.#say = say
  }

  /** Of everything that happened, in order. */
  get digest(): string {
    return this.#digest.copy().digest('hex')
  }

  say(line: string): void {
    this.#say(`${(this.#world.now / 1000).toFixed(3)} ${line}`)
  }

  problem(text: string): void {
    const line = `after ${(this.#world.now / 1000).toFixed(3)} s: ${text}`
    this.problems.push(line)
    this.say(`PROBLEM ${text}`)
  }

  nextCall(): string {
    return `c${++this.#calls}`
  }

  /** The database has taken lines. */
  readonly appended = ({ session: row, from, term, entries }: AppendSeen): void => {
    const { node, life } = from as Link
    const session = this.#sessionOf(row)
    if (row.node !== node)
      this.problem(`${life.name} wrote to ${name(session)}, which belongs to another node or to none`)
    let seq = row.entries.length - entries.length
    const before = row.entries[seq - 1]?.term ?? 0
    if (term < before) this.problem(`${life.name} wrote to ${name(session)} with term ${term} after term ${before}`)
    for (const { line: text } of entries) {
      const disk = JSON.parse(text) as DiskLine & { seq: number }
      if (disk.seq !== ++seq) this.problem(`line ${seq} of ${name(session)} has the number ${disk.seq}`)
      const line = fromDisk(disk, disk.seq)
      this.figures.lines++
      this.#digest.update(`${this.#world.now} ${life.name} ${session.number} ${seq} ${term} ${line.type}\n`)
      session.lines.push(line)
      session.changedAt = this.#world.now
      this.say(`${name(session)} ${seq} ${line.type} by ${life.name}, term ${term}`)
      this.#note(session, line)
      this.onLine(session, line)
    }
  }

  /** A node takes a line for stored. Nobody else may own the session then. */
  acknowledged({ life, link }: SeenNode, sessionId: string, { seq, text }: CommittedLine): void {
    const row = this.database.find('local', sessionId)
    if (row?.entries[seq - 1]?.line !== text) {
      this.problem(`${life.name} took line ${seq} of ${sessionId} for stored, and it is not in the log`)
    }
    if (row && !this.#isOwner(row, link)) {
      this.problem(`${life.name} took line ${seq} of ${sessionId} for its own: ${this.#ownership(row, link)}`)
    }
  }

  /** A tool begins to run. */
  started({ life, link }: SeenNode, call: Omit<LedgerEntry, 'node'>): void {
    this.figures.calls++
    this.ledger.push({ ...call, node: life.name })
    this.#digest.update(`${this.#world.now} ${life.name} ${call.tool} ${call.callId}\n`)
    this.say(`${life.name} runs ${call.tool} ${call.callId}`)
    const row = this.database.find('local', call.sessionId)
    if (!row || !row.entries.some(({ line }) => line.includes(`"call_id":"${call.callId}"`)))
      this.problem(`${call.tool} ${call.callId} ran without a tool_start`)
    if (call.tool === 'pay' && row && !this.#isOwner(row, link))
      this.problem(`${life.name} ran ${call.tool} ${call.callId}: ${this.#ownership(row, link)}`)
  }

  recovered({ life }: SeenNode, sessionId: string, step: string): void {
    this.figures.takeovers++
    this.say(`${life.name} recovers ${sessionId}: ${step}`)
  }

  noted(what: string): void {
    this.#digest.update(`${this.#world.now} ${what}\n`)
    this.say(what)
  }

  #isOwner(row: SessionRow, { node }: Link): boolean {
    return node !== undefined && row.node === node && this.database.isLiving(node)
  }

  #ownership({ node, term }: SessionRow, link: Link): string {
    if (node === link.node) return 'its lease has ended'
    return node === null ? 'the session has no owner' : `another node owns the session, with term ${term}`
  }

  #sessionOf({ id, entries }: SessionRow): SeenSession {
    const known = this.sessions.get(id)
    if (known) return known
    const session = new SeenSession(id, this.sessions.size)
    const [header] = entries
    session.lines.push(fromDisk(JSON.parse(header?.line ?? '') as DiskLine, 1))
    this.sessions.set(id, session)
    return session
  }

  #note(session: SeenSession, line: Line): void {
    if (line.type === 'run_start') {
      const { runId, resumes } = line.runStart
      if (resumes === undefined) this.figures.runs++
      else this.figures.resumes++
      if (session.openRun !== undefined && session.openRun !== runId)
        this.problem(`run ${runId} of ${name(session)} began while another one was open`)
      session.openRun = runId
    }
    if (line.type !== 'run_end') return
    if (session.openRun !== line.runEnd.runId) this.problem(`run ${line.runEnd.runId} ended without being open`)
    session.openRun = undefined
  }
}

type AppendSeen = Parameters<NonNullable<ConstructorParameters<typeof ModelledDatabase>[0]['onAppend']>>[0]

export function name({ number }: Pick<SeenSession, 'number'>): string {
  return `s${number}`
}
