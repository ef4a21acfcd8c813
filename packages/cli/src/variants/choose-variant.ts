import {
  applyChoice,
  listCopies,
  prepareChoice,
  removeCopy,
  removeOrphan,
  resumeChoice,
  type PreparedChoice,
  type VariantPlaces,
} from '@tapetree/agent/variants'
import { RestoreProblem, SnapshotsOff } from '@tapetree/agent/workspace'
import type { Session, SessionStore } from '@tapetree/session'
import { exitCodes } from '../command-line/exit-code.ts'
import { Failure } from '../command-line/failure.ts'
import { askLine, isInteractive, write, type Io } from '../command-line/io.ts'
import { ownedElsewhere } from '../host/open-store.ts'
import { placesOf } from '../host/places.ts'
import { counted } from '../text/amounts.ts'
import { harmlessLine } from '../text/harmless.ts'

/** What happens to files that the user and the variant have both changed. `ask` refuses without a terminal. */
export type ConflictPolicy = 'ask' | 'keep' | 'take'

export interface ChosenVariant {
  sessionId: string
  /** The folder that has its files now. */
  folder: string
  changed: string[]
  merged: string[]
  /** The user's version stays. */
  kept: string[]
  /** Someone changed these meanwhile. They stay as they are. */
  skipped: string[]
  /** Versions that a program wrote while the file was being replaced. */
  copies: { path: string; copy: string }[]
  /** Its run was interrupted and can be resumed. */
  isUnfinished: boolean
  /** Sessions whose copies could not be removed, because they are in use. */
  remaining: string[]
}

export function variantPlaces(io: Pick<Io, 'home' | 'env'>, sessions: SessionStore): VariantPlaces {
  const { workspaces: storesFolder, copies: copiesFolder } = placesOf(io)
  return { sessions, storesFolder, copiesFolder }
}

/** Merges the files of a variant into the folder that was copied, then removes all copies of the same prompt. */
export async function chooseVariant(
  sessionId: string,
  { io, store, conflicts }: { io: Io; store: SessionStore; conflicts: ConflictPolicy },
): Promise<ChosenVariant> {
  const places = variantPlaces(io, store)
  await using session = await openOwn(store, sessionId)
  const copy = session.workingCopy
  if (!copy || copy.outcome === 'discarded') throw notInCopy(sessionId)
  const report: ChosenVariant = {
    sessionId,
    folder: copy.copyOf,
    changed: [],
    merged: [],
    kept: [],
    skipped: [],
    copies: [],
    isUnfinished: session.openRun !== null,
    remaining: [],
  }
  const resumed = await resumeChoice(session, places).catch(asFailure)
  if (resumed === 'prepare') {
    const prepared = await prepareChoice(session, places).catch(asFailure)
    const choices = await decide(prepared, { io, conflicts, sessionId })
    const done = await applyChoice(session, prepared, { places, choices }).catch(asFailure)
    const { changed, merged, kept, skipped, keptCopies } = done
    Object.assign(report, { changed, merged, kept, skipped, copies: keptCopies })
  } else if (resumed !== 'complete') report.kept = resumed.conflicts
  await removeCopy(session, places)
  report.remaining = await removeOthers(sessionId, { places, variantsId: copy.variants?.id })
  return report
}

/** Removes one copy. Its files stay in the store of the workspace for a while. */
export async function removeVariant(sessionId: string, places: VariantPlaces): Promise<void> {
  const listed = (await listCopies(places)).find((each) => each.sessionId === sessionId)
  if (!listed) throw notInCopy(sessionId)
  const exists = await places.sessions.open(sessionId, { readOnly: true }).then(
    async (found) => {
      await found.close()
      return true
    },
    () => false,
  )
  if (!exists) return removeOrphan(sessionId, places)
  await using session = await openOwn(places.sessions, sessionId)
  await removeCopy(session, places).catch(asFailure)
}

/** What was done, in sentences. */
export function choiceText(report: ChosenVariant): string[] {
  const { sessionId, folder, changed, merged, kept, skipped, copies, isUnfinished, remaining } = report
  const lines = [
    `${harmlessLine(folder)} has the files of the variant: ${counted(changed.length, 'file')} changed` +
      `${merged.length > 0 ? `, ${merged.length} merged with your edits` : ''}.`,
  ]
  if (kept.length > 0) lines.push(`Your version stays: ${namesText(kept)}.`)
  if (skipped.length > 0) lines.push(`Not taken over, because another file is there: ${namesText(skipped)}.`)
  for (const { path, copy } of copies)
    lines.push(`${harmlessLine(path)} was written while it was replaced. What was written is in ${harmlessLine(copy)}.`)
  if (isUnfinished) lines.push('The run of this variant was interrupted. It is resumed when you continue.')
  if (remaining.length > 0) lines.push(`In use, so not removed: ${remaining.join(', ')}.`)
  lines.push(`To continue: tapetree --session ${sessionId}`)
  return lines
}

