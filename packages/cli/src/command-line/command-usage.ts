import { commonOptions, type CommandSpec, type OptionSpec, type PositionalSpec } from './command.ts'

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
