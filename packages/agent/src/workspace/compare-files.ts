import type { Session } from '@tapetree/session'
import type { Line } from '@tapetree/session/format'
import { compareEntries, type ComparedFiles, type Comparison, type FileDiff } from '@tapetree/session/screen'
import { messageOf } from '../util/message-of.ts'
import { FileHistory } from './file-history.ts'
import type { FileChange } from './file-versions.ts'
import { linesOf } from './follow-log.ts'
import { SnapshotStore } from './snapshot-store.ts'

export interface CompareOptions {
  /** Entries. */
  left: string
  right: string
  /** Absent: the files are not compared. */
  files?: {
    /** The workspace. */
    folder: string
    storesFolder: string
    /** With the diffs: of one path, or of all. */
    diff?: { path?: string }
  }
}

const maxFiles = 1000
const maxPatchBytes = 1024 * 1024

/** Compares two entries of a session and the files at each. Reads the whole log. */
export async function compareSession(
  session: Session,
  { left, right, files: wanted }: CompareOptions,
): Promise<Comparison> {
  const lines: Line[] = []
  const history = new FileHistory()
  for await (const line of linesOf(session)) {
    lines.push(line)
    history.apply(line)
  }
  const comparison = compareEntries(lines, { left, right, labels: session.getLabels() })
  if (!wanted) return comparison
  const [from, to] = [history.at(left)?.tree, history.at(right)?.tree]
  const files =
    from === undefined || to === undefined
      ? none('The files at one of the two entries were not recorded.')
      : await compareTrees({ from, to, ...wanted }).catch((error: unknown) => none(messageOf(error)))
  return { ...comparison, files }
}

function none(problem: string): ComparedFiles {
  return { problem, changes: [], changedCount: 0, addedLines: 0, removedLines: 0 }
}

async function compareTrees({
  from,
  to,
  folder,
  storesFolder,
  diff,
}: NonNullable<CompareOptions['files']> & { from: string; to: string }): Promise<ComparedFiles> {
  if (from === to) return { changes: [], changedCount: 0, addedLines: 0, removedLines: 0 }
  const store = await SnapshotStore.open({ folder, storesFolder, isForOldSnapshots: true })
  if (!(await store.has(from)) || !(await store.has(to)))
    return none('The files at one of the two entries are no longer kept.')
  const all = await store.diff(from, to)
  const counts = await store.lineCounts(from, to)
  const wanted = diff?.path === undefined ? all : all.filter(({ path }) => store.local(path) === diff.path)
  const shown = wanted.slice(0, maxFiles)
  const changes = shown.map((change): FileDiff => {
    const count = counts.get(change.path)
    return {
      path: store.local(change.path),
      change: change.from ? (change.to ? 'changed' : 'removed') : 'added',
      addedLines: count?.added ?? 0,
      removedLines: count?.removed ?? 0,
      isBinary: count === undefined,
    }
  })
  const sum = (side: 'added' | 'removed'): number =>
    [...counts.values()].reduce((total, count) => total + (count?.[side] ?? 0), 0)
  return {
    changes: diff ? await withPatches(changes, { store, from, to, files: shown }) : changes,
    changedCount: all.length,
    addedLines: sum('added'),
    removedLines: sum('removed'),
  }
}

async function withPatches(
  changes: readonly FileDiff[],
  { store, from, to, files }: { store: SnapshotStore; from: string; to: string; files: readonly FileChange[] },
): Promise<FileDiff[]> {
  if (files.length === 0) return []
  const paths = files.map(({ path }) => path)
  const { patch, isCut } = await store.patch(from, to, { paths, maxBytes: maxPatchBytes })
  // No line of a file begins like this: each has a sign in front.
  const parts = patch.split(/^(?=diff --git )/m)
  return changes.map((change, index) => {
    // A file that became a link, or the other way round, has two parts.
    const { from: before, to: after } = files[index] ?? {}
    const count = before && after && (before.mode === 'link') !== (after.mode === 'link') ? 2 : 1
    const own = parts.splice(0, count)
    const isIncomplete = isCut && parts.length === 0
    return { ...change, patch: own.join(''), ...(isIncomplete && { isCut: true as const }) }
  })
}
