import { SessionError, type Session, type SessionStore } from '@tapetree/session'
import type { Line } from '@tapetree/session/format'
import type { WorkingCopyRecord } from '@tapetree/session/screen'
import { systemClock, type Clock } from '@tapetree/session/util/wait'
import type { CheckRecord, SnapshotRecord } from '@tapetree/session/view'
import { existsSync } from 'node:fs'
import { mkdir, readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { blobId } from './apply-restore.ts'
import { linesOf } from './follow-log.ts'
import type { ConflictChoice, PlannedFile } from './plan-restore.ts'
import type { FileChange, FileVersion } from './file-versions.ts'
import { SnapshotsOff } from './shadow-git.ts'
import { SnapshotStore, type Snapshot } from './snapshot-store.ts'
import { fillWorkingCopy, removeWorkingCopy, type CopyPlan } from './working-copy.ts'
import { RestoreProblem, WorkspaceSnapshots, type PreparedRestore } from './workspace-snapshots.ts'

export type WorkingCopy = WorkingCopyRecord['workingCopy']

/** Where the working copies of sessions are, and the versions of their files. */
export interface VariantPlaces {
  sessions: SessionStore
  storesFolder: string
  /** Each copy is in a folder with the id of its session, so that the log says everything about it. */
  copiesFolder: string
  clock?: Clock
}

/** A folder in the folder of the copies. */
export interface ListedCopy {
  sessionId: string
  root: string
  /** Absent if its session does not exist, or the copy was never begun. */
  copy?: WorkingCopy
  /** Another process has the session open. */
  isInUse: boolean
}

export interface PreparedChoice {
  copy: WorkingCopy
  /** The files of the variant. */
  result: string
  /** The user's files now. */
  mine: string
  /** The variant's changes that apply as they are, or whose lines merge with those of the user. */
  taken: PlannedFile[]
  merged: PlannedFile[]
  /** The user and the variant changed these in ways that do not merge: the user has to choose. */
  conflicts: PlannedFile[]
  /** A folder of the one is a file of the other. These cannot be taken. */
  blocked: PlannedFile[]
  bases: ReadonlyMap<string, FileVersion | undefined>
}

export interface FinishedChoice {
  changed: string[]
  merged: string[]
  /** The user's version stays. */
  kept: string[]
  /** Someone saved these in the meantime, or a left-out file of the user is there. They stay. */
  skipped: string[]
  keptCopies: { path: string; copy: string }[]
}

/** Makes a working copy for a session, and records it first, so that it is found after a crash. */
export async function createVariant(
  session: Session,
  wanted: {
    places: VariantPlaces
    store: SnapshotStore
    folder: string
    snapshot: Snapshot
    plan: CopyPlan
    variants: NonNullable<WorkingCopy['variants']>
  },
): Promise<WorkingCopy> {
  const { places, store, folder, snapshot, plan, variants } = wanted
  const { tree } = snapshot
  const root = rootOf(places, session.id)
  await mkdir(root, { recursive: true, mode: 0o700 })
  const copy: WorkingCopy = { folder: join(root, store.prefix, '.'), root, copyOf: folder, tree, variants }
  if (session.path !== undefined) await store.addLog(session.path)
  await session.append({ type: 'working_copy', workingCopy: copy })
  await fillWorkingCopy(store, { tree, root, plan })
  await appendSnapshot(session, { ...snapshot, when: 'start', by: 'outside' })
  return copy
}

/** Records the files of a working copy as they are now. */
export async function recordVariant(
  session: Session,
  { places, by }: { places: VariantPlaces; by: SnapshotRecord['snapshot']['by'] },
): Promise<string> {
  const copy = requireCopy(session)
  const taken = await (await storeOf(copy, places)).workingCopy(copy.root).take()
  if (taken.tree !== session.lastSnapshot?.tree) await appendSnapshot(session, { ...taken, when: 'after', by })
  return taken.tree
}

/** The working copies on this machine. */
export async function listCopies({ sessions, copiesFolder }: VariantPlaces): Promise<ListedCopy[]> {
  const listed: ListedCopy[] = []
  const names = await readdir(copiesFolder).catch(() => [])
  for (const sessionId of names.toSorted((a, b) => (a < b ? -1 : 1))) {
    const root = join(copiesFolder, sessionId)
    const session = await sessions.open(sessionId).catch((error: unknown) => {
      if (error instanceof SessionError) return undefined
      throw error
    })
    const copy = session?.workingCopy
    const isOurs = copy?.root === root
    listed.push({
      sessionId,
      root,
      ...(isOurs && { copy }),
      isInUse: session?.readOnlyReason !== undefined,
    })
    await session?.close()
  }
  return listed
}

/**
 * Says what choosing a variant does to the folder that was copied. Changes nothing there. Throws `RestoreProblem` if the
 * session has no copy that could be chosen.
 */
export async function prepareChoice(session: Session, places: VariantPlaces): Promise<PreparedChoice> {
  const copy = session.workingCopy
  if (!copy || copy.outcome === 'discarded')
    throw new RestoreProblem('not-recorded', 'This session does not work in a copy that could be chosen.')
  const store = await storeOf(copy, places)
  const result = copy.result ?? (await resultOf(session, store.workingCopy(copy.root)))
  const { tree: mine } = await store.take()
  const own = new Map((await store.diff(copy.tree, mine)).map((change) => [change.path, change]))
  const present = [...own.values()].flatMap(({ path, to }) => (to ? [path] : []))
  const bases = new Map<string, FileVersion | undefined>()
  const prepared: PreparedChoice = { copy, result, mine, taken: [], merged: [], conflicts: [], blocked: [], bases }
  for (const change of await store.diff(copy.tree, result)) {
    const { path, from: base, to } = change
    const mineNow = own.has(path) ? own.get(path)?.to : base
    const file = { path, ...(mineNow && { from: mineNow }), ...(to && { to }) }
    bases.set(path, base)
    if (to && present.some((each) => each.startsWith(`${path}/`) || path.startsWith(`${each}/`)))
      prepared.blocked.push({ ...file, action: 'conflict' })
    else if (!own.has(path)) prepared.taken.push({ ...file, action: 'restore' })
    else if (isSame(mineNow, to)) continue
    else if (await canMerge(store, { mine: mineNow, base, to })) prepared.merged.push({ ...file, action: 'conflict' })
    else prepared.conflicts.push({ ...file, action: 'conflict' })
  }
  return prepared
}

/**
 * Brings the files of a variant into the folder that was copied. `choices` decides on conflicts; one without a choice
 * keeps the user's version. The session works in that folder from then on. The copy remains until it is removed.
 */
export async function applyChoice(
  session: Session,
  prepared: PreparedChoice,
  { places, choices = new Map() }: { places: VariantPlaces; choices?: ReadonlyMap<string, ConflictChoice> },
): Promise<FinishedChoice> {
  const { copy, result } = prepared
  if (copy.outcome === undefined)
    await session.append({ type: 'working_copy', workingCopy: { ...copy, outcome: 'chosen', result } })
  const total: FinishedChoice = { changed: [], merged: [], kept: [], skipped: [], keptCopies: [] }
  let plan = prepared
  for (let attempt = 1; ; attempt += 1) {
    await recordReturn(session, plan)
    const snapshots = mainSnapshots(session, { copy, places })
    const decided = new Map<string, ConflictChoice>(
      plan.conflicts.map(({ path }) => [path, choices.get(path) ?? 'keep']),
    )
    for (const { path } of plan.blocked) decided.set(path, 'keep')
    for (const { path } of plan.merged) decided.set(path, 'merge')
    const done = await snapshots.restore(restoreOf(plan), decided)
    const skipped = new Set(done.skipped)
    const merged = new Set(plan.merged.map(({ path }) => path))
    total.changed.push(...done.changed.filter((path) => !merged.has(path)))
    total.merged.push(...done.changed.filter((path) => merged.has(path)))
    total.keptCopies.push(...done.keptCopies)
    total.kept = [...new Set([...total.kept, ...done.conflicts])]
    if (skipped.size === 0 || attempt === maxAttempts) {
      const store = await snapshots.store()
      const wanted = await store.diff(copy.tree, result)
      total.skipped = await different(
        store,
        wanted.filter(({ path }) => skipped.has(path)),
      )
      return total
    }
    // Someone saved files in between. Their new versions are merged or kept like the others.
    plan = only(await prepareChoice(session, places), skipped)
  }
}

/**
 * Completes a choice that was interrupted by a crash. Returns undefined if the choice was completed before; `prepare`
 * means that it has to be made again, because no file was touched yet.
 */
export async function resumeChoice(
  session: Session,
  places: VariantPlaces,
): Promise<'complete' | 'prepare' | { conflicts: string[] }> {
  const { workingCopy: copy } = session
  if (copy?.outcome !== 'chosen') return 'prepare'
  if (session.openRestore) {
    const { conflicts } = await mainSnapshots(session, { copy, places }).resumeRestore('finish')
    return { conflicts }
  }
  const since = await linesSinceChoice(session)
  return since.some((line) => line.type === 'restore' && line.restore.phase === 'end') ? 'complete' : 'prepare'
}

/**
 * Removes a working copy. Its last files are recorded first, so that the store still has them. Of a copy that was not
 * chosen, the log says that it was discarded.
 */
export async function removeCopy(session: Session, places: VariantPlaces): Promise<void> {
  const copy = session.workingCopy
  const root = rootOf(places, session.id)
  const store = copy?.root === root && existsSync(copy.copyOf) ? await unlessOff(storeOf(copy, places)) : undefined
  if (copy && copy.outcome === undefined) {
    const hasFiles = store !== undefined && session.lastSnapshot !== undefined && existsSync(copy.folder)
    const result = hasFiles ? await unlessOff(recordVariant(session, { places, by: 'outside' })) : undefined
    const closed: WorkingCopy = { ...copy, outcome: 'discarded', ...(result !== undefined && { result }) }
    await session.append({ type: 'working_copy', workingCopy: closed })
  }
  await removeWorkingCopy(store, root)
}

/** A copy can be removed although its folder can have no snapshots any more. */
function unlessOff<T>(work: Promise<T>): Promise<T | undefined> {
  return work.catch((error: unknown) => {
    if (error instanceof SnapshotsOff) return undefined
    throw error
  })
}

/** The same for a copy whose session does not exist. */
export async function removeOrphan(sessionId: string, places: VariantPlaces): Promise<void> {
  await removeWorkingCopy(undefined, rootOf(places, sessionId))
}

/** The newest result of a command that judged the files. */
export async function lastCheck(session: Session): Promise<CheckRecord['check'] | undefined> {
  let found: CheckRecord['check'] | undefined
  for await (const line of linesOf(session)) if (line.type === 'check') found = line.check
  return found
}

const maxAttempts = 4

function rootOf({ copiesFolder }: VariantPlaces, sessionId: string): string {
  return join(copiesFolder, sessionId)
}

function requireCopy({ workingCopy: copy }: Session): WorkingCopy {
  if (copy && copy.outcome === undefined) return copy
  throw new RestoreProblem('not-recorded', 'This session does not work in a copy of its folder.')
}

async function storeOf(
  { copyOf }: WorkingCopy,
  { storesFolder, clock = systemClock }: VariantPlaces,
): Promise<SnapshotStore> {
  return SnapshotStore.open({ folder: copyOf, storesFolder, clock, isForOldSnapshots: true })
}

function mainSnapshots(
  session: Session,
  { copy, places }: { copy: WorkingCopy; places: VariantPlaces },
): WorkspaceSnapshots {
  const { storesFolder, clock = systemClock } = places
  return new WorkspaceSnapshots({ session, folder: copy.copyOf, storesFolder, clock })
}

/** The files of the copy now, without what the check changed. */
async function resultOf(session: Session, store: SnapshotStore): Promise<string> {
  const { tree: now } = await store.take()
  const check = await lastCheck(session)
  if (check?.tree === undefined || check.treeAfter === undefined) return now
  const [byCheck = [], since = []] = await store.diffs([
    { from: check.tree, to: check.treeAfter },
    { from: check.treeAfter, to: now },
  ])
  const touched = new Set(since.map(({ path }) => path))
  const reverted = byCheck.filter(({ path }) => !touched.has(path))
  return reverted.length === 0 ? now : store.withFiles(now, new Map(reverted.map(({ path, from }) => [path, from])))
}

/**
 * The session returns to the folder that was copied. Its files there differ from the copy's, first by what the agent did
 * in the copy, then by what the user did meanwhile: a later undo can tell them apart.
 */
async function recordReturn(session: Session, { copy, mine }: PreparedChoice): Promise<void> {
  const since = await linesSinceChoice(session)
  const hasReturned = since.some((line) => line.type === 'snapshot')
  const steps = [
    ...(hasReturned ? [] : [{ tree: copy.tree, by: 'agent' as const }]),
    { tree: mine, by: 'outside' as const },
  ]
  for (const { tree, by } of steps) {
    const { lastSnapshot: last } = session
    if (last?.tree === tree) continue
    const counts = { added: 0, changed: 0, removed: 0, durationMs: 0 }
    await session.append({
      type: 'snapshot',
      snapshot: { when: 'restore', by, tree, ...(last && { previous: last.tree }), ...counts },
    })
  }
}

async function appendSnapshot(
  session: Session,
  { when, by, ...taken }: Snapshot & Pick<SnapshotRecord['snapshot'], 'when' | 'by'>,
): Promise<void> {
  const { tree, added, changed, removed, leftOut, leftOutCount, durationMs } = taken
  const previous = session.lastSnapshot?.tree
  await session.append({
    type: 'snapshot',
    snapshot: {
      when,
      by,
      tree,
      ...(previous !== undefined && { previous }),
      added,
      changed,
      removed,
      ...(leftOutCount > 0 && { leftOut, leftOutCount }),
      durationMs,
    },
  })
}

function restoreOf({ taken, merged, conflicts, blocked, mine, result, bases }: PreparedChoice): PreparedRestore {
  return { restored: taken, kept: [], conflicts: [...merged, ...conflicts, ...blocked], from: mine, to: result, bases }
}

function only(plan: PreparedChoice, paths: ReadonlySet<string>): PreparedChoice {
  const wanted = (files: PlannedFile[]): PlannedFile[] => files.filter(({ path }) => paths.has(path))
  const { taken, merged, conflicts, blocked } = plan
  return {
    ...plan,
    taken: wanted(taken),
    merged: wanted(merged),
    conflicts: wanted(conflicts),
    blocked: wanted(blocked),
  }
}

/** Those whose file is not what is wanted. */
async function different(store: SnapshotStore, changes: readonly FileChange[]): Promise<string[]> {
  const found: string[] = []
  for (const { path, to } of changes) {
    const bytes = await readFile(join(store.root, path)).catch(() => undefined)
    const isThere = to && bytes ? blobId(bytes, to.id) === to.id : !to && !bytes
    if (!isThere) found.push(path)
  }
  return found
}

async function canMerge(
  store: SnapshotStore,
  { mine, base, to }: { mine: FileVersion | undefined; base: FileVersion | undefined; to: FileVersion | undefined },
): Promise<boolean> {
  if (!mine || !base || !to || [mine, base, to].some(({ mode }) => mode === 'link')) return false
  if (mine.id === base.id || to.id === base.id) return true
  return (await store.merge({ current: mine.id, base: base.id, other: to.id })) !== undefined
}

function isSame(a: FileVersion | undefined, b: FileVersion | undefined): boolean {
  return a?.id === b?.id && a?.mode === b?.mode
}

async function linesSinceChoice(session: Session): Promise<Line[]> {
  let since: Line[] = []
  for await (const line of linesOf(session)) {
    if (line.type === 'working_copy') since = []
    else since.push(line)
  }
  return since
}
