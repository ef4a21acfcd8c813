import { severalThings, startOf, textOf, withoutStart, type Word } from '../words/word.ts'

/** What a command seems to start: used only to match deny and ask rules, never to allow something. */
export interface InnerCommands {
  commands: readonly (readonly Word[])[]
  /** Text that a shell would run. */
  scripts: readonly string[]
  /** It runs something that is not on the command line. */
  isUnknown: boolean
}

/** Longer chains count as unknown, because each starter makes every later word a command to look at. */
const maxStarters = 16

/** What a command starts, and what those commands start, at any depth. */
export function innerCommands(words: readonly Word[]): InnerCommands {
  const commands: (readonly Word[])[] = []
  const scripts = new Set<string>()
  // Each command is an end of the words, with or without those that `xargs` adds.
  const seen = new Set<number>()
  let starterCount = 0
  const look = (outer: readonly Word[]): boolean => {
    const program = programOf(outer)
    if (starters.has(program)) starterCount += 1
    if (starterCount > maxStarters) return true
    const started = startedBy(program, outer.slice(1))
    if (started.script !== undefined) scripts.add(started.script)
    const fresh = started.starts.flatMap((start) => {
      const key = 2 * (started.words.length - start) + (started.words.at(-1) === severalThings ? 1 : 0)
      if (seen.has(key)) return []
      seen.add(key)
      return [started.words.slice(start)]
    })
    commands.push(...fresh)
    // It is unclear which of the others are commands and which are arguments.
    const [isUnknown = false] = fresh.map(look)
    return started.isUnknown || isUnknown
  }
  const isUnknown = look(words)
  return { commands, scripts: [...scripts], isUnknown: isUnknown || starterCount > maxStarters }
}

function programOf([first]: readonly Word[]): string {
  return (first && textOf(first)?.replace(/^.*\//, '')) ?? ''
}

interface Started {
  words: readonly Word[]
  /** Where in the words a command may begin. */
  starts: readonly number[]
  script?: string
  isUnknown: boolean
}

const nothing: Started = { words: [], starts: [], isUnknown: false }

function startedBy(program: string, rest: readonly Word[]): Started {
  if (program === 'eval') return scriptOf(rest)
  if (shells.has(program)) return scriptAfter(rest)
  if (program === 'find') return { ...nothing, words: rest, starts: startsIn(rest, isAfterExec) }
  if (!starters.has(program)) return nothing
  const words = program === 'xargs' || program === 'parallel' ? withInput(rest) : rest
  const start = words.findIndex((word) => !isOptionOrSetting(textOf(word)))
  const isUnknown = start !== -1 && textOf(words[start] as Word) === undefined
  const script = program === 'env' ? afterSplit(rest) : joiners.has(program) && start !== -1 ? rest.slice(start) : []
  return { ...(script.length > 0 ? scriptOf(script) : nothing), words, starts: startsIn(words), isUnknown }
}

const shells = new Set(['bash', 'sh', 'dash', 'zsh', 'ksh', 'fish'])

const starters = new Set(
  `sudo doas env nice nohup timeout xargs command builtin exec time stdbuf setsid ionice chrt taskset watch flock chroot unshare nsenter
  strace ltrace parallel npx find`.split(/\s+/),
)

/** They join their operands to a line for a shell. */
const joiners = new Set(['watch', 'parallel'])

function isOptionOrSetting(text: string | undefined): boolean {
  return text !== undefined && /^-|=|^[0-9.]+[smhd]?$/.test(text)
}

function startsIn(
  words: readonly Word[],
  isWanted: (words: readonly Word[], index: number) => boolean = () => true,
): number[] {
  return [...words.keys()].filter((index) => {
    const text = textOf(words[index] as Word)
    return text !== undefined && !isOptionOrSetting(text) && isWanted(words, index)
  })
}

function isAfterExec(words: readonly Word[], index: number): boolean {
  const before = words[index - 1]
  return before !== undefined && /^-(?:exec|ok)(?:dir)?$/.test(textOf(before) ?? '')
}

/** The input takes the place of each word with a mark, or follows the words. */
function withInput(words: readonly Word[]): Word[] {
  const marks = ['{}', ...words.flatMap((word, index) => markAt(textOf(word), words[index + 1]) ?? [])]
  const fed = words.map((word) => (marks.some((mark) => textOf(word)?.includes(mark)) ? severalThings : word))
  return fed.at(-1) === severalThings ? fed : [...fed, severalThings]
}

function markAt(option: string | undefined, next: Word | undefined): string | undefined {
  const attached = /^(?:-I|--replace=)(.+)$/.exec(option ?? '')?.[1]
  return attached ?? (option === '-I' && next ? textOf(next) : undefined)
}

/** The words that `env -S` splits. */
function afterSplit(words: readonly Word[]): readonly Word[] {
  const index = words.findIndex((word) => /^(?:-[0iv]*S|--split-string(?:=|$))/.test(startOf(word)))
  const word = words[index]
  if (!word) return []
  const length = /^(?:-[0iv]*S|--split-string=?)/.exec(startOf(word))?.[0].length ?? 0
  const attached = withoutStart(word, length)
  return [...(attached.pieces.length > 0 ? [attached] : []), ...words.slice(index + 1)]
}

function scriptOf(words: readonly Word[]): Started {
  const texts = words.map(textOf)
  return texts.includes(undefined) ? { ...nothing, isUnknown: true } : { ...nothing, script: texts.join(' ') }
}

/** A shell without a script and without a file reads commands from its input. */
function scriptAfter(words: readonly Word[]): Started {
  const texts = words.map(textOf)
  const index = texts.findIndex((text) => /^-[a-zA-Z]*c[a-zA-Z]*$/.test(text ?? ''))
  if (index === -1)
    return { ...nothing, isUnknown: words.every((word) => textOf(word)?.startsWith('-') ?? word.isSeveral) }
  const script = texts.findIndex(
    (text, at) => at > index && !/^[-+]/.test(text ?? '') && !/^[-+][a-zA-Z]*[oO]$/.test(texts[at - 1] ?? ''),
  )
  return script === -1 ? nothing : scriptOf(words.slice(script, script + 1))
}
