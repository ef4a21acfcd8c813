import type { Word } from './word.ts'

/** What a program may be given so that it only reads. The list of them is in read-only-programs.ts. */
export interface ProgramRule {
  /**
   * Its harmless options, as they are written: `-l` and `--long` alone, `-n:` and `--lines=` with a value, `-f@` and `--file@`
   * with the name of a file that is read, `-C?` and `--color?` with a value that is attached or absent, `-#` for `-5`. Whatever is
   * not here is asked, so that an abbreviated `--outp` is an unknown option too.
   */
  readonly options: string
  /** None of its options does any harm, so that words which may turn out to be options are fine. */
  readonly everyOptionReads?: true
  /** What happens to its operands. `contents`: they are files, and what is in them is shown. Default: nothing to care about. */
  readonly reads?: 'contents'
  /** It shows what files held at some time, by the names among its operands. */
  readonly showsHistory?: true
  /** How many operands at the start are text and no files, unless one of these options takes their place. */
  readonly text?: { count: number; unless?: string }
  /** It reads everything below its operands, or below the working folder: always, or with one of these options. */
  readonly recursive?: true | string
  /** Every option must stand before the first operand, which begins something else. */
  readonly stopsAtOperand?: true
  readonly maxOperands?: number
  /** Letters of this form in the first place are options without their dash: `tar tzf`. */
  readonly startsWithLetters?: RegExp
  /**
   * What it prints that others may rely on. `names`: names of files below its operands, always or with one of these options.
   * `input`: nothing but lines of its input, if it has no files as operands.
   */
  readonly prints?: { names?: true | string; input?: true }
  /** What options alone cannot say: a sentence on what is wrong with the call. */
  readonly check?: (call: ParsedCall) => string | undefined
}

export interface ParsedCall {
  readonly options: readonly ParsedOption[]
  readonly operands: readonly Word[]
}

export interface ParsedOption {
  /** As it stands in the rule: `-n`, `--lines`. */
  readonly name: string
  readonly value?: Word
  readonly isFile: boolean
}

export function hasOption({ options }: ParsedCall, names: string): boolean {
  const wanted = names.split(' ')
  return options.some(({ name }) => wanted.includes(name))
}

export function valuesOf({ options }: ParsedCall, names: string): Word[] {
  const wanted = names.split(' ')
  return options.flatMap(({ name, value }) => (value && wanted.includes(name) ? [value] : []))
}
