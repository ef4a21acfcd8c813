import type { CommandSpec, Completes, OptionSpec } from './command.ts'
import { shownOptions } from './command-usage.ts'

/** What may follow the words of a command or of a group. */
export interface CompletionPoint {
  /** `sessions list`; empty at the beginning. */
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
    if (isWhole || !below.has(word)) below.set(word, isWhole ? each.summary : `${word} and what belongs to it`)
  }
  return {
    path,
    commands: [...below].map(([word, summary]) => ({ word, summary })),
    options: own ? shownOptions(own) : [],
    positional: own?.positionals?.find(({ completes }) => completes !== undefined)?.completes,
  }
}

/** The words by which an option is typed. */
export function optionWords({ name, short }: OptionSpec): string[] {
  return [`--${name}`, ...(short === undefined ? [] : [`-${short}`])]
}

/** In single quotes, for every shell. */
export function quoted(text: string): string {
  return `'${text.replaceAll("'", String.raw`'\''`)}'`
}
