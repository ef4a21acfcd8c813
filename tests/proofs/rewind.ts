import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { FigureContext, FigureResult } from '../../scripts/figure/figure.ts'
import { editDuringRestores } from './rewind/editors.ts'
import { catchMutant, caughtLine, type Caught, type Mutant } from './mutants/catch-mutant.ts'
import { playHistory, type PlayedHistory } from './rewind/history.ts'
import { killEverywhere, killWithFault } from './rewind/kills.ts'
import { historyMutants, killMutants, pruneMutants } from './rewind/mutants.ts'
import { randomOf, type Random } from './rewind/mutate.ts'
import { playInProcesses } from './rewind/players.ts'
import { pruneBetweenSnapshots, pruneMoments } from './rewind/prune.ts'
import { Shells } from './rewind/shells.ts'
import { canaryOf, Templates, workspaceKinds } from './rewind/workspaces.ts'
import { runInOwnMounts } from './writer/own-mounts.ts'

export const name = 'rewind'
export const claim =
  'The files of a workspace come back byte for byte at any entry, the user keeps every change of their own, and no git folder is touched.'
export const sizes = {
  ci: { histories: 200, saves: 1000, every_step: 5, prunes: 6 },
  full: { histories: 20_000, saves: 100_000, every_step: 1, prunes: 600 },
}

const maxShown = 5

/**
 * Random histories of edits, commands, renames, links and nested repositories; saves of another program during restores; kills at
 * every step; full disks; and a user who prunes objects. Faults that are added must be found. `REWIND_CASE` plays the history of one
 * seed, `REWIND_FROM` goes on with the histories of an earlier run that has played so many of them, and `REWIND_MUTANTS` only looks for the faults.
 */
export async function run(context: FigureContext): Promise<FigureResult> {
  const { size, seed, say, temporaryFolder } = context
  const folder = await temporaryFolder()
  let problems = 0
  const complain = (problem: string): void => {
    if (++problems <= maxShown) say(`PROBLEM ${problem}`)
  }
  const chosen = process.env['REWIND_CASE']
  if (chosen !== undefined) {
    const played = await playAll({ folder, seeds: [Number(chosen)], complain, say })
    return { ok: problems === 0, figures: { ...played, problems } }
  }
  const templates = join(folder, 'mutants')
  if (process.env['REWIND_MUTANTS'] !== undefined) {
    const mutants = await catchMutants({ folder: templates, seed, say })
    return { ok: mutants.missed === 0, figures: mutants }
  }
  const seeds = Array.from({ length: sizes[size].histories }, (_, index) => seed * 1_000_003 + index)
  const first = process.env['REWIND_FROM']
  if (first !== undefined) {
    const played = await playAll({ folder, seeds: seeds.slice(Number(first)), complain, say })
    return { ok: problems === 0, figures: { ...played, problems } }
  }
  const { saves, every_step: every } = sizes[size]
  const edited = await editDuringRestores({ folder: join(folder, 'editors'), saves, seed })
  for (const each of edited.lost) complain(`a save was lost: ${each}`)
  say(`${saves} saves during ${edited.restores} restores, ${edited.lost.length} lost`)
  const kills = await killEverywhere({ folder: join(folder, 'kills'), every, seed, complain })
  say(`killed: ${JSON.stringify(kills)}`)
  const prunes = await prune({ folder: join(folder, 'prunes'), count: sizes[size].prunes, seed, complain })
  const full = await runInOwnMounts(context, new URL('./rewind/full-disk.ts', import.meta.url))
  if (!full.ok) complain('a full disk was not survived')
  say(`${prunes} times pruned; full disks: ${JSON.stringify(full.figures)}`)
  const mutants = await catchMutants({ folder: templates, seed, say })
  if (mutants.missed > 0) complain(`${mutants.missed} added faults were not found`)
  // Last, because they take hours at full size.
  const histories = await playAll({ folder, seeds, complain, say })
  const figures = {
    ...histories,
    saves,
    restores_beside_editor: edited.restores,
    lost: edited.lost.length,
    ...kills,
    prunes,
  }
  return { ok: problems === 0, figures: { ...figures, ...full.figures, ...mutants, problems } }
}

async function prune(options: {
  folder: string
  count: number
  seed: number
  complain: (problem: string) => void
}): Promise<number> {
  const { folder, count, seed, complain } = options
  const templates = Templates.make(join(folder, 'templates'))
  for (let index = 0; index < count; index += 1) {
    const moment = pruneMoments[index % pruneMoments.length] ?? 'killed'
    const random = randomOf(seed * 1_000_003 + index)
    const problem = await pruneBetweenSnapshots({ moment, folder: join(folder, String(index)), templates, random })
    if (problem !== undefined) complain(`pruned when ${moment}, number ${index}: ${problem}`)
  }
  return count
}

/** Adds one fault after the other and plays until one shows. */
async function catchMutants(options: {
  folder: string
  seed: number
  say: (line: string) => void
}): Promise<{ mutants: number; missed: number }> {
  const { folder, seed, say } = options
  const templates = Templates.make(join(folder, 'templates'))
  let next = seed * 1_000_003
  const counts = { mutants: 0, missed: 0 }
  const count = (fault: string, caught: Caught | undefined): void => {
    counts.mutants += 1
    counts.missed += Number(!caught)
    say(caughtLine(fault, caught))
  }
  const look = async (fault: string, mutant: Mutant, play: (place: Place) => Promise<string | undefined>) => {
    const caught = await catchMutant(mutant, async () => {
      const random = randomOf(next++)
      const problem = await play({ folder: join(folder, String(next)), templates, random })
      return { problems: problem === undefined ? [] : [problem.split('\n', 1)[0] ?? ''] }
    })
    count(fault, caught)
  }
  const shells = new Shells(join(folder, 'shells'))
  for (const [fault, { mutant, actions }] of Object.entries(historyMutants))
    await look(fault, mutant, async (place) => {
      const kind = workspaceKinds[Math.floor(place.random() * workspaceKinds.length)] ?? 'git'
      return (await shells.during(() => playHistory({ kind, actions, ...place }))).problem
    })
  shells.end()
  for (const [fault, mutant] of Object.entries(pruneMutants))
    await look(fault, mutant, (place) => pruneBetweenSnapshots({ moment: 'killed', ...place }))
  for (const fault of Object.keys(killMutants)) {
    const problem = await killWithFault(fault, join(folder, `killed ${counts.mutants}`))
    count(fault, problem === undefined ? undefined : { problem, tries: 1 })
  }
  return counts
}

interface Place {
  folder: string
  templates: Templates
  random: Random
}

async function playAll(options: {
  folder: string
  seeds: number[]
  complain: (problem: string) => void
  say: (line: string) => void
}): Promise<Record<string, number>> {
  const { folder, seeds, complain, say } = options
  Templates.make(join(folder, 'templates'))
  const total = { histories: 0, snapshots: 0, restores: 0, files: 0 }
  const onPlayed = (seed: number, { counts, problem }: PlayedHistory): void => {
    total.histories += 1
    for (const figure of ['snapshots', 'restores', 'files'] as const) total[figure] += counts[figure]
    if (problem !== undefined) complain(`in REWIND_CASE=${seed}: ${problem}`)
    if (total.histories % 500 === 0) say(`${total.histories} histories`)
  }
  await playInProcesses(seeds, { folder, onPlayed })
  const hasRun = existsSync(canaryOf(join(folder, 'templates')))
  if (hasRun) complain('a program that a repository names has run')
  return { ...total, programs_run: hasRun ? 1 : 0 }
}
