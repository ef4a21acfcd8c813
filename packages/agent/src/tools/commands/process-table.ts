import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'

/** One process as the system lists it. */
export interface ProcessEntry {
  pid: number
  parentId: number
  groupId: number
  /** 0 if the system does not report it. */
  sessionId: number
  /** It has ended, and its parent has not reaped it yet. */
  isZombie: boolean
  /** In the system's own unit: only for comparison. */
  startTime: string
  name: string
}

const maxListings = 10

/**
 * Lists all processes. Repeats the listing if a process vanished during the read: it may have started another
 * one that the listing missed.
 */
export function listProcesses(): ProcessEntry[] {
  if (process.platform !== 'linux') return parsePs(ps(['-ax']))
  for (let listing = 1; ; listing++) {
    const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name))
    const found = pids.flatMap((pid) => readProcess(Number(pid)) ?? [])
    if (found.length === pids.length || listing === maxListings) return found
  }
}

/** Undefined if there is no such process. */
export function readProcess(pid: number): ProcessEntry | undefined {
  if (process.platform !== 'linux') return parsePs(ps(['-p', String(pid)]))[0]
  const stat = readProc(pid, 'stat')
  return stat === '' ? undefined : parseStat(stat)
}

/** The initial environment of a process, as `NAME=value` parts; empty if it is unreadable or not available. */
export function environmentOf(pid: number): string[] {
  return process.platform === 'linux' ? readProc(pid, 'environ').split('\0') : []
}

/** A process name may contain spaces and parentheses, so fields are counted from the last parenthesis. */
export function parseStat(stat: string): ProcessEntry | undefined {
  const open = stat.indexOf('(')
  const close = stat.lastIndexOf(')')
  const fields = stat.slice(close + 2).split(' ')
  const [state, parentId, groupId, sessionId] = fields
  const startTime = fields[19]
  if (open < 0 || close < open || state === undefined || startTime === undefined) return undefined
  return {
    pid: Number(stat.slice(0, open)),
    parentId: Number(parentId),
    groupId: Number(groupId),
    sessionId: Number(sessionId),
    isZombie: state === 'Z' || state === 'X',
    startTime,
    name: stat.slice(open + 1, close),
  }
}

/** `lstart` is five words, such as `Sat Nov 14 09:05:00 2026`. */
export function parsePs(table: string): ProcessEntry[] {
  const line = /^\s*(\d+)\s+(\d+)\s+(\d+)\s+(\S+)\s+(\S+\s+\S+\s+\d+\s+[\d:]+\s+\d+)\s+(.+)$/gm
  return [...table.matchAll(line)].map(([, pid, parentId, groupId, state = '', startTime = '', name = '']) => ({
    pid: Number(pid),
    parentId: Number(parentId),
    groupId: Number(groupId),
    sessionId: 0,
    isZombie: state.startsWith('Z'),
    startTime: startTime.replace(/\s+/g, ' '),
    name: name.slice(name.lastIndexOf('/') + 1),
  }))
}

function readProc(pid: number, file: string): string {
  try {
    return readFileSync(`/proc/${pid}/${file}`, 'utf8')
  } catch {
    return '' // it has ended, or belongs to another user
  }
}

function ps(which: string[]): string {
  try {
    const columns = 'pid=,ppid=,pgid=,stat=,lstart=,comm='
    return execFileSync('ps', [...which, '-o', columns], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] })
  } catch {
    return '' // ps exits with an error if there is none
  }
}

/** One process of one boot of a machine. Process ids alone are reused. */
export interface ProcessIdentity {
  bootId: string
  pid: number
  startTime: string
}

let bootId: string | undefined

/** Changes with every boot; empty if the system has no such id. */
export function currentBootId(): string {
  bootId ??= readBootId()
  return bootId
}

export function ownIdentity(): ProcessIdentity {
  const { pid } = process
  return { bootId: currentBootId(), pid, startTime: readProcess(pid)?.startTime ?? '' }
}

/** Whether this very process is still running: boot, id and start time all match. */
export function isRunning({ bootId, pid, startTime }: ProcessIdentity): boolean {
  if (bootId !== currentBootId() || startTime === '') return false
  const found = readProcess(pid)
  return found !== undefined && !found.isZombie && found.startTime === startTime
}

function readBootId(): string {
  try {
    return process.platform === 'linux'
      ? readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()
      : execFileSync('sysctl', ['-n', 'kern.bootsessionuuid'], { encoding: 'utf8' }).trim()
  } catch {
    return '' // then only start times are compared
  }
}
