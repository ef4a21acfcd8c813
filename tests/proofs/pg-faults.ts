import { existsSync } from 'node:fs'
import type { FigureContext, FigureResult } from '../../scripts/figure/figure.ts'
import { runInOwnMounts } from './writer/own-mounts.ts'

export const name = 'pg-faults'
export const claim =
  'On PostgreSQL with two standbys under Patroni, no fault of a server, a connection, the pooler or a disk loses an acknowledged line or lets a stale writer in, and sessions go on by themselves. Needs root.'
export const sizes = { ci: { faults: 6, takeovers: 1 }, full: { faults: 300, takeovers: 60 } }

/**
 * Processes append to sessions, through a pooler and through a router that follows the primary, while servers, standbys, connections,
 * pooler and disks fail. What they were told is compared with the logs in the database. Broken histories must be found.
 */
export async function run(context: FigureContext): Promise<FigureResult> {
  const missing = programs.filter((program) => !existsSync(program))
  if (missing.length > 0) throw new Error(`Not installed: ${missing.join(', ')}`)
  return runInOwnMounts(context, new URL('./pg-faults/inject.ts', import.meta.url), { ownProcesses: true })
}

const programs = ['/usr/lib/postgresql/15/bin/postgres', '/usr/bin/patroni', '/usr/bin/etcd', '/usr/sbin/pgbouncer']
