import { realPath } from './paths/real-path.ts'
import { deletionsOf } from './deleted-paths.ts'
import { isSecret, judgeRead, judgeWrite, mayControl } from './judge-path.ts'
import { whyOutside } from './outside-programs.ts'
import { staysWithin, usePath, type PathUse } from './paths/path-use.ts'
import { allowed, editableFolders, isBoxed, worst, type Judgement, type Policy } from './policy.ts'
import { effectOf, matchCommand, matchPath, noRules, type Rule } from './rules.ts'
import { readCommandLine, type CommandLine, type SimpleCommand } from './shell/command-reader.ts'
import { gitFoldersNamed } from './shell/programs/git-commands.ts'
import { embeddedProblem, findRepository, gitFolders, repositoryProblem } from './shell/programs/git-repository.ts'
import { shellBuiltins } from './shell/programs/shell-builtins.ts'
import { versionFileProblem } from './shell/programs/version-files.ts'
import { pathsOf, specialMatchesOf, startOf, textOf, withoutStart, type Word } from './shell/words/word.ts'

/**
 * Judges a parsed command line: every program in it, and every file it names. It is allowed if all of it is known to be
 * read-only, or if rules allow each of its programs.
 */
export function judgeCommand(
  command: string,
  place: {
    cwd: string
    policy: Policy
    /** Why the agent wants to run it outside of the sandbox. */
    outside?: string
  },
): Judgement {
  const { cwd, policy, outside } = place
  const line = readCommandLine(command, { cwd, home: policy.home })
  if (isBoxed(policy)) return outside === undefined ? judgeBoxed(line, policy) : judgeOutside(line, policy, outside)
  return judgeLine(line, policy)
}

function judgeLine(line: CommandLine, policy: Policy): Judgement {
  const files = [
    ...line.reads.map((use) => judgeRead(use, policy)),
    ...line.writes.map((use) => judgeWrite(use, policy)),
  ]
  const programs = line.commands.map((each) => judgeSimple(each, policy))
  return worst([
    ...files,
    ...programs,
    ...judgeSequence(line.commands, policy),
    ...line.objections.map((objection) => judgeUnreadable(objection, policy)),
  ])
}

/**
 * Judges a command for the sandbox, which is the boundary: a command that cannot be judged is allowed in it. Rules, secrets and control files
 * count as in mode `ask`. What the user allows because of one of these runs outside, since the sandbox would block it.
 */
function judgeBoxed(line: CommandLine, policy: Policy): Judgement {
  const writes = line.writes.map((use) => judgeBoxedWrite(use, policy))
  const programs = line.commands.map((command) => judgeBoxedProgram(command, policy))
  const strictest = worst([
    ...line.reads.map((use) => judgeRead(use, policy)),
    ...[...writes, ...programs].map(({ judgement }) => judgement),
    ...line.objections.map((objection) => inBox(judgeUnreadable(objection, { ...policy, mode: 'auto' }))),
  ])
  if (strictest.effect !== 'allow') return strictest
  const kinds = new Set([...writes, ...programs].map(({ kind }) => kind))
  if (line.reads.some((use) => isSecret(use, policy))) kinds.add('outside')
  if (kinds.has('outside')) {
    // Rules allow a part of the command outside. That part must not take the rest with it.
    if (judgeLine(line, { ...policy, mode: 'ask' }).effect === 'allow') return allowed
    return { effect: 'ask', reason: 'A part of it must run outside of the sandbox, and then all of it does.' }
  }
  if (!kinds.has('inside') && line.objections.length === 0) return { effect: 'allow', box: 'read-only' }
  const deletes = line.commands.flatMap(deletionsOf)
  return { effect: 'allow', box: 'writable', ...(deletes.length > 0 && { deletes }) }
}

/** A question whose subject the sandbox does not block: what the user allows still runs in it. */
function inBox(judgement: Judgement): Judgement {
  return judgement.effect === 'ask' ? { ...judgement, box: 'writable' } : judgement
}

interface BoxedPart {
  judgement: Judgement
  /** The sandbox that this part needs: one that is read-only, one with the working folder, or none. */
  kind: 'reads' | 'inside' | 'outside'
}

function judgeBoxedWrite(use: PathUse, policy: Policy): BoxedPart {
  const judgement = judgeWrite(use, policy)
  if (mayControl(use)) return { judgement, kind: 'outside' }
  const effect = effectOf(policy.rules, (rule) => matchPath(rule, { ...use, type: 'write' }, policy))
  const isHere = editableFolders(policy).some((folder) => staysWithin(use, folder))
  if (effect === 'allow' && !isHere) return { judgement, kind: 'outside' }
  // The sandbox stops a write elsewhere, so it needs no question.
  return { judgement: effect === undefined ? allowed : inBox(judgement), kind: 'inside' }
}

