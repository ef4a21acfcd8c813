import { realPath } from '../../paths/real-path.ts'
import { mayListSecrets } from '../../paths/secret-files.ts'
import { readGit } from './git-commands.ts'
import { filesShown } from './git-history.ts'
import { gitFolders, repositoryProblem } from './git-repository.ts'
import { parseArguments } from '../words/parse-arguments.ts'
import { hasOnlyOptions, hasOption, valuesOf, type FileUse, type ParsedCall, type ProgramRule } from './program-rule.ts'
import { readOnlyPrograms } from './read-only-programs.ts'
import { literal, textOf, startOf, type Word } from '../words/word.ts'
import { existsSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { readPlainFile } from '../words/plain-file.ts'

/** The effects of a program call. */
export interface ProgramJudgement {
  /** Why it is not known to be read-only: a clause without a period. */
  problem?: string
  reads: FileUse[]
  /** What is certain about its output; `input`: lines of its input. */
  prints: 'anything' | 'input' | Listing
}

/** Names of files, each ended by a line break or a NUL. */
export interface Listing {
  /** The files are these, or are in or below these folders. */
  roots: readonly Word[]
  /** Only direct children of the folders, by name. */
  isFlat?: boolean
  /** Only files that the repository around the working folder tracks. */
  isTracked?: boolean
  isNul?: boolean
  /** A file name must match one of these patterns; if empty, any name does. */
  patterns?: readonly string[]
  /** Names of folders that are skipped. */
  skipped?: readonly string[]
  /** Words that select the files. */
  wishes: readonly Word[]
}

const here = literal('.')

/** Judges a program that is not a shell builtin. Undefined if it is not in the table. */
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
  if (call.operands.length > (rule.maxOperands ?? Infinity)) return refused('it has too many operands')
  if (rule.maxOperands !== undefined && call.operands.some(({ isSeveral }) => isSeveral)) {
    return refused('its number of operands is unknown')
  }
  const problem = rule.check?.(call)
  if (problem !== undefined) return refused(problem)
  const files = filesOf(call, rule)
  const isRecursive = applies(rule.recursive, call)
  const selection = isRecursive ? selectionProblem(call, rule) : undefined
  if (selection !== undefined) return refused(selection)
  const followsLinks = isRecursive && applies(rule.followsLinks, call) && !hasOption(call, '--no-dereference')
  // The only operand may turn out to be the pattern, and then the working folder is read.
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
  // A word that may become several words, or an option, makes it unclear which one is the pattern.
  const isCertain = call.operands.slice(0, count).every((word) => !word.isSeveral)
  return isCertain ? call.operands.slice(count) : call.operands
}

/** How many leading operands are text and not files. */
function textCount(call: ParsedCall, { text }: ProgramRule): number {
  return !text || (text.unless !== undefined && hasOption(call, text.unless)) ? 0 : text.count
}

function fileValues({ options }: ParsedCall): FileUse[] {
  return options.flatMap(({ isFile, value }) => (isFile && value ? [{ word: value, isRecursive: false }] : []))
}

