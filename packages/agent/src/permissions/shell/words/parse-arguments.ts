import type { ParsedCall, ParsedOption, ProgramRule } from '../programs/program-rule.ts'
import { mayBeOption, maySplit, startOf, textOf, withoutStart, type Word } from './word.ts'

type ArgumentRule = Pick<ProgramRule, 'options' | 'anyWord' | 'stopsAtOperand' | 'noClusters'>

/**
 * Sorts the words of a call into options and operands as getopt does, or returns a sentence on which of them is
 * unknown.
 */
export function parseArguments(words: readonly Word[], rule: ArgumentRule): ParsedCall | string {
  const known = knownOptions(rule.options)
  const options: ParsedOption[] = []
  const operands: Word[] = []
  const rest = [...words]
  for (let word = rest.shift(); word; word = rest.shift()) {
    const text = textOf(word)
    if (text === '--') return { options, operands: [...operands, ...rest], behindDashes: rest }
    if (text === '-' || !mayBeOption(word)) {
      if (rule.stopsAtOperand) return { options, operands: [word, ...rest] }
      operands.push(word)
      continue
    }
    const isCluster = /^-[^-]./.test(startOf(word)) && known.get(startOf(word).slice(0, 2)) === 'none'
    if (rule.noClusters && isCluster) return `\`${startOf(word)}\` combines options that cannot be combined`
    const found = startOf(word).startsWith('--') ? longOption(word, known, rest) : shortOptions(word, known, rest)
    if (typeof found !== 'string') options.push(...found)
    else if (rule.anyWord && startOf(word) === '') operands.push(word)
    else return found
  }
  return { options, operands }
}

type ValueKind = 'none' | 'text' | 'file' | 'optional' | 'two'

const cache = new Map<string, Map<string, ValueKind>>()

function knownOptions(options: string): Map<string, ValueKind> {
  let known = cache.get(options)
  if (!known) {
    known = new Map(options.split(/\s+/).filter(Boolean).map(readOption))
    cache.set(options, known)
  }
  return known
}

const kinds: Record<string, ValueKind> = { ':': 'text', '=': 'text', '@': 'file', '?': 'optional', '&': 'two' }

function readOption(written: string): [string, ValueKind] {
  const kind = kinds[written.slice(-1)]
  // `-?` and `-:` would be options of that name.
  return kind && written.length > 2 ? [written.slice(0, -1), kind] : [written, 'none']
}

function longOption(word: Word, known: Map<string, ValueKind>, rest: Word[]): ParsedOption[] | string {
  const start = startOf(word)
  const equals = start.indexOf('=')
  const name = equals === -1 ? textOf(word) : start.slice(0, equals)
  const kind = name === undefined ? undefined : known.get(name)
  if (name === undefined || kind === undefined) return `\`${name ?? start}\` is not a known read-only option`
  const isFile = kind === 'file'
  if (equals !== -1) {
    if (kind === 'none' || kind === 'two' || maySplit(word)) return `\`${name}\` takes no such value`
    return [{ name, isFile, value: withoutStart(word, equals + 1) }]
  }
  if (kind === 'none' || kind === 'optional') return [{ name, isFile }]
  if (kind === 'two' && !takeValue(rest)) return `the name after \`${name}\` is unknown`
  const value = takeValue(rest)
  return value ? [{ name, isFile, value }] : `the value of \`${name}\` is unknown`
}

/** A value that looks like an option is rejected: another version of the program may parse it as one. */
function takeValue(rest: Word[]): Word | undefined {
  const value = rest.shift()
  return value && !value.isSeveral && !/^-[^0-9]/.test(startOf(value)) ? value : undefined
}

function shortOptions(word: Word, known: Map<string, ValueKind>, rest: Word[]): ParsedOption[] | string {
  const start = startOf(word)
  const isWhole = textOf(word) !== undefined
  if (/^-[0-9]*$/.test(start) && word.pieces.every((piece) => piece.type === 'text' || piece.type === 'digits')) {
    if (known.has('-#') && (start !== '-' || !isWhole)) return [{ name: '-#', isFile: false }]
  }
  const found: ParsedOption[] = []
  for (const [index, letter] of [...start.slice(1)].entries()) {
    const name = `-${letter}`
    const kind = known.get(name)
    if (kind === undefined) return `\`${name}\` is not a known read-only option`
    const isFile = kind === 'file'
    if (kind === 'none') {
      found.push({ name, isFile })
      continue
    }
    const attached = withoutStart(word, index + 2)
    if (attached.pieces.length > 0) {
      return maySplit(word) ? `the value of \`${name}\` is unknown` : [...found, { name, isFile, value: attached }]
    }
    if (kind === 'optional') return [...found, { name, isFile }]
    const value = takeValue(rest)
    return value ? [...found, { name, isFile, value }] : `the value of \`${name}\` is unknown`
  }
  if (isWhole) return found
  return start === '' ? 'an unknown word may be an option' : `\`${start}…\` may be any option`
}
