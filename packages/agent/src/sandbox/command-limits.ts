import { accessSync, constants, existsSync, mkdirSync, readdirSync, rmdirSync, statSync } from 'node:fs'
import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import type { CommandLimits } from '../tools/commands/exit-file.ts'
import { messageOf } from '../util/message-of.ts'

/** The command line that puts limits on the command that follows it. A command can lower them further but not raise them. */
export function limitArguments(limits: CommandLimits): string[] {
  const options = Object.entries(limits)
    .filter((entry): entry is [keyof CommandLimits, number] => entry[1] !== undefined)
    .map(([name, limit]) => optionOf(name, checked(name, limit)))
  return options.length === 0 ? [] : [findPrlimit(), ...options, '--']
}

const resources: Record<keyof CommandLimits, string> = {
  cpuSeconds: 'cpu',
  memoryBytes: 'data',
  processes: 'nproc',
  fileBytes: 'fsize',
}

/** How much longer a program may run that handles the signal for its processor time. Then the kernel kills it. */
const cpuGraceSeconds = 1

function optionOf(name: keyof CommandLimits, limit: number): string {
  const hard = name === 'cpuSeconds' ? `:${limit + cpuGraceSeconds}` : ''
  return `--${resources[name]}=${limit}${hard}`
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

/**
 * The command line that puts a box into a control group, which counts processes. Only root needs it: the kernel does not hold root to the limit for
 * processes of `limitArguments`. It stands before the box, because control groups are read-only in it.
 */
export function groupArguments({ processes }: CommandLimits, base = groupFolder()): string[] {
  if (processes === undefined || process.geteuid?.() !== 0) return []
  const problem = groupProblem(base)
  if (problem !== undefined) throw new Error(problem)
  removeOldGroups(base)
  const group = join(base, `${groupPrefix}${randomUUID()}`)
  return ['/bin/sh', '-c', runInGroup, 'sh', group, String(checked('processes', processes) + processesOfBox)]
}

/** Why these limits cannot be enforced: a sentence. */
export function limitProblem(limits: CommandLimits, base = groupFolder()): string | undefined {
  try {
    limitArguments(limits)
  } catch (error) {
    return messageOf(error)
  }
  return limits.processes !== undefined && process.geteuid?.() === 0 ? groupProblem(base) : undefined
}

const groupPrefix = 'tapetree-'
/** The box itself: bubblewrap, twice with its child, and the shell that enters the group. */
const processesOfBox = 4
/** A group is made before its command enters it, so an empty group may be a new one. */
const oldMs = 60_000

/** Version 1 of control groups has a folder for each kind of limit. */
function groupFolder(): string {
  const versionOne = '/sys/fs/cgroup/pids'
  return existsSync(versionOne) ? versionOne : '/sys/fs/cgroup'
}

/** The inner shell enters the group, and the outer one removes it. The last processes may still be ending after bubblewrap has ended. */
const runInGroup = `group=$1 most=$2
shift 2
mkdir "$group" && echo "$most" > "$group/pids.max" || exit 126
/bin/sh -c 'echo $$ > "$1/cgroup.procs" || exit 126; shift; exec "$@"' sh "$group" "$@"
code=$?
for each in 1 2 3 4 5 6 7 8 9; do
  rmdir "$group" 2>/dev/null && break
  sleep 0.1
done
exit $code`

function groupProblem(base: string): string | undefined {
  const group = join(base, `${groupPrefix}${randomUUID()}`)
  let isMade = false
  try {
    mkdirSync(group)
    isMade = true
    accessSync(join(group, 'pids.max'), constants.W_OK)
    return undefined
  } catch {
    return `The processes of commands cannot be limited: the kernel does not hold root to such a limit, and no control group can be made in ${base}. Use an ordinary user, or leave out the limit.`
  } finally {
    if (isMade) rmdirSync(group)
  }
}

/** Groups of commands that were killed. A group with processes in it cannot be removed. */
function removeOldGroups(base: string): void {
  for (const name of readdirSync(base)) {
    const group = join(base, name)
    try {
      if (name.startsWith(groupPrefix) && Date.now() - statSync(group).mtimeMs > oldMs) rmdirSync(group)
    } catch {
      // It is in use, or gone.
    }
  }
}