/** The problem with a pattern such as that of `rg -g .env`, which asks for secrets by name. */
function selectionProblem(call: ParsedCall, { selects = '' }: ProgramRule): string | undefined {
  for (const pattern of valuesOf(call, selects).map(textOf)) {
    if (pattern === undefined) return 'the files that it selects are unknown'
    // An added type has its name before its pattern.
    const meant = [pattern, pattern.slice(pattern.indexOf(':') + 1)].filter((each) => !each.startsWith('!'))
    if (meant.some(mayListSecrets)) return `\`${pattern}\` may match a file with a secret`
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
    // A tree-ish operand would precede each name.
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
  // Its output names and file operands are relative to its folder.
  const isHere = git.folders.length === 0
  const reads = [
    ...(isHere ? judged.reads : judged.reads.map((use) => ({ ...use, folders }))),
    ...shown.flatMap((each) => (typeof each === 'string' ? [] : each)),
  ]
  return { ...judged, reads, prints: isHere ? judged.prints : 'anything' }
}

interface FindCall {
  roots: Word[]
  /** Present if it only prints the names that it finds, without following links. */
  names?: {
    /** Each name ends with a NUL. */
    isNul: boolean
    /** A file must match one of these patterns to be found; empty if any file may be found. */
    patterns: string[]
    /** Names of folders in which nothing is found. */
    skipped: string[]
    /** All patterns of the expression. */
    wishes: Word[]
  }
}

/** The start folders of `find`, if it only searches and prints; else a sentence on what it may do. */
function readFind(words: readonly Word[]): FindCall | string {
  const rest = [...words]
  const roots: Word[] = []
  let printsNames = true
  for (let option = optionOf(rest[0]); option !== undefined; option = optionOf(rest[0])) {
    if (option !== '-P') printsNames = false
    rest.shift()
  }
  for (let word = rest[0]; word && isRoot(word); word = rest[0]) {
    if (/^$|^-/.test(startOf(word))) return 'the start folders of `find` are unknown'
    roots.push(word)
    rest.shift()
  }
  const filter = new Filter()
  for (let word = rest.shift(); word; word = rest.shift()) {
    const name = textOf(word)
    if (name === undefined) return 'a part of the expression of `find` is unknown'
    if (/^-(?:printf|ls|follow)$/.test(name)) printsNames = false
    if (/^(?:[(),!]|-(?:a|and|o|or|not))$/.test(name) || tests.has(name)) {
      filter.add(name)
      continue
    }
    if (!valued.has(name) && !/^-newer[aBcm][aBcmt]$/.test(name)) return `\`find ${name}\` is not known to be read-only`
    const value = rest.shift()
    if (!value || value.isSeveral) return `the value of \`find ${name}\` is unknown`
    filter.add(name, value)
  }
  return { roots, ...(printsNames && !filter.mixesEnds && { names: filter.names }) }
}

function optionOf(word: Word | undefined): string | undefined {
  const text = word && textOf(word)
  return text !== undefined && /^-[HLP]$/.test(text) ? text : undefined
}

/**
 * What the expression requires of the names that it finds. If each part between two `-o` has a `-name`, a file must
 * match one of them, however the parts are grouped.
 */
class Filter {
  readonly #patterns: string[] = []
  readonly #skipped: string[] = []
  readonly #wishes: Word[] = []
  readonly #partsWithName = [false]
  #prints = { nul: false, lines: false }
  #isNegated = false
  #isSimple = true
  #hasOr = false

  add(name: string, word?: Word): void {
    const value = word && textOf(word)
    if (word && !this.#isNegated) this.#wishes.push(word)
    const isNot = name === '!' || name === '-not'
    if ((this.#isNegated && (isNot || name === '(')) || name === ',') this.#isSimple = false
    if (name === '-o' || name === '-or') {
      this.#hasOr = true
      this.#partsWithName.push(false)
    }
    if (name === '-print0') this.#prints.nul = true
    if (name === '-print') this.#prints.lines = true
    if (/^-i?name$/.test(name) && !this.#isNegated && value !== undefined) {
      this.#patterns.push(value)
      this.#partsWithName[this.#partsWithName.length - 1] = true
    }
    const folder =
      name === '-path' && this.#isNegated ? /^\*\/([A-Za-z0-9_.-]+)\/\*$/.exec(value ?? '')?.[1] : undefined
    if (folder !== undefined) this.#skipped.push(folder)
    this.#isNegated = isNot
  }

  /** Some names end with a NUL, others with a line break. */
  get mixesEnds(): boolean {
    return this.#prints.nul && this.#prints.lines
  }

  get names(): NonNullable<FindCall['names']> {
    const isFiltered = this.#isSimple && this.#partsWithName.every(Boolean)
    return {
      isNul: this.#prints.nul,
      patterns: isFiltered ? this.#patterns : [],
      skipped: this.#isSimple && !this.#hasOr ? this.#skipped : [],
      wishes: this.#wishes,
    }
  }
}

function isRoot(word: Word): boolean {
  return !/^(?:-.|[(!])/.test(startOf(word))
}

const tests = new Set(
  `-print -print0 -prune -quit -ls -empty -true -false -executable -readable -writable -nouser -nogroup -mount -xdev -depth
  -follow -daystart -noleaf -ignore_readdir_race -noignore_readdir_race -warn -nowarn`.split(/\s+/),
)

const valued = new Set(
  `-name -iname -path -ipath -wholename -iwholename -regex -iregex -regextype -lname -ilname -type -xtype -size -perm -user -group
  -uid -gid -links -inum -samefile -fstype -newer -anewer -cnewer -mtime -atime -ctime -mmin -amin -cmin -used -maxdepth -mindepth
  -printf`.split(/\s+/),
)

/** A sentence on what an npm call may do beyond reading installed packages; undefined if nothing. */
function npmProblem(words: readonly Word[]): string | undefined {
  const [name, ...rest] = words
  const command = name && textOf(name)
  if (command === undefined) return 'npm without a command'
  const rule = npmCommands.get(command)
  if (!rule) return `\`npm ${command}\` is not a known read-only command`
  const call = parseArguments(rest, rule)
  if (typeof call === 'string') return call
  if (call.operands.length > (rule.maxOperands ?? Infinity)) return `\`npm ${command}\` with a name does more`
  return rule.check?.(call)
}

const list: ProgramRule = {
  options: `-a -l -p -g --all --json --long --parseable --global --depth= --prod --production --dev --omit= --include= --link --package-lock-only
    --workspaces --workspace=`,
}

/** Excludes commands that query the registry (`view`, `outdated`, `audit`, `search`) or run a script. */
const npmCommands = new Map<string, ProgramRule>(
  Object.entries({
    '-v': { options: '', maxOperands: 0 },
    '--version': { options: '', maxOperands: 0 },
    ls: list,
    list,
    ll: list,
    la: list,
    explain: { options: '--json' },
    why: { options: '--json' },
    query: { options: '' },
    root: { options: '-g --global', maxOperands: 0 },
    prefix: { options: '-g --global', maxOperands: 0 },
    // With a name it runs the script.
    run: { options: '', maxOperands: 0 },
    'run-script': { options: '', maxOperands: 0 },
    pkg: subcommand('get'),
    config: subcommand('get', 'list', 'ls'),
  }),
)

function subcommand(...names: string[]): ProgramRule {
  return {
    options: '--json',
    check: ({ operands: [first] }) =>
      first && names.includes(textOf(first) ?? '') ? undefined : 'it may change settings',
  }
}

/**
 * Why npm must not run without a request, if there is a reason: settings in the folder or above it can make it write
 * elsewhere (`cache`, `logs-dir`) or run something (`node-options`, `script-shell`). The settings of the user are
 * trusted.
 */
function npmSettingsProblem(folder: string, home: string): string | undefined {
  for (let current = folder; ; current = dirname(current)) {
    const file = join(current, '.npmrc')
    const problem = current === home || !existsSync(file) ? undefined : settingsProblem(file)
    if (problem !== undefined || dirname(current) === current) return problem
  }
}

function settingsProblem(file: string): string | undefined {
  const settings = readPlainFile(file, { maxBytes: 4 * 1024 * 1024 })?.toString('utf8')
  if (settings === undefined) return `${file} cannot be read`
  for (const line of settings.split(/\r?\n/)) {
    if (/^\s*(?:[#;].*)?$/.test(line)) continue
    const key = /^\s*([^=\s[\]"']+)\s*(?:=|$)/.exec(line)?.[1]
    if (key === undefined || !isHarmless(key))
      return `${file} has the line \`${line.trim()}\`, which cannot be analyzed`
  }
  return undefined
}

/** The sources and layout of packages do not matter when npm reads what is installed. */
function isHarmless(key: string): boolean {
  return harmless.has(key) || /^(?:@[^:]+:registry|\/\/.*:[_a-zA-Z]+)$/.test(key)
}

const harmless = new Set(
  `registry save-exact save-prefix engine-strict package-lock fund audit audit-level legacy-peer-deps strict-peer-deps
  strict-peer-dependencies auto-install-peers loglevel progress color ignore-scripts strict-allow-scripts always-auth
  omit-lockfile-registry-resolved lockfile-version install-strategy prefer-offline prefer-dedupe update-notifier shamefully-hoist
  public-hoist-pattern[] node-linker hoist link-workspace-packages resolution-mode tag-version-prefix workspaces-update`.split(
    /\s+/,
  ),
)
