import type { FigureContext, FigureResult } from '../../scripts/figure/figure.ts'
import { runInOwnMounts } from './writer/own-mounts.ts'

export const name = 'peers'

/** What the best of today lose, tried with `tapetree` as a user would, and the table of what happens. */
export async function run(context: FigureContext): Promise<FigureResult> {
  return runInOwnMounts(context, new URL('../peers/try-all.ts', import.meta.url))
}
