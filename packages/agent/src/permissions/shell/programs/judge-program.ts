import { realPath } from '../../paths/real-path.ts'
import { mayListSecrets } from '../../paths/secret-files.ts'
import { readFind } from './find-expression.ts'
import { readGit } from './git-commands.ts'
import { filesShown } from './git-history.ts'
import { gitFolders, repositoryProblem } from './git-repository.ts'
import { npmProblem } from './npm-commands.ts'
import { npmSettingsProblem } from './npm-settings.ts'
import { parseArguments } from '../words/parse-arguments.ts'
import { hasOnlyOptions, hasOption, valuesOf, type FileUse, type ParsedCall, type ProgramRule } from './program-rule.ts'
import { readOnlyPrograms } from './read-only-programs.ts'
import { literal, textOf, type Word } from '../words/word.ts'

/** What a call of a program would do. */
export interface ProgramJudgement {
  /** Why it cannot be said that it only reads: a sentence without its end. */
  problem?: string
  reads: FileUse[]
  /** What its output can be relied on to be; `input`: lines of its input. */
  prints: 'anything' | 'input' | Listing
}

/** Names of files, one on each line or before each NUL. */
export interface Listing {
  /** The files are in these folders or below them, or are these. */
  roots: readonly Word[]
  /** Only what is in the folders themselves, by its name alone. */
  isFlat?: boolean
  /** Only files that the repository around the working folder tracks. */
  isTracked?: boolean
  isNul?: boolean
  /** Patterns of which the name of a file must match one; empty: any file. */
  patterns?: readonly string[]
  /** Names of folders that are left out. */
  skipped?: readonly string[]
  /** Words that say which files are wanted. */
  wishes: readonly Word[]
}

const here = literal('.')

/** Judges a program that is no part of the shell; undefined where there is nothing known about it. */
export function judgeProgram(
  program: string,
  words: readonly Word[],
  place: { folders: readonly string[]; home: string },
): ProgramJudgement | undefined {
  switch (program) {
    case 'find':
      return judgeFind(words)
    case 'git':
      return judgeGit(words, place.folders)
    case 'npm': {
      const folders = place.folders.map(realPath)
      const problems = [npmProblem(words), ...folders.map((folder) => npmSettingsProblem(folder, place.home))]
      const problem = problems.find((each) => each !== undefined)
      return problem === undefined ? quiet : refused(problem)
    }
    default: {
      const rule = readOnlyPrograms.get(program)
      return rule && judgeByRule(words, rule)
    }
  }
}

function judgeByRule(words: readonly Word[], rule: ProgramRule): ProgramJudgement {
  const call = parseArguments(withDash(words, rule), rule)
  return typeof call === 'string' ? refused(call) : judgeCall(call, rule, words)
}

function judgeCall(call: ParsedCall, rule: ProgramRule, words: readonly Word[]): ProgramJudgement {
  if (call.operands.length > (rule.maxOperands ?? Infinity)) return refused('it has more operands than it reads')
  if (rule.maxOperands !== undefined && call.operands.some(({ isSeveral }) => isSeveral)) {
    return refused('how many operands it has is not known')
  }
  const problem = rule.check?.(call)
  if (problem !== undefined) return refused(problem)
  const files = filesOf(call, rule)
  const isRecursive = applies(rule.recursive, call)
  const selection = isRecursive ? selectionProblem(call, rule) : undefined
  if (selection !== undefined) return refused(selection)
  const followsLinks = isRecursive && applies(rule.followsLinks, call) && !hasOption(call, '--no-dereference')
  // The only word may be the text after all, and then the working folder is read.
  const isHere = files.length === 0 || files.length === textCount(call, rule)
  const roots = rule.needsOperands || !isHere ? files : [...files, here]
  return {
    reads: [
      ...(rule.reads ? (isRecursive ? roots : files).map((word) => ({ word, isRecursive, followsLinks })) : []),
      ...fileValues(call),
    ],
    prints: printed(call, rule, { files, roots, isRecursive, words }),
  }
}

function applies(condition: true | string | undefined, call: ParsedCall): boolean {
  return condition === true || (condition !== undefined && hasOption(call, condition))
}

const quiet: ProgramJudgement = { reads: [], prints: 'anything' }

