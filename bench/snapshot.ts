import { memoryStore } from '@tapetree/session'
import { systemClock } from '@tapetree/session/util/wait'
import { readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { SnapshotStore } from '../packages/agent/src/workspace/snapshot-store.ts'
import { WorkspaceSnapshots } from '../packages/agent/src/workspace/workspace-snapshots.ts'
import { compare } from '../scripts/figure/compare.ts'
import type { FigureContext, FigureResult } from '../scripts/figure/figure.ts'
import { median } from '../scripts/figure/percentile.ts'
import { MadeWorkspace } from './snapshot/made-workspace.ts'

export const name = 'snapshot'
export const claim = 'Recording the files of a workspace costs about as much as `git status` in it.'
export const sizes = {
  ci: { files: 20_000, rounds: 5, snapshots: 200, snapshotFiles: 1000 },
  full: { files: 100_000, rounds: 11, snapshots: 200, snapshotFiles: 20_000 },
}

const workspaceSizes = [1000, 20_000, 100_000]
const most = { unchanged: 1.2, ten: 3, first: 50, wait: 3, readingMs: 1, packedMegabytes: 5 }

/** Snapshots and `git status` in the same folder, in turn. The targets are for workspaces of 20,000 files and more. */
export async function run(context: FigureContext): Promise<FigureResult> {
  const { files, rounds, snapshots, snapshotFiles } = sizes[context.size]
  const figures: Record<string, number> = {}
  const largest: Measured[] = []
  for (const count of workspaceSizes.filter((each) => each <= files)) {
    const measured = await measure(context, { files: count, rounds })
    for (const [figure, value] of Object.entries(measured)) figures[`${count / 1000}k_${figure}`] = round(value)
    if (count >= 20_000) largest.push(measured)
  }
  figures['packed_mb'] = round(await packedMegabytes(context, { files: snapshotFiles, snapshots }))
  const ok =
    figures['packed_mb'] <= most.packedMegabytes &&
    largest.every(
      (each) =>
        each.unchanged_ratio <= most.unchanged &&
        each.ten_ratio <= most.ten &&
        each.first_ratio <= most.first &&
        each.wait_ratio <= most.wait &&
        each.reading_ms <= most.readingMs,
    )
  return { ok, figures }
}

interface Measured {
  unchanged_ratio: number
  ten_ratio: number
  thousand_ratio: number
  first_ratio: number
  /** How long a call that may write waits, if someone has changed ten files. */
  wait_ratio: number
  /** The same for a call that only reads. */
  reading_ms: number
}

async function measure(context: FigureContext, size: { files: number; rounds: number }): Promise<Measured> {
  const { say } = context
  const { files, rounds } = size
  const folder = await context.temporaryFolder()
  const workspace = new MadeWorkspace(join(folder, 'work'), files)
  const first = await firstRatio(context, workspace, folder)
  const store = await SnapshotStore.open({ folder: workspace.folder, storesFolder: join(folder, 'stores') })
  await store.take()
  await store.own()
  const label = files.toLocaleString('en-US')
  const ratio = async (changes: number): Promise<number> => {
    const compared = await compare({
      label: `${label} files, ${changes} changed`,
      rounds,
      say,
      bare: () => workspace.status(),
      ours: async () => {
        workspace.change(changes)
        const start = performance.now()
        await store.take()
        return performance.now() - start
      },
    })
    return compared.ratio
  }
  return {
    unchanged_ratio: await ratio(0),
    ten_ratio: await ratio(10),
    thousand_ratio: await ratio(1000),
    first_ratio: first,
    ...(await waits(context, { workspace, folder, rounds })),
  }
}

/** The first snapshot of a store, which borrows the objects of the user's repository. */
async function firstRatio({ say }: FigureContext, workspace: MadeWorkspace, folder: string): Promise<number> {
  const times = { status: [] as number[], first: [] as number[] }
  for (let round = 0; round < 3; round += 1) {
    times.status.push(await timeOf(() => workspace.status()))
    const storesFolder = join(folder, `first${round}`)
    const store = await SnapshotStore.open({ folder: workspace.folder, storesFolder })
    times.first.push(await timeOf(() => store.take()))
    const owning = await timeOf(() => store.own())
    if (round === 0) say(`copying what the first snapshot borrowed took ${owning.toFixed(0)} ms`)
  }
  const [status, first] = [median(times.status), median(times.first)]
  say(`first snapshot: git status ${status.toFixed(0)} ms, ours ${first.toFixed(0)} ms (median of 3)`)
  return first / status
}

async function waits(
  { say }: FigureContext,
  { workspace, folder, rounds }: { workspace: MadeWorkspace; folder: string; rounds: number },
): Promise<Pick<Measured, 'wait_ratio' | 'reading_ms'>> {
  const session = await memoryStore().create({ cwd: workspace.folder })
  const snapshots = new WorkspaceSnapshots({
    session,
    folder: workspace.folder,
    storesFolder: join(folder, 'stores'),
    clock: systemClock,
  })
  snapshots.runStarted({ runId: 'run', entryId: null })
  await snapshots.selfContained()
  let calls = 0
  const waitOf = async (access: Parameters<typeof snapshots.beforeCall>[0]['access']): Promise<number> => {
    workspace.change(10)
    const call = { runId: 'run', callId: `call${++calls}`, access }
    const waited = await timeOf(() => snapshots.beforeCall(call))
    snapshots.afterCall(call)
    await snapshots.settled()
    return waited
  }
  const writing = await compare({
    label: 'a call that may write, after 10 changes',
    rounds,
    say,
    bare: () => workspace.status(),
    ours: () => waitOf([{ type: 'tool', name: 'x', readOnly: false }]),
  })
  const reading: number[] = []
  for (let round = 0; round < rounds; round += 1)
    reading.push(await waitOf([{ type: 'command', command: 'cat a.txt', cwd: workspace.folder }]))
  say(`a call that only reads waits ${median(reading).toFixed(2)} ms`)
  await session.close()
  return { wait_ratio: writing.ratio, reading_ms: median(reading) }
}

/** What many snapshots with ten changed files each add to a packed store. */
async function packedMegabytes(
  context: FigureContext,
  { files, snapshots }: { files: number; snapshots: number },
): Promise<number> {
  const folder = await context.temporaryFolder()
  const workspace = new MadeWorkspace(join(folder, 'work'), files)
  const store = await SnapshotStore.open({ folder: workspace.folder, storesFolder: join(folder, 'stores') })
  await store.take()
  await store.pack()
  const before = bytesBelow(store.path)
  for (let count = 0; count < snapshots; count += 1) {
    workspace.change(10)
    await store.take()
  }
  const loose = bytesBelow(store.path) - before
  const ms = await timeOf(() => store.pack())
  const packed = bytesBelow(store.path) - before
  context.say(
    `${snapshots} snapshots of 10 changes: ${megabytes(loose)} MB, packed ${megabytes(packed)} MB in ${ms.toFixed(0)} ms`,
  )
  return packed / 1e6
}

function bytesBelow(folder: string): number {
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true })
  return entries.reduce(
    (sum, each) => sum + (each.isFile() ? statSync(join(each.parentPath, each.name)).blocks * 512 : 0),
    0,
  )
}

async function timeOf(work: () => unknown): Promise<number> {
  const start = performance.now()
  await work()
  return performance.now() - start
}

function megabytes(bytes: number): string {
  return (bytes / 1e6).toFixed(1)
}

function round(value: number): number {
  return Math.round(value * 100) / 100
}
