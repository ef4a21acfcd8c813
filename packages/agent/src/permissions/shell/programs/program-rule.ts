import type { Word } from '../words/word.ts'

/** The arguments with which a program only reads. The list of programs is in read-only-programs.ts. */
export interface ProgramRule {
  /**
   * Its harmless options as written: `-l` and `--long` alone, `-n:` and `--lines=` with a value, `-f@` and `--file@`
   * with the name of a file that is read, `-C?` and `--color?` with an attached or absent value, `--arg&` with two
   * values, `-#` for `-5`. Any other option requires a request, so an abbreviated `--outp` is an unknown option too.
   */
  readonly options: string
  /** An unknown word does no harm, whether it is an operand or turns out to be an option. */
  readonly anyWord?: true
  /** What happens to its operands. `contents`: they are files whose contents are shown. Default: nothing relevant. */
  readonly reads?: 'contents'
  /** What it shows of the files in a repository, which its operands may name. */
  readonly showsHistory?: (call: ParsedCall) => HistoryShown | undefined
  /** How many leading operands are text and not files, unless one of these options replaces them. */
  readonly text?: { count: number; unless?: string }
  /** It reads everything below its operands, or below the working folder: always, or with one of these options. */
  readonly recursive?: true | string
  /** Options with a pattern for the names of files that it reads recursively. */
  readonly selects?: string
  /** It never reads the working folder by default. */
  readonly needsOperands?: true
  /** It follows links while it reads recursively: always, or with one of these options. */
  readonly followsLinks?: true | string
  /** Every option must come before the first operand, which begins something else. */
  readonly stopsAtOperand?: true
  readonly maxOperands?: number
  /** It reads only the first letter of a word, so letters cannot be combined: `xxd -el` is `xxd -e`. */
  readonly noClusters?: true
  /** If the first word has this form, it is options without their dash: `tar tzf`. */
  readonly startsWithLetters?: RegExp
  /** What other commands may assume about its output. */
  readonly prints?: {
    /**
     * Names of files below its operands, with one of the options in `needs`, if any, and only with the options in
     * `with`. `isFlat`: names of the entries of one folder. `isTracked`: names from the index of a repository.
     */
    names?: { needs?: string; with: string; isFlat?: true; isTracked?: true }
    /** Only whole lines of its input, if it has no file operands and only these options. */
    input?: string
  }
  /** A check beyond options: returns a sentence on what is wrong with the call. */
  readonly check?: (call: ParsedCall) => string | undefined
}

/** Contents of files, changes in files that path operands limit, matching lines, or no contents. */
export type HistoryShown = 'files' | 'changes' | 'matches' | 'names'

export interface ParsedCall {
  readonly options: readonly ParsedOption[]
  readonly operands: readonly Word[]
  /** The operands after `--`, if it is present. */
  readonly behindDashes?: readonly Word[]
}

export interface ParsedOption {
  /** As in the rule: `-n`, `--lines`. */
  readonly name: string
  readonly value?: Word
  readonly isFile: boolean
}

export function hasOption({ options }: ParsedCall, names: string): boolean {
  const wanted = names.split(' ')
  return options.some(({ name }) => wanted.includes(name))
}

/** Whether it has only these options. */
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
  /** Includes everything below it. */
  isRecursive: boolean
  /** Includes the targets of links below it. */
  followsLinks?: boolean
  /** The base of its path, if it is not the folder of the shell. */
  folders?: readonly string[]
}
