import type { SessionStore } from '@tapetree/session'
import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import { flag, textOption, type Invocation } from '../../command-line/command.ts'
import { exitCodes, type ExitCode } from '../../command-line/exit-code.ts'
import { Failure, usageFailure } from '../../command-line/failure.ts'
import { askYesNo, isInteractive, printJson, write, type Io } from '../../command-line/io.ts'
import { findSessions, type FoundSessions } from '../../import/find-sessions.ts'
import { dropReasons, mergeReasons, type FoundSession, type SourceName } from '../../import/import-source.ts'
import { importSession, type ImportedSession, type LineTally } from '../../import/import-session.ts'
import { databaseCopies } from '../../import/opencode-rows.ts'
import { sources } from '../../import/sources.ts'
import { Progress } from '../../sessions/progress.ts'
import { withStore } from '../../sessions/with-store.ts'
import { redactorOf } from './redactor.ts'
import { counted } from '../../text/amounts.ts'
import { harmlessLine } from '../../text/harmless.ts'
import { snakeNames } from '../../text/json-text.ts'
import { outputTable, type Column } from '../../text/output-table.ts'

/** Imports sessions of other programs. Without `--all` or a path, asks first, or only lists them if nobody can answer. */
export async function runImport(invocation: Invocation, io: Io): Promise<ExitCode> {
  await using _copies = databaseCopies
  const found = await find(invocation, io)
  const isJson = flag(invocation, 'json')
  const isChosen = flag(invocation, 'all') || invocation.positionals.length > 0
  if (found.sessions.length === 0) {
    await tellUnusable(found, io)
    if (isJson) await printJson(io, { sessions: [], unusable: found.unusable })
    else await write(io.stderr, 'No sessions of other programs were found.\n')
    return exitCodes.ok
  }
  if (!isChosen && !flag(invocation, 'dry-run')) {
    if (isJson) {
      await printJson(io, { found: snakeNames(projectsOf(found.sessions)), unusable: found.unusable })
      return exitCodes.ok
    }
    await write(io.stdout, projectTable(found.sessions, io.stdout.columns))
    if (!isInteractive(io)) {
      await write(io.stderr, 'Nothing was imported. To import them: tapetree import --all\n')
      return exitCodes.ok
    }
    if (!(await askYesNo(io, `Import ${counted(found.sessions.length, 'session')}?`))) return exitCodes.ok
  }
  const dryRun = flag(invocation, 'dry-run')
  using progress = new Progress(io.stderr, 'Importing')
  const onSession = (number: number): void => {
    progress.words = `Importing session ${number} of ${found.sessions.length}`
  }
  const imported = await withStore(io, (store) => importAll(store, found, { io, dryRun, onSession }))
  progress.close()
  if (isJson) await printJson(io, jsonOf(imported, found))
  else await tell(imported, { found, io, dryRun })
  return imported.some(({ failure }) => failure !== undefined) ? exitCodes.runFailed : exitCodes.ok
}

async function find(invocation: Invocation, io: Io): Promise<FoundSessions> {
  const from = textOption(invocation, 'from')
  const project = textOption(invocation, 'project')
  const paths = invocation.positionals.map((path) => resolve(io.cwd, path))
  for (const path of paths) {
    if (existsSync(path)) continue
    throw new Failure(exitCodes.notFound, `There is no file or folder ${harmlessLine(path)}.`, {
      type: 'file-not-found',
    })
  }
  using progress = new Progress(io.stderr, 'Looking for sessions')
  const found = await findSessions({
    machine: io,
    ...(from !== undefined && { from: [from as SourceName] }),
    ...(project !== undefined && { project: resolve(io.cwd, project) }),
    ...(paths.length > 0 && { paths }),
    signal: io.signal,
  })
  progress.close()
  if (paths.length > 0 && found.sessions.length === 0 && found.unusable.length === 0) {
    throw usageFailure('No session of another program was recognized there.', [
      'tapetree sessions import <bundle>',
      'tapetree import --help',
    ])
  }
  return found
}

export interface Imported {
  found: FoundSession
  result?: ImportedSession
  /** Why it could not be imported. */
  failure?: string
}

interface ImportAllOptions {
  io: Pick<Io, 'home' | 'env' | 'cwd' | 'signal'>
  dryRun?: boolean
  /** Called before each session, with its number, counted from 1. */
  onSession?: (number: number) => void
}

/** One that cannot be imported holds up no other one. */
export async function importAll(
  store: SessionStore,
  { sessions }: Pick<FoundSessions, 'sessions'>,
  { io, dryRun = false, onSession }: ImportAllOptions,
): Promise<Imported[]> {
  const redactor = await redactorOf(io)
  const putAway = new Set<string>()
  for (const place of ['archive', 'trash'] as const) {
    for (const { id } of (await store.list({ place, limit: Infinity })).sessions) putAway.add(id)
  }
  const imported: Imported[] = []
  for (const [index, session] of sessions.entries()) {
    io.signal.throwIfAborted()
    onSession?.(index + 1)
    try {
      const result = await importSession(session, { store, redactor, putAway, dryRun, signal: io.signal })
      imported.push({ found: session, result })
    } catch (error) {
      if (io.signal.aborted) throw error
      imported.push({ found: session, failure: error instanceof Error ? error.message : String(error) })
    }
  }
  return imported
}

interface Project {
  source: SourceName
  folder: string | undefined
  sessions: number
}

function projectsOf(sessions: readonly FoundSession[]): Project[] {
  const groups = Map.groupBy(sessions, ({ source, session }) => JSON.stringify([source, session.cwd ?? null]))
  return [...groups.values()].map((group) => {
    const [{ source, session }] = group as [FoundSession]
    return { source, folder: session.cwd, sessions: group.length }
  })
}

