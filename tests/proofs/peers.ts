import type { FigureContext, FigureResult } from '../../scripts/figure/figure.ts'
import { installCommand } from '../support/install-command.ts'
import { commandVariable } from '../terminal/command-path.ts'
import { runInOwnMounts } from './writer/own-mounts.ts'

export const name = 'peers'
export const claim = 'Data that other tools lose in a series of experiments is not lost here.'

/** What the best of today lose, tried with an installed `tapetree` as a user would, and the table of what happens. */
export async function run(context: FigureContext): Promise<FigureResult> {
  process.env[commandVariable] = await installCommand(await context.temporaryFolder())
  return runInOwnMounts(context, new URL('../peers/try-all.ts', import.meta.url))
}
