import { existsSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import type { FigureContext, FigureResult } from '../../scripts/figure/figure.ts'
import { editDuringRestores } from './rewind/editors.ts'
import { playHistory } from './rewind/history.ts'
import { killEverywhere } from './rewind/kills.ts'
import { canaryOf, Templates, workspaceKinds } from './rewind/workspaces.ts'

export const name = 'rewind'
export const claim =
  'The files of a workspace come back byte for byte at any entry, the user keeps every change of their own, and no git folder is touched.'
export const sizes = {
  ci: { histories: 200, saves: 1000, every_step: 8 },
  full: { histories: 20_000, saves: 100_000, every_step: 1 },
}

const maxShown = 5

/**
 * Random histories of edits, commands, renames, links and nested repositories; saves of another program during restores; and kills at
 * every step. `REWIND_CASE` plays the history of one seed.
 */
export async function run({ size, seed, say, temporaryFolder }: FigureContext): Promise<FigureResult> {
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
  const seeds = Array.from({ length: sizes[size].histories }, (_, index) => seed * 1_000_003 + index)
  const histories = await playAll({ folder, seeds, complain, say })
  const { saves, every_step: every } = sizes[size]
  const edited = await editDuringRestores({ folder: join(folder, 'editors'), saves, seed })
  for (const each of edited.lost) complain(`a save was lost: ${each}`)
  say(`${saves} saves during ${edited.restores} restores, ${edited.lost.length} lost`)
  mkdirSync(join(folder, 'kills'))
  const kills = await killEverywhere({ folder: join(folder, 'kills'), every, complain })
  const figures = { ...histories, saves, restores_beside_editor: edited.restores, lost: edited.lost.length, ...kills }
  return { ok: problems === 0, figures: { ...figures, problems } }
}

/** Git waits for the disk, so several histories run at once. */
const atOnce = 3

async function playAll(options: {
  folder: string
  seeds: number[]
  complain: (problem: string) => void
  say: (line: string) => void
}): Promise<Record<string, number>> {
  const { folder, seeds, complain, say } = options
  mkdirSync(join(folder, 'templates'))
  const templates = new Templates(join(folder, 'templates'))
  const total = { histories: 0, snapshots: 0, restores: 0, files: 0 }
  const rest = seeds.values()
  const play = async (): Promise<void> => {
    for (const seed of rest) {
      const random = randomOf(seed)
      const kind = workspaceKinds[Math.floor(random() * workspaceKinds.length)] ?? 'git'
      const { counts, problem } = await playHistory({ kind, folder: join(folder, String(seed)), templates, random })
      total.histories += 1
      for (const figure of ['snapshots', 'restores', 'files'] as const) total[figure] += counts[figure]
      if (problem !== undefined) complain(`in REWIND_CASE=${seed}: ${problem}`)
      if (total.histories % 500 === 0) say(`${total.histories} histories`)
    }
  }
  await Promise.all(Array.from({ length: atOnce }, play))
  const hasRun = existsSync(canaryOf(join(folder, 'templates')))
  if (hasRun) complain('a program that a repository names has run')
  return { ...total, programs_run: hasRun ? 1 : 0 }
}

/** Numbers that depend on the seed alone. */
function randomOf(seed: number): () => number {
  let state = seed % 2 ** 32
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}
