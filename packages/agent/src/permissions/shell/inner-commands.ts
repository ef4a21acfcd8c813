import { literal, textOf, type Word } from './word.ts'

/** What a command seems to start: only good for finding what is forbidden, never for allowing something. */
export interface InnerCommands {
  commands: Word[][]
  /** Text that a shell would run. */
  scripts: string[]
}

export function innerCommands(words: readonly Word[]): InnerCommands {
  const [first, ...rest] = words
  const program = first && textOf(first)?.replace(/^.*\//, '')
  if (program === undefined) return { commands: [], scripts: [] }
  if (program === 'eval') return { commands: [], scripts: [rest.map(textOf).join(' ')] }
  if (shells.has(program)) return { commands: [], scripts: scriptsAfter(rest) }
  if (program === 'find') return { commands: commandsAfterExec(rest), scripts: [] }
  return { commands: starters.has(program) ? rest.flatMap((_, index) => startingAt(rest, index)) : [], scripts: [] }
}

const shells = new Set(['bash', 'sh', 'dash', 'zsh', 'ksh', 'fish'])

const starters = new Set(
  `sudo doas env nice nohup timeout xargs command builtin exec time stdbuf setsid ionice chrt taskset watch flock chroot unshare nsenter
  strace ltrace parallel npx`.split(/\s+/),
)

function startingAt(words: readonly Word[], index: number): Word[][] {
  const text = textOf(words[index] ?? literal('-'))
  return text === undefined || /^-|=/.test(text) ? [] : [words.slice(index)]
}

function scriptsAfter(words: readonly Word[]): string[] {
  const index = words.findIndex((word) => /^-[a-z]*c$/.test(textOf(word) ?? ''))
  const script = index === -1 ? undefined : words[index + 1]
  const text = script && textOf(script)
  return text === undefined ? [] : [text]
}

function commandsAfterExec(words: readonly Word[]): Word[][] {
  return words.flatMap((word, index) =>
    /^-(?:exec|ok)(?:dir)?$/.test(textOf(word) ?? '') ? startingAt(words, index + 1) : [],
  )
}
