import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import type { FakeHome } from './fake-home.ts'

/** The bundle as published. The tests build it first. */
export const bundle = fileURLToPath(new URL('../../dist/bin/tapetree.js', import.meta.url))

export interface CommandEnd {
  code: number | null
  stdout: string
  stderr: string
}

/** Runs the command in its own process, without a terminal, as a script would. */
export async function runBundle(
  { cwd, env }: Pick<FakeHome, 'cwd' | 'env'>,
  args: readonly string[],
  input = '',
): Promise<CommandEnd> {
  const child = spawn(process.execPath, [bundle, ...args], { cwd, env, stdio: 'pipe' })
  child.stdin.end(input)
  const [[code], stdout, stderr] = await Promise.all([
    once(child, 'close') as Promise<[number | null]>,
    text(child.stdout),
    text(child.stderr),
  ])
  return { code, stdout, stderr }
}