function judgeBoxedProgram(command: SimpleCommand, policy: Policy): BoxedPart {
  const { words, isInner } = command
  const name = textOf(words[0] as Word) ?? ''
  const problem = command.problem ?? (shellBuiltins.has(name) ? undefined : shimProblem(command, policy))
  const why = problem !== undefined || isInner ? whyOutside(words) : undefined
  if (why !== undefined) {
    const judgement = judgeSimple({ ...command, isInner: false, problem: why }, { ...policy, mode: 'ask' })
    // A rule for the inner command does not cover the one that starts it.
    return { judgement: isInner ? withoutGrant(judgement) : judgement, kind: 'outside' }
  }
  const kind = problem === undefined || isInner ? 'reads' : 'inside'
  const effect = effectOf(policy.rules, (rule) => matchCommand(rule, words))
  if (effect === 'deny') return { judgement: { effect, reason: `A rule forbids \`${name}\`.` }, kind }
  const touched = kind === 'reads' ? allowed : judgeMentions(command, policy)
  if (touched.effect !== 'allow') return { judgement: touched, kind: 'outside' }
  if (effect !== 'ask') return { judgement: allowed, kind }
  return { judgement: inBox({ effect, reason: `A rule requires permission for \`${name}\`.` }), kind }
}

function withoutGrant(judgement: Judgement): Judgement {
  return judgement.effect === 'ask' ? { effect: 'ask', reason: judgement.reason } : judgement
}

/** A question each time, whatever the rules allow; the user sees the reason of the agent. */
function judgeOutside(line: CommandLine, policy: Policy, outside: string): Judgement {
  const judgement = judgeLine(line, { ...policy, mode: 'ask' })
  if (judgement.effect === 'deny') return judgement
  const others = judgement.effect === 'ask' ? [judgement.reason] : []
  return {
    effect: 'ask',
    reason: [`The agent wants to run it outside of the sandbox: ${outside}`, ...others].join('\n'),
  }
}

/** `git add . && git status`: the first command can add a nested repository that the second one enters. */
function judgeSequence(commands: readonly SimpleCommand[], { mode }: Policy): Judgement[] {
  const git = commands.filter(({ words, isInner }) => !isInner && isGit(textOf(words[0] as Word) ?? ''))
  if (mode === 'auto' || git.length < 2 || git.every(({ problem }) => problem === undefined)) return []
  const problems = new Set(git.flatMap(({ folders }) => folders).map(embeddedProblem))
  problems.delete(undefined)
  return [...problems].map((problem) => ({ effect: 'ask', reason: `${problem}.` }))
}

function isGit(name: string): boolean {
  return /^(?:.*\/)?git$/.test(name)
}

function judgeSimple(command: SimpleCommand, policy: Policy): Judgement {
  const { words, isInner } = command
  const name = textOf(words[0] as Word) ?? ''
  const problem = command.problem ?? (shellBuiltins.has(name) ? undefined : shimProblem(command, policy))
  const effect = effectOf(policy.rules, (rule) => matchCommand(rule, words))
  if (effect === 'deny') return { effect, reason: `A rule forbids \`${name}\`.` }
  if (isInner) return effect === 'ask' ? { effect, reason: `A rule requires permission for \`${name}\`.` } : allowed
  if (problem !== undefined && policy.mode === 'plan') {
    return { effect: 'deny', reason: `Plan mode allows only commands that read. ${problem}.` }
  }
  if (effect === 'ask') return { effect, reason: `A rule requires permission for \`${name}\`.` }
  if (problem === undefined) return allowed
  const touched = judgeMentions(command, policy)
  if (touched.effect !== 'allow' || policy.mode === 'auto') return touched
  const repository = isGit(name) ? judgeRepositories(command, policy) : undefined
  if (effect === 'allow' && (repository === undefined || repository.isGranted)) return touched
  const reasons = [...(effect === 'allow' ? [] : [problem]), ...(repository ? [repository.problem] : [])]
  // A grant does not cover programs that another repository runs.
  const grant = repository?.isForeign ? undefined : grantOf(words)
  return { effect: 'ask', reason: reasons.map((each) => `${each}.`).join(' '), ...(grant && { grant: [grant] }) }
}

function shimProblem({ folders }: SimpleCommand, { home }: Policy): string | undefined {
  for (const folder of folders) {
    const problem = versionFileProblem(realPath(folder), realPath(home))
    if (problem !== undefined) return problem
  }
  return undefined
}

