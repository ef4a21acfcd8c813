import {
  collectSnapshots,
  lastRetention,
  listSnapshotStores,
  type CollectedStore,
  type SnapshotLimits,
} from '@tapetree/agent/workspace'
import { existsSync } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { flag, type CommandRun } from '../../command-line/command.ts'
import { exitCodes } from '../../command-line/exit-code.ts'
import { printJson, write } from '../../command-line/io.ts'
import { placesOf } from '../../host/places.ts'
import { dayMs, retentionText, snapshotLimits } from '../../host/retain-snapshots.ts'
import { counted } from '../../text/amounts.ts'
import { harmlessLine } from '../../text/harmless.ts'
import { outputTable } from '../../text/output-table.ts'

export const workspaceSize: CommandRun = async (invocation, io) => {
  const { workspaces } = placesOf(io)
  const limits = await snapshotLimits(io)
  const stores = await listSnapshotStores(workspaces)
  const total = stores.reduce((sum, { bytes }) => sum + bytes, 0)
  const last = lastRetention(workspaces)
  if (flag(invocation, 'json')) {
    await printJson(io, {
      workspaces: stores,
      total_bytes: total,
      max_bytes: limits.maxBytes,
      max_age_days: limits.maxAgeMs / dayMs,
      last_retention: last?.toISOString() ?? null,
    })
    return exitCodes.ok
  }
  if (stores.length === 0) {
    await write(io.stderr, noSnapshots)
    return exitCodes.ok
  }
  const rows = stores
    .toSorted((a, b) => b.bytes - a.bytes)
    .map(({ folder, bytes }) => [
      megabytes(bytes),
      existsSync(folder) ? harmlessLine(folder) : `${harmlessLine(folder)} (missing)`,
    ])
  await write(io.stdout, outputTable([{ title: 'SIZE' }, { title: 'FOLDER', flexible: true }], rows, io.stdout.columns))
  await write(io.stderr, `${megabytes(total)} in all. To delete old snapshots: tapetree workspace gc\n`)
  await write(io.stderr, `${retentionText(limits, last)}\n`)
  return exitCodes.ok
}

export const workspaceGc: CommandRun = async (invocation, io) => {
  const { workspaces, sessions } = placesOf(io)
  await mkdir(sessions, { recursive: true, mode: 0o700 })
  const limits = await snapshotLimits(io)
  const collected = await collectSnapshots({ storesFolder: workspaces, sessionsFolder: sessions, limits })
  if (flag(invocation, 'json')) {
    const rows = collected.map(({ bytesBefore, unreadableLogs, ...store }) => {
      return { ...store, bytes_before: bytesBefore, unreadable_logs: unreadableLogs }
    })
    await printJson(io, { workspaces: rows })
    return exitCodes.ok
  }
  if (collected.length === 0) {
    await write(io.stderr, noSnapshots)
    return exitCodes.ok
  }
  for (const store of collected) await write(io.stderr, `${collectedText(store, limits)}\n`)
  const before = collected.reduce((sum, { bytesBefore }) => sum + bytesBefore, 0)
  const after = collected.reduce((sum, { bytes }) => sum + bytes, 0)
  const folders = counted(collected.length, 'folder')
  await write(
    io.stderr,
    `The file snapshots of ${folders} use ${megabytes(after)} now. They used ${megabytes(before)}.\n`,
  )
  return exitCodes.ok
}

const noSnapshots = 'There are no file snapshots yet.\n'

type KeptReason = keyof CollectedStore['kept']

/** What is kept of a folder, and why. */
function collectedText({ folder, bytes, kept, unreadableLogs }: CollectedStore, limits: SnapshotLimits): string {
  const name = harmlessLine(folder)
  const [missing] = unreadableLogs
  if (missing !== undefined)
    return `${name}: kept everything, because a session that may need it cannot be read: ${harmlessLine(missing)}`
  const reasons: Record<KeptReason, string> = {
    branch: 'at messages of current branches',
    pinned: 'newest of a session, or needed by an open restore or a variant',
    recent: `from the last ${counted(limits.maxAgeMs / dayMs, 'day')}`,
    message: 'at older messages',
  }
  const counts = (Object.keys(reasons) as KeptReason[]).filter((reason) => kept[reason] > 0)
  const total = counts.reduce((sum, reason) => sum + kept[reason], 0)
  const why = counts.map((reason) => `${kept[reason]} ${reasons[reason]}`).join(', ')
  const isOver =
    bytes > limits.maxBytes ? ` They use more than ${megabytes(limits.maxBytes)}, and sessions need them.` : ''
  return `${name}: kept ${counted(total, 'snapshot')}${total === 0 ? '' : `: ${why}`}.${isOver}`
}

function megabytes(bytes: number): string {
  return `${(bytes / 1e6).toFixed(1)} MB`
}
