import { existsSync, readdirSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { text, type Durability, type SessionStore } from '@tapetree/session'
import { openFileStore } from '@tapetree/session/stores/file'
import { findFaults, findHalfMade, findLost, findTemporaryFiles } from './check-log.ts'
import { fingerprintOf } from './fingerprint.ts'
import { readRawLog, type RawLog } from './raw-log.ts'
import { storeFolder, type Acknowledgement } from './report.ts'

/** What is found after a crash. `problems` must stay empty; the rest is told. */
export interface Findings {
  problems: string[]
  /** Sessions that were opened. */
  opened: number
  /** Acknowledgements whose line was looked for. */
  checked: number
  /** Merely accepted lines that are gone, where the machine died and not only the process. */
  lostAccepted: number
  /** Ends that were set aside. */
  torn: number
  /**
   * Sessions that opened with damage, where the machine died: a file system may write what was never synced in any order, so
   * lines that nobody was promised can be missing between others. It is reported, and nothing durable may be in it.
   */
  damaged: Record<Durability, number>
  /** Hidden folders of sessions whose maker died; nobody was told of them. */
  halfMade: number
}

export interface CheckOptions {
  /** A writer opens the sessions and appends to them; otherwise they are only read, and the next writer finds them as they are. */
  as: 'writer' | 'reader'
  /** What merely had to survive the process may be gone. */
  machineDied: boolean
}

/** The sessions of one folder through many crashes: what was acknowledged in them, and whether it is still there. */
export class Survivors {
  readonly #folder: string
  readonly #acknowledged = new Map<string, Map<string, Acknowledgement>>()

  readonly #torn = new Set<string>()
  readonly #damaged = new Set<string>()
  readonly #proven = new Map<string, Map<string, string>>()

  constructor(folder: string) {
    this.#folder = folder
  }

  add(acknowledged: Iterable<Acknowledgement>): void {
    for (const each of acknowledged) {
      const ofSession = this.#acknowledged.get(each.session) ?? new Map<string, Acknowledgement>()
      this.#acknowledged.set(each.session, ofSession.set(each.id, each))
    }
  }

  /** Opens every session there is, and looks for everything that was acknowledged. */
  async check(options: CheckOptions): Promise<Findings> {
    const findings: Findings = {
      problems: [],
      opened: 0,
      checked: 0,
      lostAccepted: 0,
      torn: 0,
      damaged: { durable: 0, accepted: 0 },
      halfMade: 0,
    }
    const missing = new Set(this.#acknowledged.keys())
    for (const durability of ['durable', 'accepted'] as const) {
      const folder = storeFolder(this.#folder, durability)
      const store = openFileStore({ folder, durability })
      const checks = sessionsIn(folder).map(async (id) => {
        missing.delete(id)
        const problems: string[] = []
        await this.#checkSession({ store, durability, folder: join(folder, id), id, problems }, options, findings)
        findings.problems.push(...problems.map((problem) => `session ${id}: ${problem}`))
      })
      await Promise.all(checks)
      await store.close()
      if (options.as === 'writer' && existsSync(folder)) this.#tidy(folder, findings)
    }
    for (const id of missing) findings.problems.push(`session ${id} was acknowledged and is gone`)
    return findings
  }

  /** Chooses the sessions that the next writer goes on with; the others have been checked and are removed. */
  goOnWith(counts: Record<Durability, number>): Record<Durability, string[]> {
    const chosen = {
      durable: this.#choose('durable', counts.durable),
      accepted: this.#choose('accepted', counts.accepted),
    }
    this.#damaged.clear()
    return chosen
  }

  #choose(durability: Durability, count: number): string[] {
    const folder = storeFolder(this.#folder, durability)
    const sized = sessionsIn(folder).map((id) => ({ id, size: statSync(join(folder, id, 'events.jsonl')).size }))
    const chosen = sized
      .filter(({ id, size }) => size < maxLogBytes && !this.#damaged.has(id))
      .toSorted((left, right) => right.size - left.size)
      .slice(0, count)
      .map(({ id }) => id)
    for (const { id } of sized) if (!chosen.includes(id)) this.#remove(folder, id)
    return chosen
  }

  #remove(folder: string, id: string): void {
    rmSync(join(folder, id), { recursive: true })
    this.#acknowledged.delete(id)
    this.#proven.delete(id)
  }

  #tidy(folder: string, findings: Findings): void {
    for (const name of findHalfMade(folder)) {
      findings.halfMade++
      rmSync(join(folder, name), { recursive: true })
    }
    findings.problems.push(...findTemporaryFiles(folder).map((name) => `temporary file left: ${name}`))
  }

  async #checkSession(place: Place, options: CheckOptions, findings: Findings): Promise<void> {
    const { store, durability, folder, id, problems } = place
    await this.#open(place, options)
    findings.opened++
    const log = readRawLog(folder)
    this.#lookFor(place, log, options, findings)
    findings.torn += this.#newlyTorn(folder)
    if (this.#damaged.has(id)) {
      findings.damaged[durability]++
      return
    }
    problems.push(...(options.as === 'writer' ? findFaults(log) : log.faults))
    if (options.as === 'reader') return
    const report = await store.verify(id)
    if (!report.isIntact) problems.push(`verify says ${JSON.stringify(report)}`)
  }

  #newlyTorn(folder: string): number {
    const torn = readdirSync(folder).filter((name) => name.includes('.torn-') && !this.#torn.has(`${folder}/${name}`))
    for (const name of torn) this.#torn.add(`${folder}/${name}`)
    return torn.length
  }

  async #open({ store, id, problems }: Place, options: CheckOptions): Promise<void> {
    try {
      await using session = await store.open(id, { readOnly: options.as === 'reader' })
      if (session.damage.length > 0 && options.machineDied) this.#damaged.add(id)
      else if (session.damage.length > 0) problems.push(`damage is reported: ${JSON.stringify(session.damage)}`)
      if (options.as === 'reader') return
      if (session.readOnlyReason !== undefined) problems.push(`it opens read-only: ${session.readOnlyReason}`)
      const message = { role: 'user' as const, content: [text('still here')] }
      const { id: entry, seq } = await session.append({ type: 'message', message })
      const fingerprint = fingerprintOf(message)
      this.add([{ session: id, id: entry, seq, fingerprint, durability: 'accepted' }])
    } catch (error) {
      problems.push(`it does not open: ${(error as Error).stack}`)
    }
  }

  #lookFor({ folder, id, problems }: Place, log: RawLog, options: CheckOptions, findings: Findings): void {
    const acknowledged = this.#acknowledged.get(id)
    if (!acknowledged) return
    findings.checked += acknowledged.size
    const proven = this.#proven.get(id) ?? new Map<string, string>()
    this.#proven.set(id, proven)
    for (const { acknowledgement, reason } of findLost({ folder, log, proven }, acknowledged.values())) {
      acknowledged.delete(acknowledgement.id)
      if (options.machineDied && acknowledgement.durability === 'accepted') findings.lostAccepted++
      else problems.push(`${acknowledgement.durability} entry ${acknowledgement.id} is lost: ${reason}`)
    }
  }
}

interface Place {
  store: SessionStore
  durability: Durability
  folder: string
  id: string
  problems: string[]
}

/** A session that has grown past this has been through enough; the next one takes its place. */
const maxLogBytes = 2 * 1024 * 1024

/** Names that begin with a dot are the store's own. */
function sessionsIn(folder: string): string[] {
  return existsSync(folder) ? readdirSync(folder).filter((name) => !name.startsWith('.')) : []
}
