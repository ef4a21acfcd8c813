import { spawn, type ChildProcessByStdio } from 'node:child_process'
import { once } from 'node:events'
import type { Readable } from 'node:stream'
import { z } from 'zod'
import { ToolProblem } from '../tool-problem.ts'

/** What can be handed to a program. */
export const argumentSchema = z
  .string()
  .min(1)
  .max(4000)
  .refine((text) => !text.includes('\0'), { error: 'It cannot contain a NUL character.' })

export interface Search {
  arguments: string[]
  /** Where it begins, as a folder that a child can enter. */
  workingFolder: string
  /** A descriptor to search in place of files. */
  input?: number
  signal: AbortSignal
  /** Takes output as it comes; false ends the search. */
  take: (text: string) => boolean
}

const maxErrorLength = 4000

/**
 * Runs ripgrep without a shell, a configuration or our environment. Gives what it complained of, if it found something all the
 * same, and throws its complaint where there is nothing else.
 */
export async function ripgrep(search: Search): Promise<{ complaints: string }> {
  // Where there is no binary for the platform, importing it fails: that is for this call, not for the whole package.
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
  // Whoever stops reading before the end is not told twice.
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

/** Patterns for names as a first look; ripgrep's own `--glob` would override the ignore rules. */
export function nameArguments(names: string[] | undefined): string[] {
  return names ? [...names.map((name) => `--type-add=wanted:${name}`), '--type=wanted'] : []
}

const fixedArguments = [
  '--no-config',
  '--hidden',
  '--glob=!.git',
  // Ignore files count also where there is no repository.
  '--no-require-git',
  '--color=never',
  '--sort=path',
  '--null',
]

/** Home is needed for the user's own ignore rules; everything else could only do harm. */
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
