import { Jobs } from '@tapetree/agent/tools'
import {
  RestoreProblem,
  resumeRewind,
  rewind,
  SnapshotsOff,
  WorkspaceSnapshots,
  type ConflictChoice,
  type RewindOutcome,
  type RewindPart,
} from '@tapetree/agent/workspace'
import { systemClock } from '@tapetree/agent/run'
import type { Arguments } from '@tapetree/client/protocol'
import type { Session } from '@tapetree/session'
import { flag, textOption, type Invocation } from '../../command-line/command.ts'
import { exitCodes, type ExitCode } from '../../command-line/exit-code.ts'
import { Failure, usageFailure } from '../../command-line/failure.ts'
import { printJson, write, type Io } from '../../command-line/io.ts'
import { changeSession } from '../../host/claim-or-attach.ts'
import { findSession } from '../../host/find-session.ts'
import { placesOf } from '../../host/places.ts'
import { findEntry } from '../../sessions/find-entry.ts'
import { withStore } from '../../sessions/with-store.ts'
import { counted } from '../../text/amounts.ts'
import { harmlessLine } from '../../text/harmless.ts'
import { snakeNames } from '../../text/json-text.ts'

type Wanted = Arguments<'rewind'>

/** Goes back to an entry of a session: the conversation, the files, or both. */
export async function runSessionsRewind(invocation: Invocation, io: Io): Promise<ExitCode> {
  const [reference = 'last'] = invocation.positionals
  return withStore(io, async (store) => {
    const { id } = await findSession(store, reference, { cwd: io.cwd })
    const wanted = await wantedOf(invocation, async (entry) => {
      await using session = await store.open(id, { readOnly: true })
      return await findEntry(session, entry)
    })
    const done: unknown = await changeSession<unknown>(store, id, {
      here: async (session) => snakeNames(await rewindHere(session, wanted, io)),
      there: (handle) => handle.run('rewind', wanted),
    })
    if (flag(invocation, 'json')) await printJson(io, { session_id: id, ...(done as Record<string, unknown>) })
    else await write(io.stderr, outcomeText(done as WireOutcome, { id, wanted }))
    return exitCodes.ok
  })
}

async function wantedOf(invocation: Invocation, find: (entry: string) => Promise<string>): Promise<Wanted> {
  const [, entry] = invocation.positionals
  const isUndo = flag(invocation, 'undo')
  // The parser accepts no other values.
  const interrupted = textOption(invocation, 'interrupted') as Wanted['interrupted']
  const conflicts = textOption(invocation, 'conflicts') as ConflictChoice | undefined
  const [talk, files] = [flag(invocation, 'talk'), flag(invocation, 'files')]
  const ways = [entry !== undefined, isUndo, interrupted !== undefined].filter(Boolean)
  if (ways.length !== 1) throw usageFailure('Name an entry to go back to, or use --undo or --interrupted.', [example])
  if (talk && files) throw usageFailure('--talk and --files exclude each other. Without both, both go back.')
  if (interrupted) return { interrupted }
  const what: RewindPart = talk ? 'talk' : files ? 'files' : 'both'
  return {
    ...(entry !== undefined && { entry_id: await find(entry), what }),
    ...(conflicts && { conflicts }),
    ...(flag(invocation, 'dry-run') && { dry_run: true }),
  }
}

const example = 'tapetree sessions rewind last 12 --dry-run'

/** The session is not open anywhere else. */
async function rewindHere(session: Session, wanted: Wanted, io: Io): Promise<RewindOutcome> {
  const { workingCopy } = session
  const copy = workingCopy?.outcome === undefined ? workingCopy : undefined
  const folder = copy?.folder ?? session.header?.cwd
  const files =
    folder === undefined || session.lastSnapshot === undefined
      ? undefined
      : new WorkspaceSnapshots({
          session,
          folder,
          ...(copy && { copyOf: { folder: copy.copyOf, root: copy.root } }),
          storesFolder: placesOf(io).workspaces,
          clock: systemClock,
          hasJobs: () => new Jobs().hasRunning(session.localFolder),
        })
  const { entry_id: entryId, what, conflicts, dry_run: isDryRun = false, interrupted } = wanted
  try {
    if (interrupted) return await resumeRewind(interrupted, { session, files })
    return await rewind(
      { ...(entryId !== undefined && { entryId }), ...(what && { what }), ...(conflicts && { conflicts }), isDryRun },
      { session, files },
    )
  } catch (error) {
    if (!(error instanceof RestoreProblem) && !(error instanceof SnapshotsOff)) throw error
    const type = error instanceof RestoreProblem ? error.code : 'not-recorded'
    const isMissing = type !== 'busy' && type !== 'open-restore'
    const code = isMissing ? exitCodes.notFound : exitCodes.runFailed
    throw new Failure(code, error.message, { type, next: nextSteps(type, session.id), cause: error })
  } finally {
    await files?.close()
  }
}

function nextSteps(type: string, id: string): string[] {
  if (type === 'open-restore') return [`tapetree sessions rewind ${id} --interrupted finish`]
  return type === 'not-recorded' ? [`tapetree sessions rewind ${id} <entry> --talk`] : []
}

/** As on the wire. */
interface WireOutcome {
  text?: string
  files?: {
    problem?: string
    changes: { path: string; change: string; action: string }[]
    skipped: string[]
    kept_copies: { path: string; copy: string }[]
  }
}

const verbs: Readonly<Record<string, { did: string; would: string }>> = {
  restored: { did: 'put back', would: 'would go back' },
  merged: { did: 'merged', would: 'would be merged' },
  conflict: { did: 'kept, changed by the agent and by others', would: 'conflict: changed by the agent and by others' },
  kept: { did: 'kept', would: 'stays: changed only by others' },
}

function outcomeText({ text, files }: WireOutcome, { id, wanted }: { id: string; wanted: Wanted }): string {
  const isDryRun = wanted.dry_run === true
  const lines = [
    ...(files?.problem === undefined ? [] : [files.problem]),
    ...(files?.changes ?? []).map(({ path, change, action }) => {
      const how = change === 'removed' ? ' (deleted)' : change === 'added' ? ' (comes back)' : ''
      return `${path}${action === 'kept' ? '' : how}: ${verbs[action]?.[isDryRun ? 'would' : 'did'] ?? action}`
    }),
    ...(files?.skipped ?? []).map((path) => `${path}: not put back, because someone changed it meanwhile`),
    ...(files?.kept_copies ?? []).map(({ path, copy }) => `${path}: a version that was being written is in ${copy}`),
    ...(text === undefined ? [] : [`The conversation ${isDryRun ? 'would continue' : 'continues'} before: ${text}`]),
  ]
  const count = files?.changes.filter(({ action }) => action === 'restored' || action === 'merged').length ?? 0
  const sum = isDryRun
    ? `Nothing was changed: this is a dry run. ${counted(count, 'file')} would go back.`
    : `Done: ${counted(count, 'file')} went back.${wanted.entry_id === undefined ? '' : ` To take it back: tapetree sessions rewind ${id} --undo`}`
  return [...lines.map((line) => harmlessLine(line)), sum, ''].join('\n')
}
