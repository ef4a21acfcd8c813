import { existsSync } from 'node:fs'
import type { FigureContext, FigureResult } from '../../scripts/figure/figure.ts'
import { missingNats } from '../../packages/server/src/bus/testing/nats-process.ts'
import { runInOwnMounts } from './writer/own-mounts.ts'

export const name = 'takeover'
export const claim =
  'If a server of a cluster dies with 200 running sessions, another one continues the first of them within 1 s after the end of its lease, and the last within 5 s. If it was only paused, it writes nothing and starts no tool when it wakes up. Needs root.'
export const sizes = { ci: { kills: 3, pauses: 3 }, full: { kills: 20, pauses: 20 } }

/** Two servers on one database take 200 sessions over from each other in turn. The database notes who writes which line. */
export async function run(context: FigureContext): Promise<FigureResult> {
  const postgres = '/usr/lib/postgresql/15/bin/postgres'
  const missing = existsSync(postgres) ? missingNats : `Not installed: ${postgres}`
  if (missing !== undefined) throw new Error(missing)
  return runInOwnMounts(context, new URL('./takeover/take-over.ts', import.meta.url), { ownProcesses: true })
}
