import { stylesFor, type Styles, type Io, type Output } from './io.ts'
import { commonOptions, type CommandSpec, type OptionSpec, type PositionalSpec } from './command.ts'
import { didYouMean } from '../text/did-you-mean.ts'
import { usageFailure } from './failure.ts'

export interface HelpOptions {
  commands: readonly CommandSpec[]
  output: Pick<Output, 'isTTY' | 'columns'>
  env: Io['env']
}

const maxWidth = 100
const widestForm = 30

/** Help for one command, for a group such as `sessions`, or for everything. Throws if there is no such command. */
export function helpFor(path: readonly string[], { commands, output, env }: HelpOptions): string {
  const page: Page = { width: Math.min(output.columns ?? 80, maxWidth), styles: stylesFor(output, env) }
  const below = commands.filter((each) => path.every((word, index) => each.path[index] === word))
  const own = below.find((each) => each.path.length === path.length)
  if (below.length === 0) throw noSuchCommand(path, commands)
  const sections = own ? commandSections(own, page) : [`Usage: tapetree ${path.join(' ')} <command>`]
  const others = below.filter((each) => each !== own)
  if (others.length > 0) sections.splice(own ? 2 : 1, 0, commandList(others, page))
  if (others.length > 0) sections.push(`Run \`tapetree help <command>\` for details, \`tapetree man\` for the manual.`)
  return `${sections.join('\n\n')}\n`
}

interface Page {
  width: number
  styles: Styles
}

function commandSections(spec: CommandSpec, page: Page): string[] {
  const { positionals = [], examples = [] } = spec
  const { bold, cyan } = page.styles
  return [
    `${summaryOf(spec)}.`,
    `${bold('Usage:')} ${usageOf(spec)}`,
    ...(spec.description === undefined ? [] : [wrapped(spec.description, page.width)]),
    ...(positionals.length === 0
      ? []
      : [
          rows(
            'Arguments',
            positionals.map((each) => [positionalForm(each), each.description] as const),
            page,
          ),
        ]),
    rows(
      'Options',
      shownOptions(spec).map((each) => [indented(optionForm(each)), optionText(each)] as const),
      page,
    ),
    ...(examples.length === 0
      ? []
      : [[bold('Examples:'), ...examples.map(({ command, says }) => `  ${cyan(command)}\n      ${says}`)].join('\n')]),
  ]
}

function commandList(specs: readonly CommandSpec[], page: Page): string {
  return rows(
    'Commands',
    specs.map((each) => [each.path.join(' '), summaryOf(each)] as const),
    page,
  )
}

/** Aligns long names whether or not an option has a short one. */
function indented(form: string): string {
  return form.startsWith('--') ? `    ${form}` : form
}

function rows(title: string, pairs: readonly (readonly [string, string])[], { width, styles }: Page): string {
  const column = Math.min(widestForm, Math.max(...pairs.map(([form]) => form.length)))
  const lines = pairs.map(([form, text]) => {
    const indent = column + 4
    const [first = '', ...rest] = wrapped(text, Math.max(20, width - indent)).split('\n')
    const more = rest.map((line) => `\n${' '.repeat(indent)}${line}`).join('')
    if (form.length > column) return `  ${styles.cyan(form)}\n${' '.repeat(indent)}${first}${more}`
    return `  ${styles.cyan(form)}${' '.repeat(column - form.length)}  ${first}${more}`
  })
  return [styles.bold(`${title}:`), ...lines].join('\n')
}

function wrapped(text: string, width: number): string {
  return text
    .split(/\n\s*\n/)
    .map((paragraph) => {
      const lines = ['']
      for (const word of paragraph.trim().split(/\s+/)) {
        const line = lines.at(-1) ?? ''
        if (line !== '' && line.length + 1 + word.length > width) lines.push(word)
        else lines[lines.length - 1] = line === '' ? word : `${line} ${word}`
      }
      return lines.join('\n')
    })
    .join('\n\n')
}

function noSuchCommand(path: readonly string[], commands: readonly CommandSpec[]): Error {
  const typed = path.join(' ')
  const known = commands.flatMap((each) => [each.path.join(' '), ...each.path.slice(0, 1)]).filter(Boolean)
  return usageFailure(`There is no command ${JSON.stringify(typed)}.${didYouMean(typed, known)}`)
}

/** `tapetree run [options] [prompt...]` */
export function usageOf(spec: CommandSpec): string {
  const options = (spec.options ?? []).some(({ hidden }) => hidden !== true) ? ['[options]'] : []
  return ['tapetree', ...spec.path, ...options, ...(spec.positionals ?? []).map(positionalForm)].join(' ')
}

export function positionalForm({ name, required, many }: PositionalSpec): string {
  const shown = many === true ? `${name}...` : name
  return required === true ? `<${shown}>` : `[${shown}]`
}

/** `-m, --model <model>` */
export function optionForm(option: OptionSpec): string {
  const { name, short, value, optionalValue } = option
  const named = short === undefined ? `--${name}` : `-${short}, --${name}`
  if (value === undefined) return named
  return optionalValue ? `${named} [${value}]` : `${named} <${value}>`
}

/** The description with choices, default and whether the option may be repeated. */
export function optionText({ description, choices, many, default: otherwise }: OptionSpec): string {
  const notes = [
    ...(choices ? [choices.join(', ')] : []),
    ...(otherwise === undefined ? [] : [`default: ${otherwise}`]),
    ...(many === true ? ['may be repeated'] : []),
  ]
  return notes.length === 0 ? description : `${description} (${notes.join('; ')})`
}

/** The options of the command itself and those that every command has. */
export function shownOptions({ options = [] }: CommandSpec): OptionSpec[] {
  const common = commonOptions.filter(({ name }) => !options.some((own) => own.name === name))
  return [...options.filter(({ hidden }) => hidden !== true), ...common]
}

export function commandName({ path }: CommandSpec): string {
  return ['tapetree', ...path].join(' ')
}

/** Capitalizes the first letter, as in a list. */
export function summaryOf({ summary }: CommandSpec): string {
  return summary.slice(0, 1).toUpperCase() + summary.slice(1)
}
