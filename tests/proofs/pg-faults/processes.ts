import { readdirSync, readFileSync } from 'node:fs'
import { setTimeout } from 'node:timers/promises'

/** Sends a signal to a process and then to its children, so that it starts no more of them. */
export function signalTree(pid: number, signal: NodeJS.Signals): void {
  send(pid, signal)
  for (const child of childrenOf(pid)) send(child, signal)
}

/** `kill -9` for a process and its children. Resolves when they are gone, and what they had open is closed. */
export async function killTree(pid: number): Promise<void> {
  send(pid, 'SIGSTOP') // it starts no more of them, once it has stopped
  await untilStopped(pid)
  const all = [pid, ...childrenOf(pid)]
  for (const each of all) send(each, 'SIGKILL')
  while (all.some(isRunning)) await setTimeout(5)
}

/** Resolves when `SIGSTOP` has taken effect, or the process is gone. */
export async function untilStopped(pid: number): Promise<void> {
  while (isRunning(pid) && !['T', 't'].includes(statusOf(pid)?.state ?? '')) await setTimeout(1)
}

export function childrenOf(parent: number): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => statusOf(pid)?.parent === parent)
}

/** A process that has ended and was not waited for yet is not running. */
export function isRunning(pid: number): boolean {
  const status = statusOf(pid)
  return status !== undefined && status.state !== 'Z'
}

function statusOf(pid: number): { state: string; parent: number } | undefined {
  try {
    // The name of the program stands in parentheses and may have any character.
    const [state = '', parent = ''] = (readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1) ?? '').split(' ')
    return { state, parent: Number(parent) }
  } catch {
    return undefined
  }
}

function send(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal)
  } catch {
    // It has just ended.
  }
}
