import { literal, textOf, type Word } from '../words/word.ts'

/** What a command seems to start: used only to match deny and ask rules, never to allow something. */
export interface InnerCommands {
  commands: Word[][]
  /** Text that a shell would run. */
  scripts: string[]
  /** It runs something that is not on the command line. */
  isUnknown: boolean
}

const nothing: InnerCommands = { commands: [], scripts: [], isUnknown: false }

export function innerCommands(words: readonly Word[]): InnerCommands {
  const [first, ...rest] = words
  const program = first && textOf(first)?.replace(/^.*\//, '')
  if (program === undefined) return nothing
  if (program === 'eval') return scriptOf(rest)
  if (shells.has(program)) return scriptAfter(rest)
  if (program === 'find') return { ...nothing, commands: commandsAfterExec(rest) }
  if (!starters.has(program)) return nothing
  const started = rest.find((word) => !isOptionOrSetting(textOf(word)))
  const isUnknown = started !== undefined && textOf(started) === undefined
  return { ...nothing, commands: rest.flatMap((_, index) => startingAt(rest, index)), isUnknown }
}

const shells = new Set(['bash', 'sh', 'dash', 'zsh', 'ksh', 'fish'])

const starters = new Set(
  `sudo doas env nice nohup timeout xargs command builtin exec time stdbuf setsid ionice chrt taskset watch flock chroot unshare nsenter
  strace ltrace parallel npx`.split(/\s+/),
)

function isOptionOrSetting(text: string | undefined): boolean {
  return text !== undefined && /^-|=|^[0-9.]+[smhd]?$/.test(text)
}

function startingAt(words: readonly Word[], index: number): Word[][] {
  const text = textOf(words[index] ?? literal('-'))
  return text === undefined || isOptionOrSetting(text) ? [] : [words.slice(index)]
}

function scriptOf(words: readonly Word[]): InnerCommands {
  const texts = words.map(textOf)
  return texts.includes(undefined) ? { ...nothing, isUnknown: true } : { ...nothing, scripts: [texts.join(' ')] }
}

/** A shell without a script and without a file reads commands from its input. */
function scriptAfter(words: readonly Word[]): InnerCommands {
  const index = words.findIndex((word) => /^-[a-z]*c$/.test(textOf(word) ?? ''))
  if (index !== -1) return scriptOf(words.slice(index + 1, index + 2))
  return { ...nothing, isUnknown: words.every((word) => textOf(word)?.startsWith('-')) }
}

function commandsAfterExec(words: readonly Word[]): Word[][] {
  return words.flatMap((word, index) =>
    /^-(?:exec|ok)(?:dir)?$/.test(textOf(word) ?? '') ? startingAt(words, index + 1) : [],
  )
}
