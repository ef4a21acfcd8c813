// Runs commands side by side and prints the output of each in one piece.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { text } from 'node:stream/consumers'

export interface Check {
  name: string
  command: string
  /** What to do if it fails. */
  advice?: string
}

export interface CheckResult {
  check: Check
  ok: boolean
  seconds: number
  output: string
}

/** Runs a check in a shell. Its output is kept until it ends, unless it is to be shown as it comes. */
export async function runCheck(check: Check, { isShown = false } = {}): Promise<CheckResult> {
  const start = performance.now()
  const stdio = isShown ? 'inherit' : 'pipe'
  const child = spawn(`${check.command} 2>&1`, { shell: true, stdio: ['ignore', stdio, stdio] })
  const closed = once(child, 'close') as Promise<[number | null]>
  const output = child.stdout === null ? '' : await text(child.stdout)
  const [status] = await closed
  return { check, ok: status === 0, seconds: (performance.now() - start) / 1000, output }
}

/** Prints a line for each check, and what to do about those that failed. Returns whether all passed. */
export function report(results: readonly CheckResult[]): boolean {
  for (const { check, ok, seconds } of results) {
    console.log(`${ok ? 'ok  ' : 'FAIL'} ${check.name.padEnd(14)} ${seconds.toFixed(1)} s`)
  }
  const failed = results.filter((result) => !result.ok)
  for (const { check } of failed) if (check.advice !== undefined) console.log(`${check.name}: ${check.advice}`)
  return failed.length === 0
}
