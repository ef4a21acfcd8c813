import { SessionError, type Cause, type Session, type SessionStore } from '@tapetree/session'
import type { Entry } from '@tapetree/session/format'
import { closeInterruptedRun } from '../run/abandon-run.ts'
import { followLog } from '../workspace/follow-log.ts'
import type { ConflictChoice, PlannedFile } from '../workspace/plan-restore.ts'
import { RewindMoves } from '../workspace/rewind-moves.ts'
import {
  requireNoOpenRestore,
  RestoreProblem,
  type PreparedRestore,
  type WorkspaceSnapshots,
} from '../workspace/workspace-snapshots.ts'
import { SnapshotsOff } from '../workspace/shadow-git.ts'

/** What goes back: the conversation, the files, or both. */
export type RewindPart = 'talk' | 'files' | 'both'

export interface RewindOptions {
  /**
   * Where to go back to; null is the beginning. If it is a message of the user, the conversation continues before it.
   * Absent: takes back the last rewind that was not taken back.
   */
  entryId?: string | null
  /** Default: `both`. When a rewind is taken back, it is what that one had changed. */
  what?: RewindPart
  /** For files that the agent and others changed. Default: `keep`. */
  conflicts?: ConflictChoice
  /** For single files, by their path in the folder. Files without a conflict can be kept or taken too. */
  choices?: Readonly<Record<string, ConflictChoice>>
  /** Only says what would happen. */
  isDryRun?: boolean
  cause?: Cause
}

export interface RewindOutcome {
  /** The leaf afterwards. */
  leafId: string | null
  /** The text of the message that the conversation went back to, so that it can be changed and sent again. */
  text?: string
  /** Absent if only the conversation went back. */
  files?: RewoundFiles
}

export interface RewoundFiles {
  /** Why no file can go back, as a sentence. */
  problem?: string
  changes: RewoundFile[]
  /** Someone changed these while they were being put back. They stay as they are. */
  skipped: string[]
  /** Versions that someone wrote to a file while it was being replaced: the path, and the place of the copy. */
  keptCopies: { path: string; copy: string }[]
}

export interface RewoundFile {
  /** In the folder of the session. */
  path: string
  /** What happens to the file. */
  change: 'added' | 'changed' | 'removed'
  /**
   * `restored`: it goes back. `kept`: only others changed it, so it stays. `conflict`: the agent and others changed it, and it
   * stays unless it is chosen otherwise. `merged`: it goes back without the changes of others being lost.
   */
  action: 'restored' | 'kept' | 'conflict' | 'merged'
  /** Whether a conflict can be merged, unless both changed the same lines. */
  canMerge?: true
}

/** A session that only the caller changes meanwhile, and its files, if they are recorded. */
export interface RewindPlace {
  session: Session
  files: WorkspaceSnapshots | undefined
  /** Where the sessions of subagents are. */
  store?: SessionStore
}

/** Goes back in the conversation, in the files or in both. The caller holds the slot of the session. */
export async function rewind(options: RewindOptions, place: RewindPlace): Promise<RewindOutcome> {
  const { isDryRun = false, cause } = options
  const { session, files } = place
  const target =
    options.entryId === undefined
      ? await lastRewind(session)
      : await targetOf(session, options.entryId, options.what ?? 'both')
  const wantsFiles = target.what !== 'talk'
  const prepared = wantsFiles ? await prepare(target, files).catch(unlessDryRun(isDryRun)) : undefined
  const plan = prepared && 'restored' in prepared ? prepared : undefined
  const choices = plan && files ? await choicesFor(plan, { ...options, files }) : new Map<string, ConflictChoice>()
  let done: Awaited<ReturnType<WorkspaceSnapshots['restore']>> | undefined
  if (!isDryRun) {
    await closeInterruptedRun(session, place)
    const isTalkToo = target.what !== 'files'
    const moving = { ...(isTalkToo && { leafId: target.leafId }), ...(cause && { cause }) }
    if (plan && hasWork(plan, choices)) done = await files?.restore(plan, choices, moving)
    else if (isTalkToo)
      await session.branch(target.leafId, { rewind: target.undoes ? 'redo' : 'undo', ...(cause && { cause }) })
  }
  const store = plan ? await files?.store() : undefined
  const local = (path: string): string => store?.local(path) ?? path
  return {
    leafId: target.what === 'files' ? session.leafId : target.leafId,
    ...(target.text !== undefined && target.what !== 'files' && { text: target.text }),
    ...(prepared && {
      files: {
        ...('problem' in prepared && { problem: prepared.problem }),
        changes: plan ? changesOf(plan, { choices, conflicts: done && new Set(done.conflicts), local }) : [],
        skipped: (done?.skipped ?? []).map(local),
        keptCopies: (done?.keptCopies ?? []).map(({ path, copy }) => ({ path: local(path), copy })),
      },
    }),
  }
}

interface RewindTarget {
  what: RewindPart
  leafId: string | null
  /** The entry whose files come back. */
  filesAt: string | null
  text?: string
  /** It takes back a rewind. */
  undoes?: true
}

