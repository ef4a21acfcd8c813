// Fills the disk around snapshots and restores. Runs in a mount namespace of its own; see ../rewind.ts.
import type { Session } from '@tapetree/session'
import { openFileStore } from '@tapetree/session/stores/file'
import { systemClock } from '@tapetree/session/util/wait'
import { execFileSync } from 'node:child_process'
import { cpSync, globSync, mkdirSync, rmSync, statfsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { rewind } from '../../../packages/agent/src/agent/rewind.ts'
import { WorkspaceSnapshots } from '../../../packages/agent/src/workspace/workspace-snapshots.ts'
import type { FigureResult } from '../../../scripts/figure/figure.ts'
import { runInside, type InsideContext } from '../writer/own-mounts.ts'
import { checkTrial, prepareTrial, type Trial } from './trial.ts'
import { readFiles } from './workspaces.ts'

/** Nothing here needs more pages than this. */
const maxFree = 600

/** A tmpfs that is large when a store opens, and then has as few pages left as wanted. */
class ShrinkingDisk {
  readonly folder: string

  constructor(folder: string) {
    this.folder = folder
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=3g', 'tapetree-rewind', folder])
  }

  fillTo(freePages: number): void {
    const { blocks, bavail, bsize } = statfsSync(this.folder)
    this.#resize(`${(blocks - bavail + freePages) * bsize}`)
  }

  makeRoom(): void {
    this.#resize('3g')
  }

  #resize(size: string): void {
    execFileSync('mount', ['-o', `remount,size=${size}`, this.folder])
  }
}

type Work = (place: { session: Session; snapshots: WorkspaceSnapshots }, trial: Trial) => Promise<boolean>

/** Each returns whether there was room enough. */
const works: Record<string, Work> = {
  rewind: async ({ session, snapshots }, { target }) => {
    await rewind({ entryId: target, conflicts: 'take' }, { session, files: snapshots })
    return true
  },
  snapshot: async ({ snapshots }) => {
    await record(snapshots, 'full')
    return snapshots.state.type === 'on' && snapshots.state.problem === undefined
  },
}

async function record(snapshots: WorkspaceSnapshots, callId: string): Promise<void> {
  const access = [{ type: 'tool' as const, name: 'x', readOnly: false }]
  await snapshots.beforeCall({ runId: 'run2', callId, access })
  await snapshots.settled()
}

async function fillEverywhere({ folder, size, say, random }: InsideContext): Promise<FigureResult> {
  const disk = new ShrinkingDisk(folder)
  const copy = join(folder, 'trial')
  const saved = join(folder, 'saved')
  const trial = await prepareTrial(copy)
  cpSync(copy, saved, { recursive: true, preserveTimestamps: true, verbatimSymlinks: true })
  const problems: string[] = []
  let tries = 0
  for (const [kind, work] of Object.entries(works)) {
    let failed = 0
    const step = size === 'ci' ? 3 : 1
    for (let free = Math.floor(random() * step), fits = 0; fits < 2; free += step) {
      rmSync(copy, { recursive: true, force: true })
      cpSync(saved, copy, { recursive: true, preserveTimestamps: true, verbatimSymlinks: true })
      const name = `${kind} with ${free} free pages`
      const hasRoom = await tryOnce({ disk, copy, trial, kind, work, free, complain: (each) => problems.push(each) })
      tries += 1
      failed += Number(!hasRoom)
      fits = hasRoom ? fits + 1 : 0
      if (free > maxFree) problems.push(`${name}: it still fails`)
      if (free > maxFree) break
    }
    if (failed === 0) problems.push(`${kind}: the disk was never full`)
    say(`disk full during a ${kind}: failed ${failed} times`)
  }
  for (const problem of problems.slice(0, 5)) say(`PROBLEM ${problem}`)
  return { ok: problems.length === 0, figures: { full_disks: tries, problems: problems.length } }
}

async function tryOnce(options: {
  disk: ShrinkingDisk
  copy: string
  trial: Trial
  kind: string
  work: Work
  free: number
  complain: (problem: string) => void
}): Promise<boolean> {
  const { disk, copy, trial, kind, work, free, complain } = options
  const name = `${kind} with ${free} free pages`
  const workspace = join(copy, 'work')
  const store = openFileStore({ folder: join(copy, 'sessions') })
  const session = await store.open(trial.sessionId)
  const storesFolder = join(copy, 'stores')
  const snapshots = new WorkspaceSnapshots({ session, folder: workspace, storesFolder, clock: systemClock })
  const { path } = await snapshots.store()
  if (kind === 'snapshot') {
    // Nothing is recorded if there is too little space at first.
    await record(snapshots, 'first')
    mkdirSync(join(workspace, 'many'))
    for (let count = 0; count < 5; count += 1)
      writeFileSync(join(workspace, 'many', `file${count}`), Buffer.alloc(9000, `${free} ${count} `))
  }
  const from = { ...trial.from, files: readFiles(workspace) }
  disk.fillTo(free)
  let hasRoom = false
  try {
    hasRoom = await work({ session, snapshots }, trial)
  } catch {
    // Told; what counts is what is left.
  }
  const left = globSync(join(path, 'git', 'objects', 'pack', 'tmp_*'))
  if (left.length > 0) complain(`${name}: ${left.length} temporary packs are left`)
  disk.makeRoom()
  await snapshots.settled()
  await session.close().catch(() => undefined)
  await checkTrial(copy, { ...trial, from }, { name, direction: free % 2 === 0 ? 'finish' : 'undo', complain })
  return hasRoom
}

await runInside(fillEverywhere)
