import {
  isSnapshotStoreWhole,
  lastRetention,
  listSnapshotStores,
  repairSnapshotStore,
  SnapshotStore,
  type SnapshotStoreInfo,
} from '@tapetree/agent/workspace'
import type { SessionStore } from '@tapetree/session'
import type { Io } from '../command-line/io.ts'
import { openStore } from '../host/open-store.ts'
import type { Places } from '../host/places.ts'
import { retentionText, snapshotLimits } from '../host/retain-snapshots.ts'
import { ok, warning, type Check } from './doctor-checks.ts'

/** Sessions of this folder that are looked at, newest first. */
const maxSessions = 50

/** Whether files of this folder can be recorded, whether those that were recorded can be read, and open restores. */
export async function snapshotChecks(places: Places, { cwd, env, home }: Io): Promise<Check[]> {
  const environment = { ...process.env, ...env, HOME: home }
  const reason = await SnapshotStore.whyOff({ folder: cwd, storesFolder: places.workspaces, environment })
  const stores = await listSnapshotStores(places.workspaces)
  const store = await openStore(places)
  try {
    return [
      reason === undefined
        ? ok('file snapshots', 'The files of this folder can be recorded and put back.')
        : warning('file snapshots', reason, 'What a session changes here cannot be put back.'),
      ...(await storeChecks(stores)),
      ...(await retentionChecks(stores, { places, env, home })),
      ...(await restoreChecks(store, cwd)),
    ]
  } finally {
    await store.close()
  }
}

async function storeChecks(stores: readonly SnapshotStoreInfo[]): Promise<Check[]> {
  const damaged: SnapshotStoreInfo[] = []
  for (const store of stores) if (!(await isSnapshotStoreWhole(store))) damaged.push(store)
  const bytes = stores.reduce((sum, each) => sum + each.bytes, 0)
  if (damaged.length === 0)
    return stores.length === 0
      ? []
      : [ok('snapshot stores', `They use ${(bytes / 1e6).toFixed(1)} MB; none is damaged.`)]
  return damaged.map((store) => ({
    ...warning(
      'snapshot stores',
      `The file snapshots of ${store.folder} are damaged: the newest one cannot be read completely.`,
      'tapetree doctor --fix',
    ),
    mend: async () => {
      await repairSnapshotStore(store)
      return `The next snapshot of ${store.folder} stores every file again.`
    },
  }))
}

/** Whether old snapshots are deleted, and folders whose snapshots use more space than they should. */
async function retentionChecks(
  stores: readonly SnapshotStoreInfo[],
  { places, ...io }: Pick<Io, 'env' | 'home'> & { places: Places },
): Promise<Check[]> {
  if (stores.length === 0) return []
  const limits = await snapshotLimits(io)
  const large = stores.filter(({ bytes }) => bytes > limits.maxBytes)
  const text = retentionText(limits, lastRetention(places.workspaces))
  if (large.length === 0) return [ok('snapshot retention', text)]
  return large.map(({ folder, bytes }) =>
    warning(
      'snapshot retention',
      `The file snapshots of ${folder} use ${(bytes / 1e6).toFixed(0)} MB. ${text}`,
      'tapetree workspace gc',
    ),
  )
}

async function restoreChecks(store: SessionStore, cwd: string): Promise<Check[]> {
  const { sessions } = await store.list({ cwd, limit: maxSessions })
  const checks: Check[] = []
  for (const { id } of sessions) {
    await using session = await store.open(id, { readOnly: true })
    if (session.openRestore)
      checks.push(
        warning(
          'open restore',
          `Putting files back was interrupted in session ${id}.`,
          `tapetree sessions rewind ${id} --interrupted finish`,
        ),
      )
  }
  return checks
}
