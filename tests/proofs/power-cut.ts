import type { FigureContext, FigureResult } from '../../scripts/figure/figure.ts'
import { missingPostgres } from '../../packages/session/src/testing/postgres-server.ts'
import { runInOwnMounts } from './writer/own-mounts.ts'

export const name = 'power-cut'
export const claim =
  'Acknowledged data survives a power cut: real file systems are cut at random moments, under files and under PostgreSQL with two standbys. Needs root.'
export const sizes = { ci: { cuts: 3, postgresCuts: 1 }, full: { cuts: 200, postgresCuts: 50 } }

/**
 * The power of a disk is cut under a writer, the disk is mounted again, and the next writer goes on with what is there. Then the same with a
 * PostgreSQL server and its standbys, whose disks are cut at the same moment.
 */
export async function run(context: FigureContext): Promise<FigureResult> {
  const files = await runInOwnMounts(context, new URL('./power-cut/cuts.ts', import.meta.url))
  if (!files.ok) return files
  if (missingPostgres !== undefined) throw new Error(missingPostgres)
  const program = new URL('./power-cut/postgres-cuts.ts', import.meta.url)
  const postgres = await runInOwnMounts(context, program, { ownProcesses: true })
  const figures = Object.entries(postgres.figures).map(([figure, value]) => [`postgres_${figure}`, value] as const)
  return { ok: postgres.ok, figures: { ...files.figures, ...Object.fromEntries(figures) } }
}
