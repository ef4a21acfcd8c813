import { newId, type Cause, type Session } from '@tapetree/session'
import { settledWithin } from '@tapetree/session/util/deadline'
import type { RestoreRecord, SnapshotRecord } from '@tapetree/session/view'
import type { Clock } from '@tapetree/session/util/wait'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { judgeCall } from '../permissions/judge-call.ts'
import { noRules } from '../permissions/rules.ts'
import type { Access } from '../tools/tool.ts'
import { messageOf } from '../util/message-of.ts'
import { applyRestore, cleanStaging, type RestoreResult } from './apply-restore.ts'
import { FileHistory } from './file-history.ts'
import { followLog } from './follow-log.ts'
import { planRestore, type ConflictChoice, type PlannedFile, type RestorePlan } from './plan-restore.ts'
import type { FileVersion } from './file-versions.ts'
import { RewindMoves } from './rewind-moves.ts'
import { SnapshotsOff } from './shadow-git.ts'
import { SnapshotStore, type Snapshot, type TakeOptions } from './snapshot-store.ts'
import { withStoreLock } from './store-lock.ts'

export interface WorkspaceSnapshotsOptions {
  session: Session
  /** The workspace. */
  folder: string
  storesFolder: string
  /** If the workspace is a working copy: the folder that was copied, whose store it shares, and the top of the copy. */
  copyOf?: { folder: string; root: string }
  clock: Clock
  /** Whether a background command runs: what changes then may be its work. */
  hasJobs?: () => Promise<boolean>
  /** Whether the agent is at work. Then no file is put back. */
  isBusy?: () => boolean
  /** For tests: called before each change of a file by a restore. */
  onRestoreStep?: (step: string) => void | Promise<void>
}

export type SnapshotState =
  | { type: 'opening' }
  | {
      type: 'on'
      /** Only at the start and end of a run, because a scan takes long. */
      isSlow: boolean
      /** Why the last snapshot failed. */
      problem?: string
    }
  | { type: 'off'; reason: string }

/** Files were not put back. The message is a sentence. */
export class RestoreProblem extends Error {
  override readonly name = 'RestoreProblem'
  readonly code: 'not-recorded' | 'busy' | 'open-restore' | 'nothing-to-undo' | 'files-missing'

  constructor(code: RestoreProblem['code'], message: string) {
    super(message)
    this.code = code
  }
}

export function requireNoOpenRestore({ openRestore }: Session): void {
  if (openRestore)
    throw new RestoreProblem('open-restore', 'Putting files back was interrupted. Finish or undo that first.')
}

/** What a restore would do. Nothing has changed yet except that the current files were recorded. */
export interface PreparedRestore extends RestorePlan {
  targetId?: string | null
  undoes?: string
  /** The files now, and those that are wanted. */
  from: string
  to: string
  /** Whether the plan has every file that differs. Files that are ignored at the target are not in it. */
  hasAll?: boolean
  /** The last version of each conflicting file that the agent wrote: the base of a merge. */
  bases: ReadonlyMap<string, FileVersion | undefined>
}

export interface FinishedRestore extends RestoreResult {
  restoreId: string
  kept: string[]
  conflicts: string[]
}

/** How long a call waits for the first snapshot. */
const patienceMs = 2000
/** A longer scan is made only at the start and the end of a run. */
const slowMs = 2000

/** What a run tells about the files. */
export type FileRecorder = Pick<WorkspaceSnapshots, 'runStarted' | 'beforeCall' | 'afterCall' | 'caughtUp' | 'runEnded'>

/** Records the files of a session's workspace around the calls that may change them, and puts them back. */
export class WorkspaceSnapshots {
  readonly #options: WorkspaceSnapshotsOptions
  #opened: Promise<SnapshotStore | undefined> | undefined
  #state: SnapshotState = { type: 'opening' }
  /** The snapshots that were begun, one after the other. */
  #last: Promise<unknown> = Promise.resolve()
  #lastTree: string | undefined
  #owning: Promise<void> | undefined
  /** Packing in the background, after runs. */
  #packing: Promise<void> = Promise.resolve()

  constructor(options: WorkspaceSnapshotsOptions) {
    this.#options = options
    this.#lastTree = options.session.lastSnapshot?.tree
  }

  get state(): SnapshotState {
    return this.#state
  }

  /** Records the files at the message that starts a run, in the background. */
  runStarted(run: { runId: string; entryId: string | null }): void {
    const { runId, entryId } = run
    void this.#record({ when: 'start', by: 'others', runId, ...(entryId !== null && { entryId }) })
  }