async function removeOthers(
  chosen: string,
  { places, variantsId }: { places: VariantPlaces; variantsId: string | undefined },
): Promise<string[]> {
  const remaining: string[] = []
  for (const { sessionId, copy, isInUse } of await listCopies(places)) {
    if (sessionId === chosen || variantsId === undefined || copy?.variants?.id !== variantsId) continue
    if (isInUse) remaining.push(sessionId)
    else {
      await using session = await places.sessions.open(sessionId)
      await removeCopy(session, places)
    }
  }
  return remaining
}

async function decide(
  { conflicts, blocked, copy }: PreparedChoice,
  { io, conflicts: policy, sessionId }: { io: Io; conflicts: ConflictPolicy; sessionId: string },
): Promise<Map<string, 'keep' | 'take'>> {
  const paths = conflicts.map(({ path }) => path)
  if (policy !== 'ask') {
    if (policy === 'take' && blocked.length > 0) throw isBlocked(blocked.map(({ path }) => path))
    return new Map(paths.map((path) => [path, policy]))
  }
  const all = [...paths, ...blocked.map(({ path }) => path)]
  if (all.length === 0) return new Map()
  if (!isInteractive(io)) throw inConflict(all, { sessionId, folder: copy.copyOf })
  const choices = new Map<string, 'keep' | 'take'>()
  await write(
    io.stderr,
    `You and the variant have both changed ${counted(all.length, 'file')}, in ways that do not merge.\n`,
  )
  for (const path of paths) choices.set(path, await askAbout(path, { io, sessionId }))
  for (const { path } of blocked)
    await write(
      io.stderr,
      `! ${harmlessLine(path)} is not taken over: a folder would have to replace a file, or a file a folder.\n`,
    )
  return choices
}

async function askAbout(path: string, { io, sessionId }: { io: Io; sessionId: string }): Promise<'keep' | 'take'> {
  for (;;) {
    const typed = await askLine(io, `${harmlessLine(path)}: keep yours (k), take the variant's (t), or cancel (c)? `)
    if (/^k(?:eep)?$/i.test(typed)) return 'keep'
    if (/^t(?:ake)?$/i.test(typed)) return 'take'
    if (/^(?:c(?:ancel)?)?$/i.test(typed)) {
      throw new Failure(exitCodes.runFailed, 'The variant was not chosen. No file was changed.', {
        type: 'not-chosen',
        next: [`tapetree variants choose ${sessionId}`],
      })
    }
  }
}

function inConflict(paths: readonly string[], { sessionId, folder }: { sessionId: string; folder: string }): Failure {
  return new Failure(exitCodes.runFailed, `You and the variant have both changed ${namesText(paths)}.`, {
    type: 'variant-conflict',
    why: `The changes do not merge, so no file in ${harmlessLine(folder)} was changed.`,
    next: [
      `tapetree variants choose ${sessionId} --conflicts keep`,
      `tapetree variants choose ${sessionId} --conflicts take`,
    ],
  })
}

function isBlocked(paths: readonly string[]): Failure {
  return new Failure(exitCodes.runFailed, `The variant cannot be taken over completely: ${namesText(paths)}.`, {
    type: 'variant-conflict',
    why: 'A folder would have to replace a file of yours, or a file a folder. No file was changed.',
    next: ['tapetree variants list'],
  })
}

function notInCopy(sessionId: string): Failure {
  return new Failure(exitCodes.notFound, `Session ${sessionId} has no working copy.`, {
    type: 'no-working-copy',
    next: ['tapetree variants list'],
  })
}

async function openOwn(store: SessionStore, sessionId: string): Promise<Session> {
  const session = await store.open(sessionId)
  const { readOnlyReason } = session
  if (readOnlyReason === undefined) return session
  await session.close()
  throw ownedElsewhere(sessionId, readOnlyReason)
}

/** Problems of the files, with an exit code. */
function asFailure(error: unknown): never {
  if (error instanceof RestoreProblem || error instanceof SnapshotsOff)
    throw new Failure(exitCodes.runFailed, error.message, { type: 'files-not-available', cause: error })
  throw error
}

const maxNames = 5

function namesText(paths: readonly string[]): string {
  const shown = paths.slice(0, maxNames).map((path) => harmlessLine(path))
  const more = paths.length - shown.length
  return `${shown.join(', ')}${more > 0 ? ` and ${more} more` : ''}`
}
