import type { SnapshotLimits } from '@tapetree/agent/workspace'
import { existsSync } from 'node:fs'
import type { Io } from '../command-line/io.ts'
import { counted } from '../text/amounts.ts'
import { placesOf } from './places.ts'
import { surroundingsOf } from './surroundings.ts'

export const dayMs = 24 * 60 * 60_000

/** How long the user keeps file snapshots, and how large those of a folder may become. */
export async function snapshotLimits(io: Pick<Io, 'env' | 'home'>): Promise<SnapshotLimits> {
  // A project cannot set these, so the folder does not matter.
  const { settings } = await surroundingsOf(io, { cwd: io.home })
  const { maxAgeDays, maxBytes } = settings.values.snapshots
  return { maxAgeMs: maxAgeDays * dayMs, maxBytes }
}

/** Deletes old file snapshots, at most once a day. Stops when it is told to, after the folder at hand. */
export async function retainInBackground(io: Pick<Io, 'env' | 'home'>, signal: AbortSignal): Promise<void> {
  const { workspaces, sessions } = placesOf(io)
  if (!existsSync(workspaces) || !existsSync(sessions)) return
  const { retainSnapshots } = await import('@tapetree/agent/workspace')
  const limits = await snapshotLimits(io)
  if (!signal.aborted) await retainSnapshots({ storesFolder: workspaces, sessionsFolder: sessions, limits, signal })
}

/** A sentence about the limits and the last time that they were applied. */
export function retentionText({ maxAgeMs, maxBytes }: SnapshotLimits, last: Date | undefined): string {
  const age = counted(maxAgeMs / dayMs, 'day')
  const size = `${(maxBytes / 1e6).toFixed(0)} MB`
  const when = last ? `last on ${last.toISOString().slice(0, 10)}` : 'not yet'
  return `Old snapshots are deleted by themselves after ${age}, or above ${size} a folder; ${when}.`
}
