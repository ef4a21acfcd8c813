import { renameSync, writeFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'

/** How a command came to its end. */
export interface CommandExit {
  /** By itself, or by whom: its deadline, somebody who stopped it, the limit of its output. Or it could not be started. */
  cause: 'exited' | 'timed-out' | 'stopped' | 'overflowed' | 'not-started'
  code: number | null
  signal: string | null
  /** Everything it printed, kept or not. */
  bytes: number
  durationMs: number
  /** The time it had. */
  deadlineMs: number
  /** Names of the processes that were still there when its shell had ended by itself; they were ended. */
  leftBehind: string[]
  /** Names of the processes that could not be ended. */
  survivors: string[]
  /** Why it could not be started, or why not all of its output was kept. */
  error?: string
}

/**
 * Appears whole, and must come after the output is on the disk. It is not synced itself: after a power cut, which is another
 * boot, it is there and whole, or the outcome is unknown.
 */
export function writeExit(spool: string, exit: CommandExit): void {
  const prepared = join(spool, 'exit.prepared')
  writeFileSync(prepared, JSON.stringify(exit), { mode: 0o600 })
  renameSync(prepared, join(spool, 'exit'))
}

/** Undefined where the command has not ended, or nobody was there to say how. */
export async function readExit(spool: string): Promise<CommandExit | undefined> {
  try {
    return JSON.parse(await readFile(join(spool, 'exit'), 'utf8')) as CommandExit
  } catch {
    return undefined // there is none, or it was cut off with the power
  }
}