async function targetOf(session: Session, entryId: string | null, what: RewindPart): Promise<RewindTarget> {
  if (entryId === null) return { what, leafId: null, filesAt: null }
  const entry = await session.getEntry(entryId)
  const text = ownText(entry)
  return text === undefined
    ? { what, leafId: entryId, filesAt: entryId }
    : { what, leafId: entry.parentId, filesAt: entryId, text }
}

/** The text of a message that the user wrote. */
function ownText(entry: Entry): string | undefined {
  if (entry.type !== 'message' || entry.message.role !== 'user') return undefined
  return entry.message.content.flatMap((block) => (block.type === 'text' ? [block.text.content] : [])).join('\n')
}

/** The last rewind that was not taken back, if nothing was said since. */
async function lastRewind(session: Session): Promise<RewindTarget> {
  requireNoOpenRestore(session)
  const { last } = await followLog(session, RewindMoves)
  if (!last) throw new RestoreProblem('nothing-to-undo', 'There is nothing to take back since the last message.')
  const what = last.talk ? (last.restoreId === undefined ? 'talk' : 'both') : 'files'
  return { what, leafId: last.talk ? last.talk.from : session.leafId, filesAt: null, undoes: true }
}

async function prepare(target: RewindTarget, files: WorkspaceSnapshots | undefined): Promise<PreparedRestore> {
  if (!files) throw new SnapshotsOff('The files of this session are not recorded.')
  return target.undoes ? files.prepareUndo() : files.prepare(target.filesAt)
}

function unlessDryRun(isDryRun: boolean): (error: unknown) => { problem: string } {
  return (error) => {
    const isExpected = error instanceof RestoreProblem || error instanceof SnapshotsOff
    if (isDryRun && isExpected) return { problem: error.message }
    throw error
  }
}

/** The choices by path of the store. */
async function choicesFor(
  plan: PreparedRestore,
  { conflicts = 'keep', choices = {}, files }: RewindOptions & { files: WorkspaceSnapshots },
): Promise<Map<string, ConflictChoice>> {
  const store = await files.store()
  const chosen = new Map(plan.conflicts.map(({ path }) => [path, conflicts]))
  const known = new Set([...plan.restored, ...plan.kept, ...plan.conflicts].map(({ path }) => path))
  for (const [path, choice] of Object.entries(choices)) {
    const inStore = store.prefix + path
    if (known.has(inStore)) chosen.set(inStore, choice)
  }
  return chosen
}

function hasWork(plan: PreparedRestore, choices: ReadonlyMap<string, ConflictChoice>): boolean {
  const isWork = ({ path, action }: PlannedFile): boolean => (choices.get(path) ?? defaults[action]) !== 'keep'
  return [...plan.restored, ...plan.kept, ...plan.conflicts].some(isWork)
}

const defaults = { restore: 'take', keep: 'keep', conflict: 'keep' } as const satisfies Record<
  PlannedFile['action'],
  ConflictChoice
>

function changesOf(
  plan: PreparedRestore,
  {
    choices,
    conflicts,
    local,
  }: {
    choices: ReadonlyMap<string, ConflictChoice>
    /** Those that could not be merged are among them. */
    conflicts: ReadonlySet<string> | undefined
    local: (path: string) => string
  },
): RewoundFile[] {
  const all = [...plan.restored, ...plan.kept, ...plan.conflicts].toSorted((a, b) => (a.path < b.path ? -1 : 1))
  return all.map((file) => {
    const { path, from, to, action } = file
    const choice = choices.get(path) ?? defaults[action]
    const isMerged = choice === 'merge' && !conflicts?.has(path)
    const isConflict = action === 'conflict' && (choice === 'keep' || (choice === 'merge' && !isMerged))
    const base = plan.bases.get(path)
    const canMerge = from && to && base && [from, to, base].every(({ mode }) => mode !== 'link')
    return {
      path: local(path),
      change: from ? (to ? 'changed' : 'removed') : 'added',
      action: isConflict ? 'conflict' : choice === 'take' ? 'restored' : isMerged ? 'merged' : 'kept',
      ...(action === 'conflict' && canMerge && { canMerge: true as const }),
    }
  })
}

/** Continues a rewind that was interrupted, or returns to the files and the conversation before it. */
export async function resumeRewind(
  direction: 'finish' | 'undo',
  place: RewindPlace & { cause?: Cause },
): Promise<RewindOutcome> {
  const { session, files, cause } = place
  if (!files) throw new SessionError('session-busy', 'The files of this session are not recorded.')
  const store = await files.store()
  const { openRestore: open, leafId: before } = session
  await closeInterruptedRun(session, place)
  const { changed, skipped, conflicts, keptCopies } = await files.resumeRestore(direction, cause)
  const local = (path: string): string => store.local(path)
  const { leafId } = session
  const hasMoved = leafId !== before && direction === 'finish'
  const text = hasMoved && open?.targetId != null ? ownText(await session.getEntry(open.targetId)) : undefined
  return {
    leafId,
    ...(text !== undefined && { text }),
    files: {
      changes: [
        ...changed.map((path) => ({ path: local(path), change: 'changed' as const, action: 'restored' as const })),
        ...conflicts.map((path) => ({ path: local(path), change: 'changed' as const, action: 'conflict' as const })),
      ],
      skipped: skipped.map(local),
      keptCopies: keptCopies.map(({ path, copy }) => ({ path: local(path), copy })),
    },
  }
}
