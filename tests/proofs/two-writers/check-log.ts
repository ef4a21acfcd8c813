import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { checksum } from '@tapetree/session/format'
import { openFileStore } from '@tapetree/session/stores/file'
import type { Tenure } from './arena.ts'
import type { Place } from './orders.ts'

export interface LogCheck {
  problems: string[]
  acknowledged: number
  /** Lines in the file that no reader counts. */
  foreign: number
}

/**
 * What must be true of a log whatever its writers did to each other: all that was acknowledged is there, every line that was
 * acknowledged follows one that its writer knew, and what came from another writer is reported. Afterwards it can be written.
 * Half lines, which nobody was told are kept, may lie in it only where the lock was defeated.
 */
export async function checkLog(
  place: Place,
  tenures: readonly Tenure[],
  { isDefeated }: { isDefeated: boolean },
): Promise<LogCheck> {
  const lines = readLines(place)
  const foreign = lines.filter((line) => line.isForeign)
  const problems = [...findLost(lines, tenures), ...findUndetected(lines, tenures), ...findUnannounced(lines, tenures)]
  const store = openFileStore({ folder: place.folder })
  const report = await store.verify(place.sessionId)
  const reported = report.damage.filter(({ reason }) => reason.startsWith('a foreign line')).length
  if (reported !== foreign.length) problems.push(`${foreign.length} foreign lines, ${reported} of them reported`)
  if (!isDefeated) problems.push(...report.damage.map(({ reason }) => `damage: ${reason}`))
  for (const sha256 of report.missingBlobs) problems.push(`blob ${sha256} is missing`)
  const session = await store.open(place.sessionId)
  await session.appendSessionInfo('afterwards').catch((error: unknown) => {
    problems.push(`cannot be written afterwards: ${String(error)} ${session.readOnlyReason}`)
  })
  await session.close()
  await store.close()
  return { problems, foreign: foreign.length, acknowledged: tenures.flatMap(({ acknowledged }) => acknowledged).length }
}

interface RawLine {
  seq: number
  id: string
  end: number
  isForeign: boolean
  /** Who wrote it, as far as it says so. */
  tenure: string | undefined
  process: string | undefined
}

/** Read here without the loader that is under test. */
function readLines({ folder, sessionId }: Place): RawLine[] {
  const text = readFileSync(join(folder, sessionId, 'events.jsonl'), 'latin1')
  let last = 0
  let end = 0
  return text.split('\n').flatMap((line): RawLine[] => {
    end += line.length + 1
    const seal = /^(.*),"crc":"([0-9a-f]{8})"\}$/.exec(line)
    if (!seal || checksum(Buffer.from(seal[1]!, 'latin1')) !== seal[2]) return []
    const { seq, id, custom, writer } = JSON.parse(line)
    const isForeign = seq <= last
    last = Math.max(last, seq)
    return [{ seq, id, end, isForeign, tenure: custom?.data?.tenure, process: writer?.process }]
  })
}

function findLost(lines: readonly RawLine[], tenures: readonly Tenure[]): string[] {
  const kept = new Set(lines.filter((line) => !line.isForeign).map(({ id }) => id))
  return tenures.flatMap((tenure) =>
    tenure.acknowledged.filter((id) => !kept.has(id)).map((id) => `lost: line ${id} of ${tenure.id} was acknowledged`),
  )
}

/** Right before an acknowledged line stands one of the same tenure, or one that was there when it opened. */
function findUndetected(lines: readonly RawLine[], tenures: readonly Tenure[]): string[] {
  const byId = new Map(lines.map((line, index) => [line.id, index]))
  return tenures.flatMap((tenure) =>
    tenure.acknowledged.flatMap((id) => {
      const index = byId.get(id)
      if (index === undefined) return []
      let before = lines[index - 1]
      if (before?.process === tenure.process.pid) before = lines[index - 2]
      const isKnown = before?.tenure === tenure.id || (before?.end ?? 0) <= tenure.knownSize
      return isKnown ? [] : [`undetected: line ${id} of ${tenure.id} follows a line that it cannot know`]
    }),
  )
}

/** The record of a writer goes out with its first lines: where they can be read, it can. */
function findUnannounced(lines: readonly RawLine[], tenures: readonly Tenure[]): string[] {
  return tenures
    .filter(({ acknowledged }) => acknowledged.length > 0)
    .filter(({ id, process }) => lines[lines.findIndex(({ tenure }) => tenure === id) - 1]?.process !== process.pid)
    .map(({ id }) => `the writer record of ${id} cannot be read`)
}
