import { collectSnapshots, listSnapshotStores } from '@tapetree/agent/workspace'
import { existsSync } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { flag, type CommandRun } from '../../command-line/command.ts'
import { exitCodes } from '../../command-line/exit-code.ts'
import { printJson, write } from '../../command-line/io.ts'
import { placesOf } from '../../host/places.ts'
import { counted } from '../../text/amounts.ts'
import { harmlessLine } from '../../text/harmless.ts'
import { outputTable } from '../../text/output-table.ts'

export const workspaceSize: CommandRun = async (invocation, io) => {
  const stores = await listSnapshotStores(placesOf(io).workspaces)
  const total = stores.reduce((sum, { bytes }) => sum + bytes, 0)
  if (flag(invocation, 'json')) {
    await printJson(io, { workspaces: stores, total_bytes: total })
    return exitCodes.ok
  }
  if (stores.length === 0) {
    await write(io.stderr, 'There are no file snapshots yet.\n')
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
  return exitCodes.ok
}

export const workspaceGc: CommandRun = async (invocation, io) => {
  const { workspaces, sessions } = placesOf(io)
  await mkdir(sessions, { recursive: true, mode: 0o700 })
  const collected = await collectSnapshots({ storesFolder: workspaces, sessionsFolder: sessions })
  if (flag(invocation, 'json')) {
    const rows = collected.map(({ bytesBefore, ...store }) => ({ ...store, bytes_before: bytesBefore }))
    await printJson(io, { workspaces: rows })
    return exitCodes.ok
  }
  const before = collected.reduce((sum, { bytesBefore }) => sum + bytesBefore, 0)
  const after = collected.reduce((sum, { bytes }) => sum + bytes, 0)
  const folders = counted(collected.length, 'folder')
  await write(
    io.stderr,
    `The file snapshots of ${folders} use ${megabytes(after)} now. They used ${megabytes(before)}.\n`,
  )
  return exitCodes.ok
}

function megabytes(bytes: number): string {
  return `${(bytes / 1e6).toFixed(1)} MB`
}