interface RepositoryJudgement {
  /** What the repository may make git run. */
  problem: string
  /** It is not the repository of the working folder. */
  isForeign: boolean
  /**
   * The user knew of it: they allowed the command in this session after a request that named the problem, or they trust
   * the project.
   */
  isGranted: boolean
}

/**
 * A rule that allows a git command does not allow what a hostile repository makes of it: `cd vendor/x && git add .`
 * runs filters.
 */
function judgeRepositories({ words, folders }: SimpleCommand, policy: Policy): RepositoryJudgement | undefined {
  const { rules, cwd } = policy
  const named = gitFoldersNamed(words.slice(1))
  const places = typeof named === 'string' ? named : gitFolders(named, folders)
  if (typeof places === 'string') {
    return { problem: `The repository that it uses is unknown: ${places}`, isForeign: true, isGranted: false }
  }
  const own = gitFolderOf(cwd)
  const isInSession = effectOf({ ...noRules, session: rules.session }, (rule) => matchCommand(rule, words)) === 'allow'
  const found = places.flatMap((place): RepositoryJudgement[] => {
    const problem = repositoryProblem(place, { runsHooks: true })
    if (problem === undefined) return []
    const isForeign = own === undefined || gitFolderOf(place) !== own
    return [{ problem, isForeign, isGranted: !isForeign && (isInSession || rules.trustsProject) }]
  })
  return found.find(({ isGranted }) => !isGranted) ?? found[0]
}

function gitFolderOf(folder: string): string | undefined {
  const found = findRepository(folder)
  return typeof found === 'object' ? found.own : undefined
}

/** A program that does more than read may change any file that it is given. */
function judgeMentions({ words, folders }: SimpleCommand, policy: Policy): Judgement {
  const uses = words.slice(1).flatMap((word) =>
    [word, ...partsOf(word)].flatMap((part) =>
      folders.flatMap((folder) => {
        const paths = pathsOf(part, folder)
        const written = paths === 'unknown' ? [] : [{ ...paths, shown: startOf(part), isRecursive: false }]
        return [...written, ...(specialMatchesOf(part, folder) ?? []).map(usePath)]
      }),
    ),
  )
  const controls = uses.filter(mayControl)
  return worst([
    ...controls.map(({ shown }): Judgement => ({
      effect: 'ask',
      reason: `${shown} controls what other programs run.`,
    })),
    ...uses.map((use) => judgeRead(use, policy)),
  ])
}

/** The parts of an option that may be a path: `--file=x`, `of=x`, `-fx`. */
function partsOf(word: Word): Word[] {
  const start = startOf(word)
  const equals = start.indexOf('=') + 1
  return [...(equals > 0 ? [withoutStart(word, equals)] : []), ...(/^-[^-]/.test(start) ? [withoutStart(word, 2)] : [])]
}

function judgeUnreadable(objection: string, { mode, rules }: Policy): Judgement {
  const reason = `It cannot be analyzed: ${objection}.`
  if (mode === 'plan') return { effect: 'deny', reason: `Plan mode allows only commands that read. ${reason}` }
  const layers = [...rules.user, ...rules.project, ...rules.session]
  const mayBreakRule = layers.some(({ type, effect }) => type !== 'fetch' && type !== 'tool' && effect !== 'allow')
  return mode === 'auto' && !mayBreakRule ? allowed : { effect: 'ask', reason }
}

/**
 * The rule that allows a command from now on: with any further words if they cannot change its effect, else with
 * exactly its own words. Undefined if it has unknown words.
 */
function grantOf(words: readonly Word[]): (Rule & { type: 'command' }) | undefined {
  const texts: string[] = []
  for (const word of words) {
    const text = textOf(word)
    if (text === undefined) return undefined
    texts.push(text)
  }
  const length = openPrefix(texts)
  if (length !== undefined) return { effect: 'allow', type: 'command', match: [...texts.slice(0, length), '*'] }
  return texts.at(-1) === '*' ? undefined : { effect: 'allow', type: 'command', match: texts }
}

/** How many of the first words determine the effect. */
function openPrefix([program = '', command = '']: readonly string[]): number | undefined {
  if (program === 'git' && harmlessGit.has(command)) return 2
  return program === 'mkdir' || program === 'touch' ? 1 : undefined
}

/** No option of these runs another program. Test runners, build tools and package managers all have one that does. */
const harmlessGit = new Set(['add', 'commit', 'checkout', 'switch', 'restore', 'stash', 'tag', 'mv', 'rm'])
