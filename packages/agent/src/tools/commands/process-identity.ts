import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { readProcess } from './process-table.ts'

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
