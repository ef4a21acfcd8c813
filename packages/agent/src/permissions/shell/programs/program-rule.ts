import type { Word } from '../words/word.ts'

/** What a program may be given so that it only reads. The list of them is in read-only-programs.ts. */
export interface ProgramRule {
  /**
   * Its harmless options, as they are written: `-l` and `--long` alone, `-n:` and `--lines=` with a value, `-f@` and `--file@`
   * with the name of a file that is read, `-C?` and `--color?` with a value that is attached or absent, `--arg&` with two values,
   * `-#` for `-5`. Whatever is not here is asked, so that an abbreviated `--outp` is an unknown option too.
   */
  readonly options: string
  /** A word that is not known does no harm, whether it is an operand or turns out to be an option. */
  readonly anyWord?: true
  /** What happens to its operands. `contents`: they are files, and what is in them is shown. Default: nothing to care about. */
  readonly reads?: 'contents'
  /** What it shows of the files that a repository keeps, which its operands may name. */
  readonly showsHistory?: (call: ParsedCall) => HistoryShown
  /** How many operands at the start are text and no files, unless one of these options takes their place. */
  readonly text?: { count: number; unless?: string }
  /** It reads everything below its operands, or below the working folder: always, or with one of these options. */
  readonly recursive?: true | string
  /** Options with a pattern for the names of files that it reads while it is recursive. */
  readonly selects?: string
  /** It never reads the working folder by itself. */
  readonly needsOperands?: true
  /** While it reads everything below something, it follows links: always, or with one of these options. */
  readonly followsLinks?: true | string
  /** Every option must stand before the first operand, which begins something else. */
  readonly stopsAtOperand?: true
  readonly maxOperands?: number
  /** It reads only the first letter of a word, so letters cannot be combined: `xxd -el` is `xxd -e`. */
  readonly noClusters?: true
  /** Letters of this form in the first place are options without their dash: `tar tzf`. */
  readonly startsWithLetters?: RegExp
  /** What it prints that others may rely on. */
  readonly prints?: {
    /**
     * Names of files below its operands, with one of the options in `needs`, if any, and no others than those in `with`. `isFlat`:
     * names of what is in one folder. `isTracked`: names that the index of a repository has.
     */
    names?: { needs?: string; with: string; isFlat?: true; isTracked?: true }
    /** Nothing but whole lines of its input, if it has no files as operands and no other options than these. */
    input?: string
  }
  /** What options alone cannot say: a sentence on what is wrong with the call. */
  readonly check?: (call: ParsedCall) => string | undefined
}

/** Content of files, changes in files, which paths among the operands limit, lines that match something, or no content. */
export type HistoryShown = 'files' | 'changes' | 'matches' | 'names'

export interface ParsedCall {
  readonly options: readonly ParsedOption[]
  readonly operands: readonly Word[]
  /** Those of the operands that stand behind `--`, if there is one. */
  readonly behindDashes?: readonly Word[]
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

/** Whether it has no options but these. */
export function hasOnlyOptions({ options }: ParsedCall, names: string): boolean {
  const wanted = names.split(/\s+/)
  return options.every(({ name }) => wanted.includes(name))
}

export function valuesOf({ options }: ParsedCall, names: string): Word[] {
  const wanted = names.split(' ')
  return options.flatMap(({ name, value }) => (value && wanted.includes(name) ? [value] : []))
}

/** A file that a program reads. */
export interface FileUse {
  word: Word
  /** Everything below it, too. */
  isRecursive: boolean
  /** Also what links lead to below it. */
  followsLinks?: boolean
  /** Where its path begins, if not where the shell is. */
  folders?: readonly string[]
}
