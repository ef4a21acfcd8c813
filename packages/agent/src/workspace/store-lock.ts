import { withFileLock } from '@tapetree/session/stores/file'

/** Taking, packing or deleting the snapshots of a large folder may take minutes. */
const patienceMs = 3 * 60_000

/** Runs work while no other process works on the same part of a store of snapshots. */
export function withStoreLock<T>(path: string, work: () => Promise<T>): Promise<T> {
  return withFileLock(path, work, { patienceMs })
}
