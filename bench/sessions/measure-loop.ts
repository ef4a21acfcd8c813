import { openSync, readSync } from 'node:fs'
import { setTimeout } from 'node:timers/promises'

export interface LoopMeasure {
  /** How late the event loop came to its timers, in milliseconds. */
  delayP99Ms: number
  /** Processor time of this process, in milliseconds. */
  cpuMs: number
}

const intervalMs = 2

export async function measureLoop(ms: number): Promise<LoopMeasure> {
  const delays: number[] = []
  const cpu = process.cpuUsage()
  let last = { at: performance.now(), queued: queuedMs() }
  const timer = setInterval(() => {
    const now = { at: performance.now(), queued: queuedMs() }
    delays.push(Math.max(0, now.at - last.at - intervalMs - (now.queued - last.queued)))
    last = now
  }, intervalMs)
  await setTimeout(ms)
  clearInterval(timer)
  const { user, system } = process.cpuUsage(cpu)
  const sorted = delays.toSorted((left, right) => left - right)
  const delayP99Ms = sorted[Math.ceil(0.99 * sorted.length) - 1] ?? ms
  return { delayP99Ms, cpuMs: (user + system) / 1000 }
}

const schedule = process.platform === 'linux' ? openSync('/proc/thread-self/schedstat', 'r') : undefined
const buffer = Buffer.alloc(100)

/** For how long this thread could have run while others did. On a quiet machine next to nothing; on a busy one it is not our delay. */
function queuedMs(): number {
  if (schedule === undefined) return 0
  const length = readSync(schedule, buffer, 0, buffer.length, 0)
  return Number(buffer.toString('latin1', 0, length).split(' ')[1]) / 1e6
}
