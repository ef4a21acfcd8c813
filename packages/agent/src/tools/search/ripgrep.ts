import { spawn, type ChildProcessByStdio } from 'node:child_process'
import { once } from 'node:events'
import type { Readable } from 'node:stream'
import { z } from 'zod'
import { ToolProblem } from '../tool-problem.ts'

/** A valid argument of a program. */
export const argumentSchema = z
  .string()
  .min(1)
  .max(4000)
  .refine((text) => !text.includes('\0'), { error: 'It cannot contain a NUL character.' })

export interface Search {
  arguments: string[]
  /** The start of the search, as a folder that a child process can enter. */
  workingFolder: string
  /** A descriptor to search instead of files. */
  input?: number
  signal: AbortSignal
  /** Receives output as it arrives; returning false ends the search. */
  take: (text: string) => boolean
}

const maxErrorLength = 4000

/**
 * Runs ripgrep without a shell, a configuration or our environment. Returns its error output if it found
 * something, and throws it otherwise.
 */
export async function ripgrep(search: Search): Promise<{ complaints: string }> {
  // Importing it fails on a platform without a binary; only this call fails then, not the whole package.
  const { rgPath } = await import('@vscode/ripgrep')
  search.signal.throwIfAborted()
  const child = spawn(rgPath, [...fixedArguments, ...search.arguments], {
    cwd: search.workingFolder,
    env: environment(),
    stdio: [search.input ?? 'ignore', 'pipe', 'pipe'],
    windowsHide: true,
  }) as ChildProcessByStdio<null, Readable, Readable>
  const stop = (): void => void child.kill('SIGKILL')
  search.signal.addEventListener('abort', stop, { once: true })
  const ended = Promise.all([once(child, 'close') as Promise<[number | null]>, readStart(child.stderr)])
  // If the caller stops reading early, the error is not reported again.
  ended.catch(() => undefined)
  try {
    let hasOutput = false
    child.stdout.setEncoding('utf8')
    for await (const text of child.stdout) {
      hasOutput = true
      if (search.take(text as string)) continue
      stop()
      break
    }
    const [[exitCode], complaints] = await ended
    search.signal.throwIfAborted()
    if (exitCode === 2 && !hasOutput) throw new ToolProblem(`The search failed. ${complaints}`)
    return { complaints }
  } finally {
    stop()
    search.signal.removeEventListener('abort', stop)
  }
}

/** Name patterns as a first filter; ripgrep's own `--glob` would override the ignore rules. */
export function nameArguments(names: string[] | undefined): string[] {
  return names ? [...names.map((name) => `--type-add=wanted:${name}`), '--type=wanted'] : []
}

const fixedArguments = [
  '--no-config',
  '--hidden',
  '--glob=!.git',
  // Ignore files also apply outside of a repository.
  '--no-require-git',
  '--color=never',
  '--sort=path',
  '--null',
]

/** HOME is needed for the user's own ignore rules; other variables could only do harm. */
function environment(): NodeJS.ProcessEnv {
  const { HOME, XDG_CONFIG_HOME, USERPROFILE, SystemRoot } = process.env
  return { HOME, XDG_CONFIG_HOME, USERPROFILE, SystemRoot }
}

async function readStart(stream: Readable): Promise<string> {
  let text = ''
  stream.setEncoding('utf8')
  for await (const chunk of stream) {
    if (text.length < maxErrorLength) text += chunk as string
  }
  return text.slice(0, maxErrorLength).replaceAll(/^rg: /gm, '').trim()
}
