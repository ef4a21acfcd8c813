import { accessSync, constants } from 'node:fs'

/** Limits of the kernel (rlimits) for the programs of a command. Absent ones are not limited. */
export interface CommandLimits {
  /** Of processor time, for each process. */
  cpuSeconds?: number
  /** Of memory that a process can write to. Address space that a program only reserves does not count. */
  memoryBytes?: number
  /** Of the user in the sandbox. The kernel does not hold root to it. */
  processes?: number
  /** Of each file that is written. */
  fileBytes?: number
}

/** The command line that puts limits on the command that follows it. A command can lower them further but not raise them. */
export function limitArguments(limits: CommandLimits): string[] {
  const options = Object.entries(limits)
    .filter((entry): entry is [keyof CommandLimits, number] => entry[1] !== undefined)
    .map(([name, limit]) => `--${resources[name]}=${checked(name, limit)}`)
  return options.length === 0 ? [] : [findPrlimit(), ...options, '--']
}

const resources: Record<keyof CommandLimits, string> = {
  cpuSeconds: 'cpu',
  memoryBytes: 'data',
  processes: 'nproc',
  fileBytes: 'fsize',
}

function checked(name: string, limit: number): number {
  if (Number.isSafeInteger(limit) && limit > 0) return limit
  throw new RangeError(`The limit ${name} of a command must be a whole number above 0, not ${limit}.`)
}

function findPrlimit(): string {
  for (const file of ['/usr/bin/prlimit', '/bin/prlimit', '/run/current-system/sw/bin/prlimit']) {
    try {
      accessSync(file, constants.X_OK)
      return file
    } catch {
      // The next one.
    }
  }
  throw new Error('Commands cannot be limited: prlimit (package util-linux) is not installed.')
}
