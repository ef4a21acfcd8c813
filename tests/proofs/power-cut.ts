import type { FigureContext, FigureResult } from '../../scripts/figure/figure.ts'
import { runInOwnMounts } from './writer/own-mounts.ts'

export const name = 'power-cut'
export const claim = 'Acknowledged data survives a power cut: a real file system is cut at random moments. Needs root.'
export const sizes = { ci: { cuts: 3 }, full: { cuts: 200 } }

/** The power of a disk is cut under a writer, the disk is mounted again, and the next writer goes on with what is there. */
export async function run(context: FigureContext): Promise<FigureResult> {
  return runInOwnMounts(context, new URL('./power-cut/cuts.ts', import.meta.url))
}
