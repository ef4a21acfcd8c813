import { closeSync, constants, ftruncateSync, openSync, renameSync, writeFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'

/** Limits of the kernel (rlimits) for the programs of a command. Absent ones are not limited. */
export interface CommandLimits {
  /** Of processor time, for each process. */
  cpuSeconds?: number
  /** Of memory that a process can write to, for each process. Address space that a program only reserves does not count. */
  memoryBytes?: number
  /** Of the processes and threads of one command. */
  processes?: number
  /** Of each file that is written. */
  fileBytes?: number
}

/** How a command ended. */
export interface CommandExit {
  /** By itself, by its deadline, by a stop request, or by the output limit. Or it could not be started. */
  cause: 'exited' | 'timed-out' | 'stopped' | 'overflowed' | 'not-started'
  code: number | null
  signal: string | null
  /** Size of all output, stored or not. */
  bytes: number
  durationMs: number
  /** Its deadline. */
  deadlineMs: number
  /** The limits that it had. */
  limits?: CommandLimits
  /** Names of processes that outlived the shell and were ended. */
  leftBehind: string[]
  /** Names of processes that could not be ended. */
  survivors: string[]
  /** Why it could not be started, or why some output was not stored. */
  error?: string
}

/** Enough for an outcome with the names of some processes. */
const reservedBytes = 4096

/** Before the command starts, so that its outcome can be written when it has filled the disk. */
export function reserveExit(spool: string): void {
  try {
    writeFileSync(join(spool, preparedName), ' '.repeat(reservedBytes), { mode: 0o600 })
  } catch {
    // The disk is full already. The command may make room.
  }
}

const preparedName = 'exit.prepared'

/**
 * Written atomically, after the output is on disk. It is not synced itself: after a power cut, which is another
 * boot, it is there and complete, or the outcome is unknown.
 */
export function writeExit(spool: string, exit: CommandExit): void {
  const prepared = join(spool, preparedName)
  const bytes = Buffer.from(JSON.stringify(exit))
  // In place: truncating it first would free the reserved space.
  const file = openSync(prepared, constants.O_WRONLY | constants.O_CREAT, 0o600)
  try {
    writeFileSync(file, bytes)
    ftruncateSync(file, bytes.length)
  } finally {
    closeSync(file)
  }
  renameSync(prepared, join(spool, 'exit'))
}

/** Undefined if the command has not ended, or its outcome was not recorded. */
export async function readExit(spool: string): Promise<CommandExit | undefined> {
  try {
    return JSON.parse(await readFile(join(spool, 'exit'), 'utf8')) as CommandExit
  } catch {
    return undefined // missing, or lost in a power cut
  }
}
