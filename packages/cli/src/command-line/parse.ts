import { parseArgs } from 'node:util'
import { commonOptions, type CommandSpec, type Invocation, type OptionSpec } from './command.ts'
import { didYouMean, nearestWord } from '../text/did-you-mean.ts'
import { usageFailure, type Failure } from './failure.ts'

export type Parsed =
  | { type: 'run'; invocation: Invocation }
  /** Of a command, or of a group of commands such as `sessions`. */
  | { type: 'help'; path: readonly string[] }

/** Parses the arguments as one of the commands. Throws a `Failure` if they are invalid. */
export function parse(args: readonly string[], commands: readonly CommandSpec[]): Parsed {
  const { path, rest } = splitPath(args, commands)
  if (beforeDashes(rest).some((arg) => arg === '--help' || arg === '-h')) return { type: 'help', path }
  const spec = commands.find((each) => each.path.join(' ') === path.join(' '))
  const [word] = rest.filter((arg) => !arg.startsWith('-'))
  if (spec === undefined) throw incomplete(path, word, commands)
  if (path.length === 0 && word !== undefined && word === rest[0]) refuseMistyped(word, commands)
  return { type: 'run', invocation: { ...invocationOf(spec, rest), commands } }
}

/** Set even if the rest of the command line is invalid. */
export function wantsJson(args: readonly string[]): boolean {
  return beforeDashes(args).includes('--json')
}

/** `--json` and `--help` may come before or between the words of a command. */
function splitPath(args: readonly string[], commands: readonly CommandSpec[]): { path: string[]; rest: string[] } {
  const path: string[] = []
  const flags: string[] = []
  for (const [index, arg] of args.entries()) {
    if (arg === '--json' || arg === '--help' || arg === '-h') flags.push(arg)
    else if (commands.some((each) => [...path, arg].every((part, at) => each.path[at] === part))) path.push(arg)
    else return { path, rest: [...flags, ...args.slice(index)] }
  }
  return { path, rest: flags }
}

function incomplete(path: readonly string[], word: string | undefined, commands: readonly CommandSpec[]): Failure {
  const group = path.join(' ')
  const known = commands
    .filter((each) => path.every((part, at) => each.path[at] === part))
    .map((each) => each.path[path.length] ?? '')
  const help = [`tapetree ${path.length === 0 ? '' : `${group} `}--help`]
  if (word === undefined) return usageFailure(`tapetree ${group} needs a subcommand: ${known.join(', ')}.`, help)
  return usageFailure(`There is no command ${group} ${JSON.stringify(word)}.${didYouMean(word, known)}`, help)
}

/** The chat takes a prompt, but a single word close to a command name is more likely that command. */
function refuseMistyped(word: string, commands: readonly CommandSpec[]): void {
  if (/\s/.test(word)) return
  const nearest = nearestWord(word, [...new Set(commands.flatMap(({ path }) => path.slice(0, 1)))])
  if (nearest === undefined) return
  throw usageFailure(
    `There is no command ${JSON.stringify(word)}. Did you mean ${nearest}? To send a one-word prompt, put -- before it.`,
    [`tapetree ${nearest} --help`, `tapetree -- ${word}`],
  )
}

function invocationOf(spec: CommandSpec, args: readonly string[]): Omit<Invocation, 'commands'> {
  const options = [...(spec.options ?? []), ...commonOptions.filter(({ name }) => !hasOption(spec, name))]
  const { tokens } = parseArgs({
    args: withoutOptionalGaps(args, options),
    strict: false,
    allowPositionals: true,
    tokens: true,
    options: Object.fromEntries(
      options.map(({ name, short, value }) => [
        name,
        { type: value === undefined ? 'boolean' : 'string', ...(short !== undefined && { short }) } as const,
      ]),
    ),
  })
  const values: Record<string, string | true | string[]> = {}
  const positionals: string[] = []
  for (const token of tokens) {
    if (token.kind === 'positional') positionals.push(token.value)
    if (token.kind !== 'option') continue
    const option = options.find(({ name }) => name === token.name)
    if (option === undefined) throw unknownOption(token.rawName, options, spec)
    const value = valueOf(option, token, spec)
    const before = values[option.name]
    if (option.many && typeof value === 'string')
      values[option.name] = [...(Array.isArray(before) ? before : []), value]
    else values[option.name] = value
  }
  checkPositionals(spec, positionals)
  return { spec, values, positionals }
}

function hasOption({ options = [] }: CommandSpec, wanted: string): boolean {
  return options.some(({ name }) => name === wanted)
}

/** Inserts an empty value if an optional one is missing, because Node would take the next argument. */
function withoutOptionalGaps(args: readonly string[], options: readonly OptionSpec[]): string[] {
  const end = beforeDashes(args).length
  return args.map((arg, index) => {
    if (index >= end) return arg
    const option = options.find(
      ({ name, short }) => arg === `--${name}` || (short !== undefined && arg === `-${short}`),
    )
    const next = args[index + 1]
    const isGap = option?.optionalValue === true && (next === undefined || next.startsWith('-'))
    return isGap ? `--${option.name}=` : arg
  })
}

interface OptionToken {
  rawName: string
  value?: string | undefined
  inlineValue?: boolean | undefined
}

function valueOf(option: OptionSpec, { rawName, value, inlineValue }: OptionToken, spec: CommandSpec): string | true {
  const help = [`tapetree ${[...spec.path, '--help'].join(' ')}`]
  if (option.value === undefined) {
    if (value === undefined) return true
    throw usageFailure(`${rawName} does not take a value, but got ${JSON.stringify(value)}.`, help)
  }
  if (option.optionalValue && value === '') return true
  if (value === undefined) throw usageFailure(`${rawName} needs a value: ${rawName} <${option.value}>.`, help)
  if (inlineValue !== true && /^-./.test(value)) {
    const message = `${rawName} needs a value, but ${value} looks like an option. If it is the value, write ${rawName}=${value}.`
    throw usageFailure(message, help)
  }
  if (option.choices && !option.choices.includes(value)) {
    const all = option.choices.join(', ').replace(/, ([^,]+)$/, ' or $1')
    throw usageFailure(
      `${rawName} must be ${all}, not ${JSON.stringify(value)}.${didYouMean(value, option.choices)}`,
      help,
    )
  }
  return value
}

function unknownOption(typed: string, options: readonly OptionSpec[], spec: CommandSpec): Failure {
  const command = ['tapetree', ...spec.path].join(' ')
  const hint = didYouMean(
    typed,
    options.map(({ name }) => `--${name}`),
  )
  return usageFailure(`${command} has no option ${typed}.${typed.startsWith('--') ? hint : ''}`, [`${command} --help`])
}

function checkPositionals(spec: CommandSpec, given: readonly string[]): void {
  const { positionals = [], path } = spec
  const command = ['tapetree', ...path].join(' ')
  const help = [`${command} --help`]
  const missing = positionals.find((each, index) => each.required === true && given[index] === undefined)
  if (missing) throw usageFailure(`${command} needs <${missing.name}>: ${missing.description}.`, help)
  const extra = given[positionals.length]
  if (extra === undefined || positionals.at(-1)?.many === true) return
  if (path.length > 0) throw usageFailure(`${command} does not take the argument ${JSON.stringify(extra)}.`, help)
  throw usageFailure(`A prompt is one argument: put it in quotes.`, [`tapetree "${given.join(' ')}"`])
}

function beforeDashes(args: readonly string[]): readonly string[] {
  const end = args.indexOf('--')
  return end < 0 ? args : args.slice(0, end)
}
