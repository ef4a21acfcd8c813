import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { readProcess } from './process-table.ts'

/** One process of one boot of a machine. A number alone says little: it is given out again. */
export interface ProcessIdentity {
  bootId: string
  pid: number
  startTime: string
}

let bootId: string | undefined

/** Changes with every start of the machine; empty where the system has no such thing. */
export function currentBootId(): string {
  bootId ??= readBootId()
  return bootId
}

export function ownIdentity(): ProcessIdentity {
  const { pid } = process
  return { bootId: currentBootId(), pid, startTime: readProcess(pid)?.startTime ?? '' }
}

/** Whether this very process is still there: boot, number and start time all match. */
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
    return '' // then start times alone have to do
  }
}
