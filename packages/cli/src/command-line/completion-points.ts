import type { CommandSpec, Completes, OptionSpec } from './command.ts'
import { shownOptions } from './command-usage.ts'

/** What may follow the words of a command or group. */
export interface CompletionPoint {
  /** Such as `sessions list`; empty at the top level. */
  path: string
  commands: { word: string; summary: string }[]
  options: OptionSpec[]
  positional: Completes | undefined
}

export function completionPoints(commands: readonly CommandSpec[]): CompletionPoint[] {
  const paths = new Set([
    '',
    ...commands.flatMap(({ path }) => path.map((_, index) => path.slice(0, index + 1).join(' '))),
  ])
  return [...paths].map((path) => pointAt(path, commands))
}

function pointAt(path: string, commands: readonly CommandSpec[]): CompletionPoint {
  const own = commands.find((each) => each.path.join(' ') === path)
  const depth = path === '' ? 0 : path.split(' ').length
  const below = new Map<string, string>()
  for (const each of commands) {
    const word = each.path[depth]
    if (word === undefined || each.path.slice(0, depth).join(' ') !== path) continue
    const isWhole = each.path.length === depth + 1
    if (isWhole || !below.has(word)) below.set(word, isWhole ? each.summary : `commands for ${word}`)
  }
  return {
    path,
    commands: [...below].map(([word, summary]) => ({ word, summary })),
    options: own ? shownOptions(own) : [],
    positional: own?.positionals?.find(({ completes }) => completes !== undefined)?.completes,
  }
}

/** The ways to type an option. */
export function optionWords({ name, short }: OptionSpec): string[] {
  return [`--${name}`, ...(short === undefined ? [] : [`-${short}`])]
}

/** In single quotes, for every shell. */
export function quoted(text: string): string {
  return `'${text.replaceAll("'", String.raw`'\''`)}'`
}
