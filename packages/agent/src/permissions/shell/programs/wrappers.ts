import { parseArguments } from '../words/parse-arguments.ts'
import { valuesOf, hasOption, type ParsedCall } from './program-rule.ts'
import { pieceOf } from '../words/expand-word.ts'
import { literal, severalThings, textOf, textWithNumbers, type Output, type Piece, type Word } from '../words/word.ts'

/** The command that a wrapper starts, a sentence on why that is unknown, or undefined if `program` is not a wrapper. */
export function wrappedCommand(program: string, words: readonly Word[], input: Output): Word[] | string | undefined {
  switch (program) {
    case 'timeout':
      return afterTimeout(words)
    case 'command':
      return afterCommand(words)
    case 'xargs':
      return afterXargs(words, input)
    default:
      return undefined
  }
}

function afterTimeout(words: readonly Word[]): Word[] | string {
  const call = parseArguments(words, {
    options: '-k: -s: -v --kill-after= --signal= --foreground --preserve-status --verbose',
    stopsAtOperand: true,
  })
  if (typeof call === 'string') return call
  const [duration, ...command] = call.operands
  const isKnown = duration && /^[0-9.]+[smhd]?$/.test(textWithNumbers(duration) ?? '')
  return isKnown && command.length > 0 ? command : 'what it starts is unknown'
}

/** `command -v` only prints where a program is. */
function afterCommand(words: readonly Word[]): Word[] | string {
  const call = parseArguments(words, { options: '-v -V', stopsAtOperand: true })
  if (typeof call === 'string') return call
  if (hasOption(call, '-v -V')) return [literal('true')]
  return call.operands.length > 0 ? [...call.operands] : 'what it starts is unknown'
}

/** Its input is appended to the words, or replaces a marker. */
function afterXargs(words: readonly Word[], input: Output): Word[] | string {
  const call = parseArguments(words, {
    options: `-0 -r -t -x -n: -L: -P: -I: -d: -s: --null --no-run-if-empty --verbose --max-args= --max-lines? --max-procs= --delimiter=
      --replace?`,
    stopsAtOperand: true,
  })
  if (typeof call === 'string') return call
  const command = call.operands.length > 0 ? [...call.operands] : [literal('echo')]
  const marks = call.options
    .filter(({ name }) => name === '-I' || name === '--replace')
    .map(({ value }) => (value ? textOf(value) : '{}'))
  const added = usable(input, call)
  if (marks.length === 0) return [...command, { pieces: [pieceOf(added)], isSeveral: true }]
  const [mark] = marks
  // The last option of `-I`, `-L` and `-n` counts.
  if (marks.length > 1 || !mark || hasOption(call, '-L -n --max-lines --max-args'))
    return 'the position of its input is unknown'
  return command.map((word) => withInput(word, mark, added))
}

/** Names are intact only if they are split at their ends. */
function usable(input: Output, call: ParsedCall): Output {
  const ends = valuesOf(call, '-d --delimiter').map(textOf)
  if (input === 'anything' || !ends.every((end) => end === '\\n' || end === '\n')) return 'anything'
  return input.isNul === hasOption(call, '-0 --null') ? input : 'anything'
}

function withInput(word: Word, mark: string, input: Output): Word {
  const text = textOf(word)
  if (text === undefined) return severalThings
  if (!text.includes(mark)) return word
  const pieces = text
    .split(mark)
    .flatMap((part, index): Piece[] => [
      ...(index > 0 ? [pieceOf(input)] : []),
      ...(part === '' ? [] : [{ type: 'text', text: part } as Piece]),
    ])
  return { pieces, isSeveral: false }
}
