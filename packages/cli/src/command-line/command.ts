import type { ExitCode } from './exit-code.ts'
import type { Io } from './io.ts'
import { usageFailure } from './failure.ts'

/** One command, as data: help, completion, man page and documentation are made of it. */
export interface CommandSpec {
  /** `['sessions', 'list']`; the chat has an empty one. */
  readonly path: readonly string[]
  /** One line, without a full stop. */
  readonly summary: string
  /** Sentences. Paragraphs are divided by an empty line. */
  readonly description?: string
  readonly positionals?: readonly PositionalSpec[]
  readonly options?: readonly OptionSpec[]
  readonly examples?: readonly Example[]
  /** Imports what runs it, and only when it is run. */
  readonly load: () => Promise<CommandRun>
}

export type CommandRun = (invocation: Invocation, io: Io) => Promise<ExitCode>

export interface PositionalSpec {
  readonly name: string
  readonly description: string
  readonly required?: boolean
  /** Takes all that is left. */
  readonly many?: boolean
  readonly completes?: Completes
}

export interface OptionSpec {
  /** `permission-mode`, without dashes. */
  readonly name: string
  readonly short?: string
  readonly description: string
  /** The name of its value, such as `model`. Absent: it is a flag. */
  readonly value?: string
  /** It may stand without its value, and is `true` then: `-r` or `-r <session>`. */
  readonly optionalValue?: true
  /** Those it may have. */
  readonly choices?: readonly string[]
  /** Each of several counts. */
  readonly many?: boolean
  /** Where nothing is said, for the help. */
  readonly default?: string
  readonly completes?: Completes
  /** For our own scripts: no help speaks of it. */
  readonly hidden?: true
}

/** What a shell offers behind it. */
export type Completes = 'file' | 'folder' | 'session' | 'model' | 'provider'

interface Example {
  readonly command: string
  readonly says: string
}

/** What was typed, checked against the spec. */
export interface Invocation {
  readonly spec: CommandSpec
  readonly values: Readonly<Record<string, string | boolean | readonly string[] | undefined>>
  readonly positionals: readonly string[]
  /** All that there are: help, manual and completion are made of them. */
  readonly commands: readonly CommandSpec[]
}

/** For every command: `--json` (errors are JSON too), `--help`. */
export const commonOptions: readonly OptionSpec[] = [
  { name: 'json', description: 'print the result, and errors, as JSON' },
  { name: 'help', short: 'h', description: 'say how it is used' },
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

/** A number over zero; anything else is a mistake that is said. */
export function numberOption(invocation: Invocation, name: string): number | undefined {
  const value = textOption(invocation, name)
  if (value === undefined) return undefined
  const number = Number(value)
  if (value.trim() === '' || !Number.isFinite(number) || number <= 0) {
    throw usageFailure(`--${name} is a number over 0, not ${JSON.stringify(value)}.`)
  }
  return number
}
