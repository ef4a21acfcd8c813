import { SessionError } from '../../errors.ts'
import type { CheckpointPieces } from '../../log/log-store.ts'
import type { SessionInfo } from '../../state/session-info.ts'
import type { Database } from './database.ts'
import { rowValues, storable } from './session-rows.ts'

/** What one session has derived from its lines. */
export interface SessionDerived {
  tenant: string
  key: string
  term: number | undefined
  checkpoint?: CheckpointPieces
  /** The row of the list, and how many lines the session has. */
  row?: { lines: number; info: SessionInfo }
}

interface Waiting extends SessionDerived {
  resolve: () => void
  reject: (error: unknown) => void
}

/**
 * Saves for all sessions of a process. One statement is under way at a time; sessions that wait meanwhile share the next
 * one. A session is in a statement once.
 */
export class DerivedQueue {
  readonly #database: Database
  #waiting: Waiting[] = []
  #isWorking = false

  constructor(database: Database) {
    this.#database = database
  }

  save(derived: SessionDerived): Promise<void> {
    return new Promise((resolve, reject) => {
      for (const content of derived.checkpoint?.changed.values() ?? []) {
        if (content.includes(separator))
          throw new SessionError('invalid-entry', 'A checkpoint has no control characters.')
      }
      this.#waiting.push({ ...derived, resolve, reject })
      if (this.#isWorking) return
      this.#isWorking = true
      setImmediate(() => void this.#work())
    })
  }

  async #work(): Promise<void> {
    while (this.#waiting.length > 0) await this.#send(this.#take())
    this.#isWorking = false
  }

  #take(): Waiting[] {
    const taken = new Map<string, Waiting>()
    let length = 0
    for (const session of this.#waiting) {
      if (taken.has(session.key) || taken.size === maxSessions || length > maxLength) break
      taken.set(session.key, session)
      for (const content of session.checkpoint?.changed.values() ?? []) length += content.length
    }
    this.#waiting.splice(0, taken.size)
    return [...taken.values()]
  }

  async #send(sessions: readonly Waiting[]): Promise<void> {
    const checkpoints = sessions.flatMap((each) => (each.checkpoint ? [{ ...each, checkpoint: each.checkpoint }] : []))
    const rows = sessions.flatMap(({ tenant, key, row }) => (row ? [{ tenant, key, ...row }] : []))
    try {
      const [result] = await this.#database.call<{ stored: number[] | null }>(statement, [
        ...checkpointValues(checkpoints),
        ...rowValues(rows),
      ])
      const stored = new Set(result?.stored?.map((place) => checkpoints[place - 1]?.key))
      for (const { key, checkpoint, resolve, reject } of sessions) {
        if (!checkpoint || stored.has(key)) resolve()
        else reject(new SessionError('fenced', 'Another writer has taken over this session.'))
      }
    } catch (error) {
      for (const { reject } of sessions) reject(error)
    }
  }
}

const statement = `select tapetree.save_derived($1, $2, $3, $4, $5, $6, $7) as stored,
  tapetree.save_rows($8, $9, $10, $11, $12, $13, $14, $15)`
const maxSessions = 256
const maxLength = 4 * 1024 * 1024
/** A piece does not contain it, so one text holds all pieces without escapes. */
const separator = '\u{1e}'

function checkpointValues(
  sessions: readonly (SessionDerived & { checkpoint: CheckpointPieces })[],
): readonly unknown[] {
  const owners: number[] = []
  const numbers: number[] = []
  const contents: string[] = []
  for (const [index, { checkpoint }] of sessions.entries()) {
    for (const [number, content] of checkpoint.changed) {
      owners.push(index + 1)
      numbers.push(number)
      contents.push(storable(content))
    }
  }
  return [
    sessions.map(({ tenant }) => tenant),
    sessions.map(({ key }) => key),
    sessions.map(({ term }) => term ?? null),
    sessions.map(({ checkpoint }) => checkpoint.count),
    owners,
    numbers,
    contents.join(separator),
  ]
}
