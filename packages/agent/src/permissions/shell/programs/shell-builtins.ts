import { isPlainVariable } from '../words/variables.ts'
import { mayBeOption, startOf, textOf, type Word } from '../words/word.ts'

/**
 * Shell builtins that change nothing outside of the shell. Each function returns what is wrong with a call, or
 * undefined. `cd` and `read` also change the state of the shell; the command reader handles that.
 */
export const shellBuiltins: ReadonlyMap<string, (words: readonly Word[]) => string | undefined> = new Map(
  Object.entries({
    ':': anyWords,
    true: anyWords,
    false: anyWords,
    echo: anyWords,
    type: anyWords,
    help: anyWords,
    exit: anyWords,
    break: anyWords,
    continue: anyWords,
    pwd: only(/^-[LP]$/),
    jobs: only(/^-[lprs]$/),
    wait: only(/^$/),
    times: only(/^$/),
    umask: only(/^-[Sp]$/),
    ulimit: only(/^-[aHS]$/),
    printf: printfProblem,
    test: testProblem,
    '[': (words) =>
      words.length > 0 && textOf(words.at(-1) as Word) === ']'
        ? testProblem(words.slice(0, -1))
        : 'the closing bracket is missing',
    set: setProblem,
    cd: cdProblem,
    read: readProblem,
  } satisfies Record<string, (words: readonly Word[]) => string | undefined>),
)

/** Builtins that are also programs, and may be called by path. */
export const programsOfThatName = new Set(['true', 'false', 'echo', 'pwd', 'printf', 'test', '['])

/** The variables that `read` sets, and whether one of them gets a whole line, or everything up to a NUL. */
export function namesRead(words: readonly Word[]): { names: string[]; whole?: 'line' | 'nul' } {
  const names = readWords(words)?.names ?? []
  const options = words.slice(0, words.length - names.length).map(textOf)
  if (names.length !== 1) return { names }
  if (options.every((option) => option === '-r')) return { names, whole: 'line' }
  const isNul = options.every((option) => option === '-r' || option === '-d' || option === '')
  return isNul ? { names, whole: 'nul' } : { names }
}

/** The folder that `cd` enters: a path, or the home folder. */
export function folderEntered(words: readonly Word[]): string | undefined {
  const operand = words.find((word) => !/^-[LP]$/.test(textOf(word) ?? ''))
  return operand && textOf(operand)
}

function anyWords(): undefined {
  return undefined
}

function only(option: RegExp): (words: readonly Word[]) => string | undefined {
  return (words) => (words.every((word) => option.test(textOf(word) ?? ' ')) ? undefined : 'it may do more than print')
}

/** `-v` sets a variable, whose subscript is evaluated; `%n` sets one too. */
function printfProblem(words: readonly Word[]): string | undefined {
  const [format] = words
  const text = format && textOf(format)
  if (text === undefined) return 'its format is unknown'
  if (text.startsWith('-') && text !== '--') return 'it may set a variable'
  const formats = text === '--' ? words.slice(1, 2).map(textOf) : [text]
  return formats.every((each) => each !== undefined && !/%[^a-zA-Z%]*[hlLjzt]*n/.test(each))
    ? undefined
    : 'it may set a variable'
}

/** `-v` and `-R` evaluate the subscript in `a[$(touch C)]`, and an unknown word may become one of them. */
function testProblem(words: readonly Word[]): string | undefined {
  const texts = words.map(textOf)
  if (texts.some((text) => text === '-v' || text === '-R')) return 'it may evaluate a subscript'
  const isOpen = words.map(
    (word) => textOf(word) === undefined && !word.pieces.every(({ type }) => /^(?:text|digits|number)$/.test(type)),
  )
  if (!isOpen.includes(true)) return undefined
  const isSplit = words.some(({ isSeveral }) => isSeveral)
  const areNeighbours = isOpen.some((each, index) => each && isOpen[index + 1] === true)
  const hasSubscript = words.some((word) => startOf(word).includes('['))
  return isSplit || areNeighbours || hasSubscript ? 'it may evaluate a subscript' : undefined
}

function setProblem(words: readonly Word[]): string | undefined {
  const text = words.map((word) => textOf(word) ?? '?').join(' ')
  const isHarmless = /^(?:(?:[-+][eu]+|[-+][eu]*o (?:pipefail|errexit|nounset))(?: |$))+$/.test(text)
  return isHarmless ? undefined : 'it changes how the shell reads the rest'
}

function cdProblem(words: readonly Word[]): string | undefined {
  const operands = words.filter((word) => !/^-[LP]$/.test(textOf(word) ?? ''))
  const isKnown = operands.every((word) => textOf(word) !== undefined && !mayBeOption(word))
  return operands.length <= 1 && isKnown ? undefined : 'the folder that it enters is unknown'
}

function readProblem(words: readonly Word[]): string | undefined {
  return readWords(words) ? undefined : 'it may set any variable'
}

function readWords(words: readonly Word[]): { names: string[] } | undefined {
  const texts = words.map(textOf)
  while (texts[0] === '-r' || texts[0] === '-s') texts.shift()
  if (texts[0] === '-d' || texts[0] === '-n') texts.splice(0, 2)
  const names = texts.filter((text) => text !== undefined && isPlainVariable(text)) as string[]
  return names.length === texts.length ? { names } : undefined
}
