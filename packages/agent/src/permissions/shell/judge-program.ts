import { exactPath } from '../paths/path-pattern.ts'
import { realPath } from '../paths/real-path.ts'
import { mayBeSecret } from '../paths/secret-files.ts'
import { readFind } from './find-expression.ts'
import { readGit, type GitCall } from './git-commands.ts'
import { gitFolders, repositoryProblem } from './git-repository.ts'
import { npmProblem } from './npm-commands.ts'
import { npmSettingsProblem } from './npm-settings.ts'
import { parseArguments } from './parse-arguments.ts'
import { hasOption, type ParsedCall, type ProgramRule } from './program-rule.ts'
import { readOnlyPrograms } from './read-only-programs.ts'
import { literal, textOf, type Word } from './word.ts'

/** What a call of a program would do. */
export interface ProgramJudgement {
  /** Why it cannot be said that it only reads: a sentence without its end. */
  problem?: string
  reads: FileUse[]
  /** What its output can be relied on to be; `input`: what it gets. */
  prints: Output | 'input'
  /** Where the names come from that it prints. */
  roots: readonly Word[]
}

export type Output = 'names' | 'anything'

export interface FileUse {
  word: Word
  /** Everything below it, too. */
  isRecursive: boolean
  /** Where its path begins, if not where the shell is. */
  folders?: readonly string[]
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
      const problems = [
        npmProblem(words),
        ...place.folders.map((folder) => npmSettingsProblem(realPath(folder), place.home)),
      ]
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
  return typeof call === 'string' ? refused(call) : judgeCall(call, rule)
}

function judgeCall(call: ParsedCall, rule: ProgramRule): ProgramJudgement {
  if (call.operands.length > (rule.maxOperands ?? Infinity)) return refused('it has more operands than it reads')
  if (rule.maxOperands !== undefined && call.operands.some(({ isSeveral }) => isSeveral)) {
    return refused('how many operands it has is not known')
  }
  const problem = rule.check?.(call)
  if (problem !== undefined) return refused(problem)
  const files = filesOf(call, rule)
  const isRecursive = rule.recursive === true || (rule.recursive !== undefined && hasOption(call, rule.recursive))
  const roots = files.length > 0 ? files : [here]
  return {
    reads: [
      ...(rule.reads ? (isRecursive ? roots : files).map((word) => ({ word, isRecursive })) : []),
      ...fileValues(call),
    ],
    prints: printed(call, rule, isRecursive ? roots : files),
    roots,
  }
}

const quiet: ProgramJudgement = { reads: [], prints: 'anything', roots: [] }

function refused(problem: string): ProgramJudgement {
  return { ...quiet, problem }
}

function withDash(words: readonly Word[], { startsWithLetters }: ProgramRule): readonly Word[] {
  const [first, ...rest] = words
  const letters = first && textOf(first)
  return letters !== undefined && startsWithLetters?.test(letters) ? [literal(`-${letters}`), ...rest] : words
}

function filesOf(call: ParsedCall, { text }: ProgramRule): readonly Word[] {
  if (!text || (text.unless !== undefined && hasOption(call, text.unless))) return call.operands
  // A word that may become several, or an option, leaves open which one is the text.
  const isCertain = call.operands.slice(0, text.count).every((word) => !word.isSeveral)
  return isCertain ? call.operands.slice(text.count) : call.operands
}

function fileValues({ options }: ParsedCall): FileUse[] {
  return options.flatMap(({ isFile, value }) => (isFile && value ? [{ word: value, isRecursive: false }] : []))
}

function printed(call: ParsedCall, { prints }: ProgramRule, files: readonly Word[]): ProgramJudgement['prints'] {
  if (prints?.names === true || (prints?.names !== undefined && hasOption(call, prints.names))) return 'names'
  return prints?.input && files.length === 0 ? 'input' : 'anything'
}

function judgeFind(words: readonly Word[]): ProgramJudgement {
  const found = readFind(words)
  if (typeof found === 'string') return refused(found)
  return {
    reads: [],
    prints: found.printsNames ? 'names' : 'anything',
    roots: found.roots.length > 0 ? found.roots : [here],
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
  const judged = judgeCall(git.command.call, git.command.rule)
  const reads = [...judged.reads, ...secretsShown(git.command)]
  return { ...judged, reads: reads.map((use) => ({ ...use, folders })), roots: [] }
}

/** Files with secrets whose content a repository keeps: `git show HEAD:.env`, `git grep key -- .env`. */
function secretsShown({ rule, call }: NonNullable<GitCall['command']>): FileUse[] {
  if (!rule.showsHistory) return []
  return call.operands.flatMap((word) => {
    const path = textOf(word)?.replace(/^[^:]*:(?:\([^)]*\))?/, '')
    return path !== undefined && mayBeSecret(exactPath(path)) ? [{ word: literal(path), isRecursive: false }] : []
  })
}
