import { lstatSync } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { isId } from '../../../line/ids.ts'
import type { Row } from './index-db.ts'
import type { Part } from './index-file.ts'
import { logName } from '../log-paths.ts'
import type { Slices } from './slices.ts'

export interface LogStat {
  id: string
  inode: number
  size: number
  mtimeMs: number
}

export interface ChangedLog {
  file: LogStat
  stored: Row | undefined
}

export interface Comparison {
  changed: ChangedLog[]
  /** Session ids. */
  vanished: string[]
}

export const walkStep = 500

/** Compares the logs in a folder with the stored rows, in batches. */
export async function walk(
  folder: string,
  { part, slices, visit }: { part: Part | undefined; slices: Slices; visit: (unchanged: Row) => void },
): Promise<Comparison> {
  const ids = await sessionIdsIn(folder)
  const changed: ChangedLog[] = []
  const vanished: string[] = []
  // Ids mostly sort by time: going newest first fills a page early and skips the rest.
  let through = afterAllIds
  let to = ids.length
  do {
    const from = Math.max(0, to - walkStep)
    const after = ids[from - 1] ?? ''
    const rows = part?.db.rowsBetween(part.source, { after, through }) ?? new Map<string, Row>()
    for (const id of ids.slice(from, to)) {
      const file = statLog(folder, id)
      if (!file) continue
      const stored = rows.get(id)
      rows.delete(id)
      if (stored && isSameFile(stored, file)) visit(stored)
      else changed.push({ file, stored })
    }
    vanished.push(...rows.keys())
    through = after
    to = from
    await slices.pause()
  } while (to > 0)
  return { changed, vanished }
}

/** Compares with the rows cached in this process; only rows of changed logs are queried. */
export async function compare(
  folder: string,
  { part, slices, files }: { part: Part; slices: Slices; files: ReadonlyMap<string, LogStat> },
): Promise<Comparison> {
  const ids = await sessionIdsIn(folder)
  const changed: ChangedLog[] = []
  const present: string[] = []
  for (const [index, id] of ids.entries()) {
    if (index % walkStep === 0) await slices.pause()
    const file = statLog(folder, id)
    if (!file) continue
    const known = files.get(id)
    if (known) present.push(id)
    if (!known || !isSameFile(known, file)) changed.push({ file, stored: part.db.row(part.source, id) })
  }
  if (present.length === files.size) return { changed, vanished: [] }
  return { changed, vanished: [...new Set(files.keys()).difference(new Set(present))] }
}

export function statLog(folder: string, id: string): LogStat | undefined {
  try {
    const stats = lstatSync(`${folder}/${id}/${logName}`)
    return stats.isFile() ? { id, inode: stats.ino, size: stats.size, mtimeMs: stats.mtimeMs } : undefined
  } catch {
    return undefined // not a session, or gone
  }
}

/** Whether a row is about a log that is still in the folder. */
export function isPresentIn(folder: string): (row: Row) => boolean {
  return ({ id, inode }) => statLog(folder, id)?.inode === inode
}

export function statOf({ id, inode, size, mtimeMs }: Row): LogStat {
  return { id, inode, size, mtimeMs }
}

/** Sorts after every id. */
const afterAllIds = '~'

async function sessionIdsIn(folder: string): Promise<string[]> {
  try {
    return (await readdir(folder)).filter(isId).sort()
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return []
    throw error
  }
}

function isSameFile(stored: LogStat, file: LogStat): boolean {
  return stored.inode === file.inode && stored.size === file.size && stored.mtimeMs === file.mtimeMs
}
