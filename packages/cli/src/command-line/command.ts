import type { ExitCode } from './exit-code.ts'
import type { Io } from './io.ts'
import { usageFailure } from './failure.ts'

/** One command, as data. Help, completion, the man page and the documentation are generated from it. */
export interface CommandSpec {
  /** Such as `['sessions', 'list']`; empty for the chat. */
  readonly path: readonly string[]
  /** One line in the imperative, without a full stop. */
  readonly summary: string
  /** Full sentences. An empty line separates paragraphs. */
  readonly description?: string
  readonly positionals?: readonly PositionalSpec[]
  readonly options?: readonly OptionSpec[]
  readonly examples?: readonly Example[]
  /** Imports the implementation only when the command runs. */
  readonly load: () => Promise<CommandRun>
}

export type CommandRun = (invocation: Invocation, io: Io) => Promise<ExitCode>

export interface PositionalSpec {
  readonly name: string
  readonly description: string
  readonly required?: boolean
  /** Takes all remaining arguments. */
  readonly many?: boolean
  readonly completes?: Completes
}

export interface OptionSpec {
  /** Without dashes: `permission-mode`. */
  readonly name: string
  readonly short?: string
  readonly description: string
  /** The name of the value, such as `model`. If absent, the option is a flag. */
  readonly value?: string
  /** The value is optional and `true` if omitted: `-r` or `-r <session>`. */
  readonly optionalValue?: true
  /** The allowed values. */
  readonly choices?: readonly string[]
  /** The option may be repeated; every value counts. */
  readonly many?: boolean
  /** The default, as help shows it. */
  readonly default?: string
  readonly completes?: Completes
  /** For our own scripts: help does not list it. */
  readonly hidden?: true
}

/** What shell completion offers as the value. */
export type Completes = 'file' | 'folder' | 'session' | 'model' | 'provider'

interface Example {
  readonly command: string
  readonly says: string
}

/** The parsed command line, checked against the spec. */
export interface Invocation {
  readonly spec: CommandSpec
  readonly values: Readonly<Record<string, string | boolean | readonly string[] | undefined>>
  readonly positionals: readonly string[]
  /** All commands: help, manual and completion are generated from them. */
  readonly commands: readonly CommandSpec[]
}

/** Options of every command. */
export const commonOptions: readonly OptionSpec[] = [
  { name: 'json', description: 'print the result and any error as JSON' },
  { name: 'help', short: 'h', description: 'show help for this command' },
]

export function flag({ values }: Invocation, name: string): boolean {
  return values[name] === true
}

export function textOption({ values }: Invocation, name: string): string | undefined {
  const value = values[name]
  return typeof value === 'string' ? value : undefined
}

export function listOption({ values }: Invocation, name: string): readonly string[] {
  const value = values[name]
  return Array.isArray(value) ? (value as readonly string[]) : []
}

/** A number greater than zero; anything else is a usage error. */
export function numberOption(invocation: Invocation, name: string): number | undefined {
  const value = textOption(invocation, name)
  if (value === undefined) return undefined
  const number = Number(value)
  if (value.trim() === '' || !Number.isFinite(number) || number <= 0) {
    throw usageFailure(`--${name} must be a number greater than 0, not ${JSON.stringify(value)}.`)
  }
  return number
}
