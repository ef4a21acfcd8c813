import { existsSync } from 'node:fs'
import type { FigureContext, FigureResult } from '../../scripts/figure/figure.ts'
import { runInOwnMounts } from './writer/own-mounts.ts'

export const name = 'cluster-faults'
export const claim =
  'In a cluster of three servers, no death, pause or network cut of a server, the database or NATS loses an acknowledged message, runs a tool call twice or lets a stale server write. Runs end, and all clients see each line once. Needs root.'
export const sizes = { ci: { sessions: 60, faults: 6 }, full: { sessions: 200, faults: 300 } }

/** Each machine is a network namespace. What clients were told and what tools did is compared with the logs in the database. */
export async function run(context: FigureContext): Promise<FigureResult> {
  const missing = programs.filter((program) => !existsSync(program))
  if (missing.length > 0) throw new Error(`Not installed: ${missing.join(', ')}`)
  const program = new URL('./cluster-faults/inject.ts', import.meta.url)
  return runInOwnMounts(context, program, { ownProcesses: true, ownNetwork: true })
}

const programs = [
  '/usr/lib/postgresql/15/bin/postgres',
  '/usr/bin/patroni',
  '/usr/bin/etcd',
  '/usr/sbin/nats-server',
  '/usr/sbin/ip',
]
