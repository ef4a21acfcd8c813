import { inodeAt, type DiskNode, type DiskState } from '../../../packages/session/src/testing/memory-disk.ts'
import { allPlaces, type Ledger } from './ledger.ts'

/** The sessions whose log, blobs or torn bytes are not all on the disk yet: a crash can find them in more than one way. */
export function touchedSessions(state: DiskState, ledger: Ledger): Set<string> {
  const touched = new Set<string>()
  for (const place of allPlaces) {
    const folder = state.get(inodeAt(state, ledger.folderOf(place)) ?? -1)
    if (folder?.type !== 'folder') continue
    for (const [sessionId, inode] of [...folder.names, ...folder.durable]) {
      if (isTouched(state, state.get(inode))) touched.add(sessionId)
    }
  }
  return touched
}

/** Whether all sessions and their places are on the disk: no crash can then change which of them there are. */
export function areNamesSafe(state: DiskState): boolean {
  for (const node of state.values()) {
    if (node.type === 'folder' && node.pending.some(({ remove, add }) => !isDerived(add?.name ?? remove ?? '')))
      return false
  }
  return true
}

function isTouched(state: DiskState, node: DiskNode | undefined): boolean {
  if (node?.type !== 'folder') return node !== undefined && node.pending.length > 0
  if (node.pending.some(({ remove = '', add }) => !isDerived(add?.name ?? remove))) return true
  return [...node.names, ...node.durable].some(
    ([name, inode]) => !isDerived(name) && isTouched(state, state.get(inode)),
  )
}

function isDerived(name: string): boolean {
  return /^(owner|checkpoint|queue|metadata)\.json/.test(name)
}
