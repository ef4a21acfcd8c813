import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import type { Acknowledgement } from './report.ts'
import { storedFingerprint, type RawLine, type RawLog } from './raw-log.ts'

/**
 * What was acknowledged and is not there, or is not what was given, with the reason. `proven` holds the checksums of lines whose
 * content has been compared before: the same line need not be compared again.
 */
export function findLost(
  place: { folder: string; log: RawLog; proven: Map<string, string> },
  acknowledged: Iterable<Acknowledgement>,
): Lost[] {
  const { folder, log, proven } = place
  const byId = new Map(log.lines.map((line) => [line.id, line]))
  const lost: Lost[] = []
  for (const acknowledgement of acknowledged) {
    const line = byId.get(acknowledgement.id)
    if (line?.seq === acknowledgement.seq && proven.get(line.id) === line.crc) continue
    const reason = whyLost(folder, line, acknowledgement)
    if (reason !== undefined) lost.push({ acknowledgement, reason })
    else if (line) proven.set(line.id, line.crc)
  }
  return lost
}

export interface Lost {
  acknowledgement: Acknowledgement
  reason: string
}

/** What must not be in a log that was opened for writing and closed: torn ends, lines that prove nothing, skipped terms. */
export function findFaults(log: RawLog): string[] {
  const faults = [...log.faults]
  if (log.tailBytes > 0) faults.push(`${log.tailBytes} bytes are behind the last line`)
  const terms = log.lines.filter(({ type }) => type === 'writer').map(({ writer }) => (writer as { term: number }).term)
  for (const [index, term] of terms.entries()) {
    if (term !== index + 1) faults.push(`writer number ${index + 1} has term ${term}`)
  }
  const ids = new Set(log.lines.map(({ id }) => id))
  if (ids.size !== log.lines.length) faults.push(`${log.lines.length - ids.size} ids are there twice`)
  return faults
}

/** Files under a temporary name, anywhere below a folder. */
export function findTemporaryFiles(folder: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.tmp'))
}

/** Sessions that were being made: under a hidden name, no session of anybody. */
export function findHalfMade(folder: string): string[] {
  return existsSync(join(folder, '.new')) ? readdirSync(join(folder, '.new')).map((name) => join('.new', name)) : []
}

function whyLost(folder: string, line: RawLine | undefined, expected: Acknowledgement): string | undefined {
  if (!line) return 'it is not in the log'
  if (line.seq !== expected.seq) return `it has seq ${line.seq}`
  try {
    return storedFingerprint(folder, line) === expected.fingerprint ? undefined : 'its content is not what was given'
  } catch (error) {
    return (error as Error).message
  }
}
