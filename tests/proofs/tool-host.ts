import { existsSync } from 'node:fs'
import type { FigureContext, FigureResult } from '../../scripts/figure/figure.ts'
import { missingNats } from '../../packages/server/src/bus/testing/nats-process.ts'
import { runInOwnMounts } from './writer/own-mounts.ts'

export const name = 'tool-host'
export const claim =
  'The tools of a session work on another machine: whatever fails, each call runs at most once, and its output and exit code are the real ones, also for a server that takes the session over. Only if the tool host itself dies can an outcome be unknown. A hostile server gets nothing beyond what the host allows, and a hostile host disturbs no other session. Needs root.'
export const sizes = {
  ci: { calls: 200, callsBetweenFaults: 0, hostile: 2000 },
  full: { calls: 20_000, callsBetweenFaults: 40, hostile: 50_000 },
}

/** Two servers on one database, two tool hosts, connections that are cut. What ran is compared with what the logs say. */
export async function run(context: FigureContext): Promise<FigureResult> {
  const postgres = '/usr/lib/postgresql/15/bin/postgres'
  const missing = existsSync(postgres) ? missingNats : `Not installed: ${postgres}`
  if (missing !== undefined) throw new Error(missing)
  return runInOwnMounts(context, new URL('./tool-host/trial.ts', import.meta.url), { ownProcesses: true })
}