function refused(problem: string): ProgramJudgement {
  return { ...quiet, problem }
}

function withDash(words: readonly Word[], { startsWithLetters }: ProgramRule): readonly Word[] {
  const [first, ...rest] = words
  const letters = first && textOf(first)
  return letters !== undefined && startsWithLetters?.test(letters) ? [literal(`-${letters}`), ...rest] : words
}

function filesOf(call: ParsedCall, rule: ProgramRule): readonly Word[] {
  const count = textCount(call, rule)
  // A word that may become several, or an option, leaves open which one is the text.
  const isCertain = call.operands.slice(0, count).every((word) => !word.isSeveral)
  return isCertain ? call.operands.slice(count) : call.operands
}

/** How many operands at the start are text and not files. */
function textCount(call: ParsedCall, { text }: ProgramRule): number {
  return !text || (text.unless !== undefined && hasOption(call, text.unless)) ? 0 : text.count
}

function fileValues({ options }: ParsedCall): FileUse[] {
  return options.flatMap(({ isFile, value }) => (isFile && value ? [{ word: value, isRecursive: false }] : []))
}

/** What is wrong with patterns such as that of `rg -g .env`, which ask for secrets by their names. */
function selectionProblem(call: ParsedCall, { selects = '' }: ProgramRule): string | undefined {
  for (const pattern of valuesOf(call, selects).map(textOf)) {
    if (pattern === undefined) return 'which files it is limited to is not known'
    // A type that is added has its name before its pattern.
    const meant = [pattern, pattern.slice(pattern.indexOf(':') + 1)].filter((each) => !each.startsWith('!'))
    if (meant.some(mayListSecrets)) return `\`${pattern}\` may mean a file with a secret`
  }
  return undefined
}

interface Operands {
  files: readonly Word[]
  roots: readonly Word[]
  isRecursive: boolean
  words: readonly Word[]
}

function printed(call: ParsedCall, rule: ProgramRule, operands: Operands): ProgramJudgement['prints'] {
  const { prints } = rule
  const { files, roots, isRecursive, words } = operands
  const names = prints?.names
  if (names && (names.needs === undefined || hasOption(call, names.needs)) && hasOnlyOptions(call, names.with)) {
    const { isFlat = false, isTracked = false } = names
    // A tree to look into would stand before each name.
    if (isTracked && rule.text && files.length !== (call.behindDashes?.length ?? 0)) return 'anything'
    const isNul = isTracked && hasOption(call, '-z --null')
    return { roots: isTracked ? [here] : roots, isFlat, isTracked, isNul, wishes: words }
  }
  const isFilter = prints?.input !== undefined && hasOnlyOptions(call, prints.input)
  return isFilter && (isRecursive ? roots : files).length === 0 ? 'input' : 'anything'
}

function judgeFind(words: readonly Word[]): ProgramJudgement {
  const found = readFind(words)
  if (typeof found === 'string') return refused(found)
  const roots = found.roots.length > 0 ? found.roots : [here]
  return {
    reads: [],
    prints: found.names ? { roots, ...found.names, wishes: [...roots, ...found.names.wishes] } : 'anything',
  }
}

function judgeGit(words: readonly Word[], start: readonly string[]): ProgramJudgement {
  const git = readGit(words)
  if (typeof git === 'string') return refused(git)
  const folders = gitFolders(git.folders, start)
  if (typeof folders === 'string') return refused(folders)
  for (const folder of folders) {
    const problem = repositoryProblem(folder)
    if (problem !== undefined) return refused(problem)
  }
  if (!git.command) return quiet
  const { command } = git
  const judged = judgeCall(command.call, command.rule, words)
  const shown = folders.map((folder) => filesShown(command, folder))
  const problem = judged.problem ?? shown.find((each) => typeof each === 'string')
  if (typeof problem === 'string') return refused(problem)
  // The names that it prints and the files that it is given begin where it is.
  const isHere = git.folders.length === 0
  const reads = [
    ...(isHere ? judged.reads : judged.reads.map((use) => ({ ...use, folders }))),
    ...shown.flatMap((each) => (typeof each === 'string' ? [] : each)),
  ]
  return { ...judged, reads, prints: isHere ? judged.prints : 'anything' }
}
