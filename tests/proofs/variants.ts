import { rmSync } from 'node:fs'
import { join } from 'node:path'
import type { FigureContext, FigureResult } from '../../scripts/figure/figure.ts'
import { WorkspaceSnapshots } from '../../packages/agent/src/workspace/workspace-snapshots.ts'
import { SnapshotStore } from '../../packages/agent/src/workspace/snapshot-store.ts'
import { catchMutant, caughtLine, replaceMember, type Mutant } from './mutants/catch-mutant.ts'
import { playChoice } from './variants/choice.ts'
import { playRun } from './variants/run.ts'

export const name = 'variants'
export const claim =
  'A chosen variant is merged with what the user changed meanwhile, whenever the process is killed: nothing of the user is lost, no copy is left, and the git folder is untouched.'
export const sizes = {
  ci: { choices: 3, kills: 3, runs: 1 },
  full: { choices: 300, kills: 600, runs: 60 },
}

const maxShown = 5
/** Git waits for the disk, so several choices are made at once. */
const atOnce = 3

/** Faults that the proof must find. */
const mutants: Record<string, Mutant> = {
  "the user's files are not looked at before the merge": () =>
    replaceMember(SnapshotStore.prototype, 'take', (original) => takesOnce(original)),
  "a merge drops the user's lines": () =>
    replaceMember(
      SnapshotStore.prototype,
      'merge',
      () =>
        function (this: SnapshotStore, { other }) {
          return this.read(other)
        },
    ),
  "a conflict takes the variant's version": () =>
    replaceMember(
      WorkspaceSnapshots.prototype,
      'restore',
      (original) =>
        function (this: WorkspaceSnapshots, prepared) {
          return original.call(this, prepared, new Map(prepared.conflicts.map(({ path }) => [path, 'take'])))
        },
    ),
  'deleted files of a variant stay': () =>
    replaceMember(
      WorkspaceSnapshots.prototype,
      'restore',
      (original) =>
        function (this: WorkspaceSnapshots, prepared, choices) {
          return original.call(this, { ...prepared, restored: prepared.restored.filter(({ to }) => to) }, choices)
        },
    ),
  'a copy lacks a file': () =>
    replaceMember(
      SnapshotStore.prototype,
      'checkOut',
      (original) =>
        async function (this: SnapshotStore, tree) {
          await original.call(this, tree)
          rmSync(join(this.root, 'link'))
        },
    ),
  'a copy records the files of the folder itself': () =>
    replaceMember(
      SnapshotStore.prototype,
      'workingCopy',
      (original) =>
        function (this: SnapshotStore, root) {
          const copy = original.call(this, root)
          return Object.assign(copy, { take: () => this.take() })
        },
    ),
}

/**
 * Random files, edits of three variants in their copies and edits of the user in the folder; one variant is chosen, and the process
 * that does it is killed. `runs` are whole runs of the command with a scripted model.
 */
export async function run({ size, say, temporaryFolder, random }: FigureContext): Promise<FigureResult> {
  const folder = await temporaryFolder()
  let problems = 0
  let played = 0
  const complain = (about: string, found: readonly string[]): void => {
    for (const problem of found) if (++problems <= maxShown) say(`PROBLEM ${about}: ${problem}`)
  }
  const phases = new Map<string, number>()
  const count = (phase: string): void => void phases.set(phase, (phases.get(phase) ?? 0) + 1)
  const play = async (options: { kill: boolean }): Promise<{ problems: string[]; phase: string }> => {
    const own = randomOf(Math.floor(random() * 2 ** 32))
    return playChoice({ folder: join(folder, `choice-${++played}`), random: own, ...options })
  }
  const { choices, kills, runs } = sizes[size]
  const trials = Array.from({ length: choices + kills }, (_, index) => ({ kill: index >= choices })).values()
  const playTrials = async (): Promise<void> => {
    for (const trial of trials) {
      const { problems: found, phase } = await play(trial)
      complain(trial.kill ? `a choice, killed ${phase}` : 'a choice', found)
      if (trial.kill) count(`choice ${phase}`)
    }
  }
  await Promise.all(Array.from({ length: atOnce }, playTrials))
  for (let index = 0; index < runs; index += 1) {
    const own = randomOf(Math.floor(random() * 2 ** 32))
    const { problems: found, phase } = await playRun({ folder: join(folder, `run-${index}`), random: own })
    count(`run ${phase}`)
    complain('a killed run', found)
  }
  say(`killed: ${[...phases].map(([phase, times]) => `${times} × ${phase}`).join(', ')}`)
  let caught = 0
  for (const [mutant, fault] of Object.entries(mutants)) {
    const found = await catchMutant(fault, () => play({ kill: false }))
    say(caughtLine(mutant, found))
    if (found) caught += 1
  }
  const all = Object.keys(mutants).length
  return {
    ok: problems === 0 && caught === all,
    figures: { choices, kills, runs, problems, mutants_caught: `${caught} of ${all}` },
  }
}

/** A store that never looks again at a folder after the first time. */
function takesOnce(original: SnapshotStore['take']): SnapshotStore['take'] {
  const known = new Map<string, ReturnType<SnapshotStore['take']>>()
  return function (this: SnapshotStore) {
    if (this.root.includes('copies')) return original.call(this)
    const taken = known.get(this.root) ?? original.call(this)
    known.set(this.root, taken)
    return taken
  }
}

/** Numbers that depend on the seed alone. */
function randomOf(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}