  /** Records what others changed since the last call, unless the call only reads. */
  async beforeCall({ access, ...call }: CallToRecord & { access: readonly Access[] }): Promise<void> {
    if (this.#isOff || this.#isReading(access)) return
    if (this.#isSlow) return this.caughtUp()
    const stored = Promise.withResolvers<void>()
    const recorded = this.#record({ when: 'before', by: 'others', ...call }, { onStored: stored.resolve })
    // The trees are written while the call works.
    const isReady = Promise.race([stored.promise, recorded])
    // The first snapshot may take long: then the call goes on, and its changes are part of that snapshot.
    if (this.#state.type === 'opening') await settledWithin(isReady, { ms: patienceMs, clock: this.#options.clock })
    else await isReady
  }

  /** Records what the call changed, in the background. `settled` waits for it. */
  afterCall({ access, ...call }: CallToRecord & { access: readonly Access[] }): void {
    if (this.#isOff || this.#isSlow || this.#isReading(access)) return
    void this.#record({ when: 'after', by: 'agent', ...call })
  }

  /** For the runs of a subagent: its changes are recorded here, under ids that cannot be those of a call here. */
  forSubagent(sessionId: string): FileRecorder {
    const inside = <Call extends CallToRecord>(call: Call): Call => ({ ...call, callId: `${sessionId}/${call.callId}` })
    return {
      runStarted: ({ runId }) => this.runStarted({ runId, entryId: null }),
      beforeCall: (call) => this.beforeCall(inside(call)),
      afterCall: (call) => this.afterCall(inside(call)),
      caughtUp: () => this.caughtUp(),
      runEnded: (run) => this.runEnded(run),
    }
  }

  /** Resolves when everything that was begun is recorded. */
  async settled(): Promise<void> {
    await this.#last
  }

  /** The same for a run, which does not wait long for the first snapshot of a large folder. */
  async caughtUp(): Promise<void> {
    if (this.#state.type === 'opening') await settledWithin(this.#last, { ms: patienceMs, clock: this.#options.clock })
    else await this.#last
  }

  /** Records what a run changed, if its calls were not recorded one by one. */
  async runEnded({ runId }: { runId: string }): Promise<void> {
    if (this.#isSlow) await this.#record({ when: 'after', by: 'agent', runId })
    await this.caughtUp()
    if (!this.#isOff) this.#packing = this.#packing.then(() => this.#packIfNeeded())
  }

  /** Resolves when the store depends on nothing in the user's repository, and nothing works in the background. */
  async selfContained(): Promise<void> {
    await this.settled()
    await this.#owning
    await this.#packing
  }

  /** Waits for what is being recorded, but not long: the copying of a large repository continues without it. */
  async close(): Promise<void> {
    await settledWithin(this.selfContained(), { ms: patienceMs, clock: this.#options.clock })
  }

  /** The absolute paths of the files that the last snapshot holds. Undefined if there is none. */
  async heldFiles(): Promise<ReadonlySet<string> | undefined> {
    await this.caughtUp()
    const store = await this.#openOnce().catch(() => undefined)
    // If nothing is recorded any more, the last snapshot may be old.
    if (!store || this.#isOff || this.#lastTree === undefined) return undefined
    return new Set((await store.paths(this.#lastTree)).map((path) => join(store.root, path)))
  }

  /** The store; throws `SnapshotsOff` with the reason if there are no snapshots. */
  async store(): Promise<SnapshotStore> {
    const store = await this.#openOnce().catch((error: unknown) => {
      throw new SnapshotsOff(messageOf(error))
    })
    if (store) return store
    throw new SnapshotsOff(this.#state.type === 'off' ? this.#state.reason : 'There are no file snapshots.')
  }

  /** Records the files as they are now and says what has to happen to have those of an entry. */
  async prepare(targetId: string | null): Promise<PreparedRestore> {
    const store = await this.#usableStore()
    await this.#record({ when: 'restore', by: 'others' })
    const history = await followLog(this.#options.session, FileHistory)
    const moment = history.at(targetId)
    if (!moment) throw new RestoreProblem('not-recorded', 'The files at this point were not recorded.')
    if (!(await store.has(moment.tree))) throw missing()
    return this.#plan({ store, to: moment.tree, steps: history.since(moment), targetId })
  }

  /** The same for undoing the last restore that was not undone itself. */
  async prepareUndo(): Promise<PreparedRestore> {
    const store = await this.#usableStore()
    await this.#record({ when: 'restore', by: 'others' })
    const history = await followLog(this.#options.session, FileHistory)
    const undone = new Set(history.restores.map(({ undoes }) => undoes))
    const last = history.restores.findLast(({ restoreId, undoes }) => undoes === undefined && !undone.has(restoreId))
    if (!last) throw new RestoreProblem('nothing-to-undo', 'No files were put back in this session.')
    if (!(await store.has(last.from))) throw missing()
    return this.#plan({ store, to: last.from, steps: history.sinceRestore(last.restoreId), undoes: last.restoreId })
  }

  /**
   * Puts files to their target. `choices` decides on conflicts and may also take or keep any other file; a conflict
   * without a choice is kept. With a `leafId`, the conversation moves there too: after a crash, an open restore brings
   * both to the same side.
   */
  async restore(
    prepared: PreparedRestore,
    choices: ReadonlyMap<string, ConflictChoice> = new Map(),
    /** `cause` is that of the line that ends it. */
    { leafId, cause }: { leafId?: string | null; cause?: Cause } = {},
  ): Promise<FinishedRestore> {
    const store = await this.#usableStore()
    return withStoreLock(join(store.path, 'restore'), async () => {
      const { session } = this.#options
      const merged = new Map<string, FileVersion>()
      const isTaken = (file: PlannedFile): boolean => {
        const choice = choices.get(file.path)
        return choice === undefined ? file.action === 'restore' : choice === 'take' || merged.has(file.path)
      }
      const all = [...prepared.restored, ...prepared.kept, ...prepared.conflicts]
      for (const file of all) {
        if (choices.get(file.path) !== 'merge') continue
        const version = await mergedVersion(store, file, prepared.bases.get(file.path))
        if (version) merged.set(file.path, version)
      }
      const taken = all.filter(isTaken)
      const changes = taken.map(({ path, from, to }) => {
        const wanted = merged.get(path) ?? to
        return { path, ...(from && { from }), ...(wanted && { to: wanted }) }
      })
      const isTarget = prepared.hasAll === true && taken.length === all.length && merged.size === 0
      const versions = new Map(changes.map(({ path, to: version }) => [path, version]))
      const to = isTarget ? prepared.to : await store.withFiles(prepared.from, versions)
      const { targetId, undoes, from } = prepared
      const restoreId = newId()
      const start: RestoreRecord['restore'] = {
        restoreId,
        phase: 'start',
        ...(targetId !== undefined && { targetId }),
        ...(undoes !== undefined && { undoes }),
        ...(leafId !== undefined && { leafId }),
        from,
        to,
      }
      await session.append({ type: 'restore', restore: start })
      const result = await applyRestore(changes, { store, restoreId, tree: to, ...this.#steps() })
      const kept = prepared.kept.filter((file) => !isTaken(file)).map(({ path }) => path)
      const conflicts = prepared.conflicts.filter((file) => !isTaken(file)).map(({ path }) => path)
      await this.#record({ when: 'restore', by: 'agent' })
      if (leafId !== undefined) await session.branch(leafId, { rewind: moveOf(start), restoreId })
      await this.#end(start, { ...result, kept, conflicts }, cause)
      return { restoreId, ...result, kept, conflicts }
    })
  }

  /**
   * Continues a restore that was interrupted, or returns to the files before it. The conversation moves along, unless the
   * user has continued it meanwhile.
   */
  async resumeRestore(direction: 'finish' | 'undo', cause?: Cause): Promise<FinishedRestore> {
    const { session } = this.#options
    const store = await this.store()
    const open = session.openRestore
    if (!open) throw new RestoreProblem('nothing-to-undo', 'No restore was interrupted.')
    return withStoreLock(join(store.path, 'restore'), async () => {
      await cleanStaging(store)
      const now = await store.take()
      const wanted = direction === 'finish' ? open.to : open.from
      // Files that are in neither of the two states were changed by someone since.
      const inProgress = new Map((await store.diff(open.from, open.to)).map((change) => [change.path, change]))
      const changes = (await store.diff(now.tree, wanted)).filter(({ path, from }) => {
        const both = inProgress.get(path)
        return both && (isSame(from, both.from) || isSame(from, both.to))
      })
      const conflicts = [...inProgress.keys()].filter((path) => !changes.some((change) => change.path === path))
      const result = await applyRestore(changes, { store, restoreId: open.restoreId, tree: wanted, ...this.#steps() })
      const skipped = await this.#unreached(store, wanted, conflicts)
      await this.#record({ when: 'restore', by: 'agent' })
      await this.#moveLeaf(open, direction)
      await this.#end({ ...open, to: wanted }, { ...result, kept: [], conflicts: skipped }, cause)
      return { restoreId: open.restoreId, ...result, kept: [], conflicts: skipped }
    })
  }

  async #unreached(store: SnapshotStore, wanted: string, paths: readonly string[]): Promise<string[]> {
    const { tree } = await store.take()
    const different = new Set((await store.diff(tree, wanted)).map(({ path }) => path))
    return paths.filter((path) => different.has(path))
  }

  async #moveLeaf(open: RestoreRecord['restore'], direction: 'finish' | 'undo'): Promise<void> {
    const { session } = this.#options
    const { restoreId, leafId, undoes } = open
    const { open: move } = await followLog(session, RewindMoves)
    if (leafId === undefined || !move || move.isOvertaken || move.isMoved === (direction === 'finish')) return
    if (direction === 'finish') await session.branch(leafId, { rewind: moveOf(open), restoreId })
    // Takes back a move that went back, or makes one again that had been taken back.
    else if (undoes === undefined) await session.branch(move.from, { rewind: 'redo', restoreId })
    else await session.branch(move.from, { rewind: 'undo', restoreId: undoes })
  }

  async #end(
    start: RestoreRecord['restore'],
    result: RestoreResult & { kept: string[]; conflicts: string[] },
    cause?: Cause,
  ): Promise<void> {
    const counts = {
      changed: result.changed.length,
      kept: result.kept.length,
      conflicts: result.conflicts.length,
      skipped: result.skipped.length,
    }
    const end = { ...start, phase: 'end' as const, ...counts }
    await this.#options.session.append({ type: 'restore', restore: end }, cause && { cause })
  }

  async #plan(wanted: {
    store: SnapshotStore
    to: string
    steps: readonly { by: 'agent' | 'outside' | 'job'; from: string; to: string }[]
    targetId?: string | null
    undoes?: string
  }): Promise<PreparedRestore> {
    const { store, to, steps, targetId, undoes } = wanted
    const from = this.#lastTree as string
    const bases = new Map<string, FileVersion | undefined>()
    const since = []
    const [changes = [], ...stepChanges] = await store.diffs([{ from, to }, ...steps])
    for (const [index, { by }] of steps.entries()) {
      const changed = stepChanges[index] ?? []
      if (by === 'agent') for (const { path, to: version } of changed) bases.set(path, version)
      since.push({ by, paths: changed.map(({ path }) => path) })
    }
    // A file that was ignored then was left out, so it only looks as if it had not existed.
    const removed = changes.flatMap(({ path, to: version }) => (version ? [] : [path]))
    const hasOtherRules = changes.some(({ path }) => /(?:^|\/)\.gitignore$/.test(path))
    const ignored = removed.length > 0 ? await store.ignored(removed, hasOtherRules ? to : undefined) : new Set()
    const plan = planRestore(
      changes.filter(({ path }) => !ignored.has(path)),
      since,
    )
    return {
      ...plan,
      hasAll: ignored.size === 0,
      ...(targetId !== undefined && { targetId }),
      ...(undoes !== undefined && { undoes }),
      from,
      to,
      bases,
    }
  }

  async #usableStore(): Promise<SnapshotStore> {
    const store = await this.store()
    requireNoOpenRestore(this.#options.session)
    if (this.#options.isBusy?.())
      throw new RestoreProblem('busy', 'The agent is working. Stop it before files are put back.')
    if (await this.#options.hasJobs?.())
      throw new RestoreProblem('busy', 'A background command is running. Stop it before files are put back.')
    return store
  }

  #record(about: RecordedMoment, { onStored }: Pick<TakeOptions, 'onStored'> = {}): Promise<void> {
    const recorded = this.#last.then(async () => {
      // Files go back also if nothing else is recorded any more.
      const isRestore = about.when === 'restore'
      if (this.#isOff && !isRestore) return
      try {
        const store = await this.#openOnce()
        if (!store) return
        if (this.#state.type === 'opening' && !isRestore) await store.requireSpace()
        const onTaken = (snapshot: Snapshot): Promise<void> => this.#append(about, snapshot)
        const taken = await store.take({ onTaken, ...(onStored && { onStored }) })
        if (taken.previous === undefined) this.#owning = store.own().catch(() => undefined)
      } catch (error) {
        if (isRestore) throw error
        if (error instanceof SnapshotsOff) this.#state = { type: 'off', reason: error.message }
        // The call goes on without a snapshot, and the next one has its changes.
        else this.#state = { type: 'on', isSlow: this.#isSlow, problem: messageOf(error) }
      }
    })
    this.#last = recorded.catch(() => undefined)
    return recorded
  }

  async #append({ by, ...about }: RecordedMoment, taken: Snapshot): Promise<void> {
    const { tree, added, changed, removed, leftOut, leftOutCount, head, branch, scanMs, durationMs } = taken
    this.#state = { type: 'on', isSlow: taken.previous !== undefined && scanMs > slowMs }
    if (tree === this.#lastTree) return
    const previous = this.#lastTree
    const isJobs = by === 'others' && (await this.#options.hasJobs?.())
    const snapshot: SnapshotRecord['snapshot'] = {
      ...about,
      by: by === 'agent' ? 'agent' : isJobs ? 'job' : 'outside',
      tree,
      ...(previous !== undefined && { previous }),
      added,
      changed,
      removed,
      ...(leftOutCount > 0 && { leftOut, leftOutCount }),
      ...(head !== undefined && { head }),
      ...(branch !== undefined && { branch }),
      durationMs,
    }
    await this.#options.session.append({ type: 'snapshot', snapshot })
    this.#lastTree = tree
  }

  /** A session that is only looked at has no store. */
  #openOnce(): Promise<SnapshotStore | undefined> {
    return (this.#opened ??= this.#open().catch((error: unknown) => {
      // The next call tries again.
      this.#opened = undefined
      throw error
    }))
  }

  async #packIfNeeded(): Promise<void> {
    // Packing can wait: what it did not do is done after the next run.
    await this.#openOnce()
      .then((store) => store?.packIfNeeded())
      .catch(() => undefined)
  }

  async #open(): Promise<SnapshotStore | undefined> {
    const { session, folder, storesFolder, copyOf, clock } = this.#options
    try {
      const of = copyOf?.folder ?? folder
      const store = await SnapshotStore.open({ folder: of, storesFolder, clock, isForOldSnapshots: true })
      if (session.path !== undefined) await store.addLog(session.path)
      // An earlier process may have been killed before it copied what its first snapshot borrowed.
      await store.own().catch(() => undefined)
      return copyOf ? store.workingCopy(copyOf.root) : store
    } catch (error) {
      if (!(error instanceof SnapshotsOff)) throw error
      this.#state = { type: 'off', reason: error.message }
      return undefined
    }
  }

  #steps(): { onStep?: (step: string) => void | Promise<void> } {
    const { onRestoreStep } = this.#options
    return onRestoreStep ? { onStep: onRestoreStep } : {}
  }

  get #isOff(): boolean {
    return this.#state.type === 'off'
  }

  get #isSlow(): boolean {
    return this.#state.type === 'on' && this.#state.isSlow
  }

  /** Whether a call would run without a request in the strictest mode that allows reading: then it cannot write. */
  #isReading(access: readonly Access[]): boolean {
    const policy = { mode: 'ask' as const, rules: noRules, cwd: this.#options.folder, home: homedir() }
    return judgeCall({ tool: '', readOnly: false, access }, policy).effect === 'allow'
  }
}

interface RecordedMoment extends Pick<SnapshotRecord['snapshot'], 'when' | 'runId' | 'callId' | 'entryId'> {
  by: 'agent' | 'others'
}

export interface CallToRecord {
  runId: string
  callId: string
}

/** What a restore does to the conversation. */
function moveOf({ undoes }: RestoreRecord['restore']): 'undo' | 'redo' {
  return undoes === undefined ? 'undo' : 'redo'
}

function missing(): RestoreProblem {
  return new RestoreProblem('files-missing', 'The files at this point are no longer kept.')
}

function isSame(a: FileVersion | undefined, b: FileVersion | undefined): boolean {
  return a?.id === b?.id && a?.mode === b?.mode
}

/** The current file without what the agent changed; undefined if that is not possible without a conflict. */
async function mergedVersion(
  store: SnapshotStore,
  { from, to }: PlannedFile,
  base: FileVersion | undefined,
): Promise<FileVersion | undefined> {
  if (!from || !to || !base || [from, to, base].some(({ mode }) => mode === 'link')) return undefined
  const mode = from.mode === base.mode ? to.mode : from.mode
  // One side changed only the mode.
  if (to.id === base.id || from.id === base.id) return { mode, id: to.id === base.id ? from.id : to.id }
  const bytes = await store.merge({ current: from.id, base: base.id, other: to.id })
  return bytes && { mode, id: await store.write(bytes) }
}
