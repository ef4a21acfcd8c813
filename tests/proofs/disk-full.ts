import type { FigureContext, FigureResult } from '../../scripts/figure/figure.ts'
import { runInOwnMounts } from './writer/own-mounts.ts'

export const name = 'disk-full'
export const claim = 'A full disk loses nothing: the session reports it and continues when there is room.'
export const sizes = { ci: { rounds: 1 }, full: { rounds: 10 } }

/** A tmpfs of 8 MB is filled up around everything that writes, to every number of free pages; then there is room again. */
export async function run(context: FigureContext): Promise<FigureResult> {
  return runInOwnMounts(context, new URL('./disk-full/fill.ts', import.meta.url))
}