function projectTable(sessions: readonly FoundSession[], width: number | undefined): string {
  const columns: Column[] = [
    { title: 'FROM' },
    { title: 'SESSIONS', align: 'right' },
    { title: 'FOLDER', flexible: true },
  ]
  const rows = projectsOf(sessions).map(({ source, folder, sessions: count }) => [
    sources[source].title,
    String(count),
    harmlessLine(folder ?? '(unknown)'),
  ])
  return outputTable(columns, rows, width)
}

const outcomes = ['imported', 'updated', 'unchanged', 'empty', 'put-away', 'busy', 'failed'] as const
type Outcome = (typeof outcomes)[number]

/** Sums for one program. */
interface Sum {
  sessions: Record<Outcome, number>
  tally: LineTally
  added: number
  closed: number
}

function sumOf(imported: readonly Imported[]): Sum {
  const sessions = Object.fromEntries(outcomes.map((outcome) => [outcome, 0])) as Record<Outcome, number>
  const sum: Sum = { sessions, tally: { lines: 0, kept: 0, merged: {}, dropped: {} }, added: 0, closed: 0 }
  for (const { result } of imported) {
    sum.sessions[result?.outcome ?? 'failed'] += 1
    if (!result) continue
    sum.added += result.added
    sum.closed += result.closed
    sum.tally.lines += result.tally.lines
    sum.tally.kept += result.tally.kept
    addTo(sum.tally.merged, result.tally.merged)
    addTo(sum.tally.dropped, result.tally.dropped)
  }
  return sum
}

function addTo<K extends string>(sum: Partial<Record<K, number>>, counts: Partial<Record<K, number>>): void {
  for (const [reason, count] of Object.entries(counts) as [K, number][]) sum[reason] = (sum[reason] ?? 0) + count
}

function total(counts: Partial<Record<string, number>>): number {
  return Object.values(counts).reduce((sum: number, count) => sum + (count ?? 0), 0)
}

async function tell(
  imported: readonly Imported[],
  { found, io, dryRun }: { found: FoundSessions; io: Io; dryRun: boolean },
): Promise<void> {
  const columns: Column[] = [
    { title: 'FROM' },
    ...['IMPORTED', 'UPDATED', 'UNCHANGED', 'LEFT ALONE', 'LINES', 'KEPT', 'MERGED', 'DROPPED'].map(
      (title): Column => ({
        title,
        align: 'right',
      }),
    ),
  ]
  const groups = Map.groupBy(imported, (each) => each.found.source)
  const rows = [...groups].map(([source, group]) => {
    const { sessions, tally } = sumOf(group)
    const leftAlone = sessions.empty + sessions['put-away'] + sessions.busy + sessions.failed
    const counts = [sessions.imported, sessions.updated, sessions.unchanged, leftAlone, tally.lines, tally.kept]
    return [sources[source].title, ...[...counts, total(tally.merged), total(tally.dropped)].map(String)]
  })
  await write(io.stdout, outputTable(columns, rows))
  const sum = sumOf(imported)
  await write(io.stdout, reasonLines(sum))
  await tellUnusable(found, io)
  for (const { found: session, failure } of imported) {
    if (failure !== undefined) await write(io.stderr, `${harmlessLine(session.path)}: ${harmlessLine(failure)}\n`)
  }
  if (dryRun) await write(io.stderr, 'This was a dry run: nothing was imported.\n')
  else if (sum.added > 0) await write(io.stderr, 'To see them: tapetree sessions list --all\n')
}

/** Why lines have no entry of their own, and what happened to sessions that are left alone. */
function reasonLines({ tally, sessions, closed }: Sum): string {
  const merged = Object.entries(tally.merged).map(([reason, count]) => [
    `merged ${count}`,
    mergeReasons[reason as keyof typeof mergeReasons],
  ])
  const dropped = Object.entries(tally.dropped).map(([reason, count]) => [
    `dropped ${count}`,
    dropReasons[reason as keyof typeof dropReasons],
  ])
  const others = [
    [sessions.empty, 'without a message'],
    [sessions['put-away'], 'archived or in the trash here: restore them to update them'],
    [sessions.busy, 'open in another process'],
    [sessions.failed, 'that could not be imported'],
  ] as const
  const lines = [...merged, ...dropped].map(([what, why]) => `  ${what}: ${why}\n`)
  for (const [count, why] of others) if (count > 0) lines.push(`  left alone ${count}: ${why}\n`)
  if (closed > 0) lines.push(`  closed ${counted(closed, 'tool call')} without a result\n`)
  return lines.join('')
}

async function tellUnusable({ unusable }: FoundSessions, io: Io): Promise<void> {
  for (const { path, reason } of unusable.slice(0, maxListed)) {
    await write(io.stderr, `Not imported: ${harmlessLine(path)}: ${harmlessLine(reason)}\n`)
  }
  if (unusable.length > maxListed) await write(io.stderr, `And ${unusable.length - maxListed} more files.\n`)
}

const maxListed = 20

function jsonOf(imported: readonly Imported[], { unusable }: FoundSessions): unknown {
  return {
    sessions: imported.map(({ found, result, failure }) => ({
      source: found.source,
      source_id: found.session.id,
      path: found.path,
      ...(found.session.cwd !== undefined && { folder: found.session.cwd }),
      outcome: result?.outcome ?? 'failed',
      ...(failure !== undefined && { failure }),
      ...(result && { id: result.id, added: result.added, closed: result.closed, lines: result.tally }),
    })),
    unusable,
  }
}
