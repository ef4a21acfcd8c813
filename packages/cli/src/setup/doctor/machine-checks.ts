import { acquireWriterLock } from '@tapetree/session/stores/file'
import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, rm, statfs } from 'node:fs/promises'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { promisify } from 'node:util'
import type { Places } from '../../host/places.ts'
import { version } from '../../command-line/version.ts'
import { failed, ok, warning, type Check } from './check.ts'

/** Requirements of the machine: Node, disk space, locks, search. */
export async function machineChecks(places: Places): Promise<Check[]> {
  return [
    ok('version', `This is tapetree ${version} on Node ${process.versions.node}, ${process.platform} ${process.arch}.`),
    await checkRoom(places.sessions),
    await checkLock(places.sessions),
    checkSearch(),
    await checkRipgrep(),
    await checkBubblewrap(),
  ]
}

const littleRoom = 1e9
const noRoom = 50e6

async function checkRoom(folder: string): Promise<Check> {
  await mkdir(folder, { recursive: true, mode: 0o700 })
  const { bavail, bsize } = await statfs(folder)
  const free = bavail * bsize
  const says = `${(free / 1e9).toFixed(1)} GB are free on the disk of the sessions (${folder}).`
  if (free < noRoom) return failed('disk', says, 'Free some disk space: nothing can be saved without it.')
  return free < littleRoom ? warning('disk', says, 'Free some disk space.') : ok('disk', says)
}

/** Takes a lock and releases it, to see whether this file system supports locks. */
async function checkLock(folder: string): Promise<Check> {
  const place = await mkdtemp(join(folder, '.doctor-'))
  try {
    const attempt = await acquireWriterLock(join(place, 'lock'))
    if (attempt.type !== 'locked') {
      const why = attempt.type === 'unavailable' ? attempt.reason : 'Another process holds it.'
      return failed('lock', `Files in ${folder} cannot be locked. ${why}`, 'Keep the sessions on a local disk.')
    }
    attempt.lock.release()
    return ok('lock', `File locks work (${attempt.lock.kind}), so a session has one writer.`)
  } finally {
    await rm(place, { recursive: true, force: true })
  }
}

function checkSearch(): Check {
  const database = new DatabaseSync(':memory:')
  try {
    database.exec('CREATE VIRTUAL TABLE words USING fts5(text)')
    return ok('search', 'SQLite has full-text search.')
  } catch {
    return failed('search', 'The SQLite of this Node has no full-text search (FTS5).', 'Install Node from nodejs.org.')
  } finally {
    database.close()
  }
}

async function checkRipgrep(): Promise<Check> {
  try {
    const { rgPath } = (await import('@vscode/ripgrep')) as { rgPath: string }
    const { stdout } = await promisify(execFile)(rgPath, ['--version'], { timeout: 5000 })
    return ok('ripgrep', `${stdout.split('\n')[0]} runs.`)
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error)
    return failed('ripgrep', `ripgrep does not run: ${why}`, 'Reinstall tapetree with optional dependencies.')
  }
}

/** Nothing needs it yet; bug reports show whether it is installed. */
async function checkBubblewrap(): Promise<Check> {
  if (process.platform !== 'linux') return ok('bubblewrap', 'Only for Linux, and not required.')
  try {
    const { stdout } = await promisify(execFile)('bwrap', ['--version'], { timeout: 5000 })
    return ok('bubblewrap', `${stdout.trim()} is installed.`)
  } catch {
    return ok('bubblewrap', 'Not installed. Nothing requires it.')
  }
}
