import { resolve } from 'node:path'
import {
  forEachChild,
  parse,
  type Assignment,
  type Case,
  type Command,
  type CommandExpansionPart,
  type For,
  type If,
  type ParsedScript,
  type Pipeline,
  type ProcessSubstitutionPart,
  type Redirection,
  type Statement,
  type SyntaxNode,
  type TestExpression,
  type Word as WordNode,
} from 'unbash'
import { exactPath, meets, parsePathPattern } from '../paths/path-pattern.ts'
import { usePath, type PathUse } from '../paths/path-use.ts'
import { joinRaw, realPath } from '../paths/real-path.ts'
import { mayListSecrets } from '../paths/secret-files.ts'
import { isPlainName, survey, type Survey } from '../paths/survey.ts'
import { holdsNumber, isHarmlessArithmetic } from './words/arithmetic.ts'
import { asLines, expandAssigned, expandWord, pieceOf, type Surroundings } from './words/expand-word.ts'
import { surveyTracked } from './programs/git-history.ts'
import { judgeProgram, type Listing, type ProgramJudgement } from './programs/judge-program.ts'
import type { FileUse } from './programs/program-rule.ts'
import { folderEntered, namesRead, programsOfThatName, shellBuiltins } from './programs/shell-builtins.ts'
import { isHarmlessFor, isPlainVariable } from './words/variables.ts'
import {
  anything,
  isPipe,
  literal,
  matchesOf,
  mayBeOption,
  mayFindParent,
  namesOf,
  pathsOf,
  specialMatchesOf,
  startOf,
  textOf,
  wildNamesOf,
  type LookedUp,
  type Output,
  type Piece,
  type Word,
} from './words/word.ts'
import { wrappedCommand } from './programs/wrappers.ts'

/** Everything that a command line would do, as far as that can be known before it runs. */
export interface CommandLine {
  /** Every command in it, wherever it stands. */
  commands: SimpleCommand[]
  /** Files whose content it shows. */
  reads: PathUse[]
  /** Files that it writes to by itself, without a program: `> out.txt`. */
  writes: PathUse[]
  /** Why it cannot be known what it does; empty where it can. */
  objections: string[]
}

export interface SimpleCommand {
  words: readonly Word[]
  /** Where the shell may be when it starts. */
  folders: readonly string[]
  /** Why it cannot be said that it only reads. */
  problem?: string
  /** It is started by another command on this line, which speaks for both; only what is forbidden is looked for in it. */
  isInner: boolean
}

export interface ReaderPlace {
  cwd: string
  home: string
}

/** Reads a command line without running it. Whatever is not understood is an objection. */
export function readCommandLine(command: string, place: ReaderPlace): CommandLine {
  const reader = new CommandReader(place)
  reader.read(command)
  return reader.line
}

/** Longer ones are scripts, and nobody reads them before saying yes. */
const maxLength = 10_000
/** How often the bodies of loops are walked in all. */
const maxRounds = 256
const maxFolders = 8
/** How often folders and repositories are looked at for one command line. */
const maxLooks = 48

/** What the shell knows at one moment. */
interface State {
  variables: ReadonlyMap<string, Word>
  folders: readonly string[]
  input: Output
  /** Inside of a loop, where a command may have run before: the variables that the loop sets, which are unknown in it. */
  loopNames?: ReadonlySet<string> | undefined
}

class CommandReader implements Surroundings {
  readonly line: CommandLine = { commands: [], reads: [], writes: [], objections: [] }
  readonly home: string
  #state: State
  #rounds = 0
  #isInner = false
  #listings = 0
  #looks = 0
  /** `read` was told to cut lines at some letter. */
  #cutsLines = false

  constructor({ cwd, home }: ReaderPlace) {
    this.home = home
    this.#state = { variables: new Map(), folders: [cwd], input: 'anything' }
  }

  read(command: string): void {
    if (command.length > maxLength) this.object('it is too long to be judged')
    // Letters that cannot be seen, and blanks that are none to the shell, would make a person and the shell read different things.
    else if (/[\p{C}\p{Zl}\p{Zp}]/u.test(command.replace(/[\n\t]/g, '')) || /[^\S \n\t]/.test(command))
      this.object('it has letters in it that cannot be seen')
    else this.#script(parse(command))
  }

  // What words refer to

  readonly object = (problem: string): void => {
    this.line.objections.push(problem)
  }

  readonly variable = (name: string): Word | undefined => {
    if (name === 'HOME') return literal(this.home)
    if (name === 'PWD') return this.#state.folders.length === 1 ? literal(this.#state.folders[0] ?? '') : undefined
    // `$!` is empty until something ran in the background; `$-`, `$_` and `$0` are anything.
    if (/^[?#$]$/.test(name)) return { pieces: [{ type: 'digits' }], isSeveral: false }
    return this.#state.variables.get(name)
  }

  readonly substitute = ({ script, text }: CommandExpansionPart | ProcessSubstitutionPart): Output => {
    if (script) return this.#apart(() => this.#script(script))
    this.object(`\`${text}\` cannot be read`)
    return 'anything'
  }

  readonly lookUp = (word: Word): Word => {
    if (!word.pieces.some(({ type }) => type === 'glob') || !this.#mayLook()) return word
    let isPlain = true
    let isNoOption = true
    let isUnmatched = true
    for (const folder of this.#state.folders) {
      const names = wildNamesOf(word, folder)
      isPlain &&= names?.every(isPlainName) ?? false
      isNoOption &&= names?.every((name) => !name.startsWith('-')) ?? false
      isUnmatched &&= names?.length === 0
    }
    const looked = (piece: Piece): Piece =>
      piece.type === 'glob' ? { ...piece, isPlain, isNoOption, isUnmatched } : piece
    return { ...word, pieces: word.pieces.map(looked) }
  }

  // Lists

  #script({ commands, errors }: ParsedScript): Output {
    for (const { message } of errors ?? []) this.object(`it is not a whole command: ${message}`)
    return this.#statements(commands)
  }

  #statements(statements: readonly Statement[]): Output {
    const outputs = statements.map(({ command, background }) =>
      background ? this.#apart(() => this.#node(command)) : this.#node(command),
    )
    return outputs.length === 1 ? (outputs[0] ?? 'anything') : 'anything'
  }

  #node(node: Statement['command']): Output {
    switch (node.type) {
      case 'Command':
        return this.#command(node)
      case 'Pipeline':
        return this.#pipeline(node)
      case 'AndOr': {
        const [first, ...others] = node.commands
        if (first) this.#node(first)
        for (const other of others) this.#oneOf([() => undefined, () => void this.#node(other)])
        return 'anything'
      }
      case 'Redirected':
        return this.#redirected(node.redirects, () => this.#node(node.command))
      case 'BraceGroup':
        return this.#statements(node.body.commands)
      case 'Subshell':
        return this.#apart(() => this.#statements(node.body.commands))
      case 'If':
        this.#if(node)
        return 'anything'
      case 'Case':
        this.#case(node)
        return 'anything'
      case 'For':
        this.#for(node)
        return 'anything'
      case 'While':
        this.#loop(node, () => {
          this.#statements(node.clause.commands)
          this.#statements(node.body.commands)
        })
        return 'anything'
      case 'TestCommand':
        this.#test(node.expression)
        return 'anything'
      case 'ArithmeticCommand':
        if (!isHarmlessArithmetic({ text: `((${node.body}))`, expression: node.expression }, this)) {
          this.object('arithmetic may run something')
        }
        return 'anything'
      case 'Function':
      case 'Coproc':
      case 'Select':
      case 'ArithmeticFor': {
        this.object(`a ${node.type.toLowerCase()} cannot be judged`)
        const { body } = node
        this.#loop(node, () => void (body.type === 'CompoundList' ? this.#statements(body.commands) : this.#node(body)))
        return 'anything'
      }
      default:
        node satisfies never
        this.object('a part of it cannot be judged')
        return 'anything'
    }
  }

  /** The parts of a pipe run beside each other, each in a shell of its own. */
  #pipeline({ commands }: Pipeline): Output {
    if (commands.length === 1 && commands[0]) return this.#node(commands[0])
    const before = this.#state
    let input = before.input
    for (const command of commands) {
      this.#state = { ...before, input }
      input = this.#node(command)
    }
    this.#state = before
    return input
  }

  #if({ clause, then, elif, else: otherwise }: If): void {
    this.#statements(clause.commands)
    const [next, ...later] = elif
    this.#oneOf([
      () => void this.#statements(then.commands),
      () => {
        if (next)
          this.#if({
            type: 'If',
            pos: next.pos,
            end: next.end,
            clause: next.clause,
            then: next.then,
            elif: later,
            else: otherwise,
          })
        else if (otherwise) this.#statements(otherwise.commands)
      },
    ])
  }

  #case({ word, items }: Case): void {
    this.#expand(word)
    const bodies = items.map(({ pattern, body }) => () => {
      for (const each of pattern) this.#expand(each)
      this.#statements(body.commands)
    })
    // Bodies may run one after another (`;&`), or none of them.
    for (const body of bodies) this.#oneOf([() => undefined, body])
  }

  #for(node: For): void {
    const { name, wordlist, body } = node
    const values = wordlist?.flatMap((word) => this.#expand(word)) ?? [anything]
    if (!isPlainVariable(name.text)) this.object(`\`${name.text}\` is a variable that means something to programs`)
    const isMany = this.#rounds + values.length > maxRounds
    this.#loop(node, () => {
      for (const value of isMany ? [anything] : values) {
        this.#rounds += 1
        this.#set(name.text, { ...value, isSeveral: false })
        this.#statements(body.commands)
      }
    })
  }

  /** What is set in a loop is not known in it, since it may be the second round. */
  #loop(node: SyntaxNode, work: () => void): void {
    const names = namesSetIn(node)
    const forget = (): void => {
      for (const name of names) this.#unset(name)
    }
    const { loopNames } = this.#state
    this.#oneOf([
      () => undefined,
      () => {
        forget()
        // Not those of a loop around it: this one has forgotten only its own.
        this.#state = { ...this.#state, loopNames: names }
        work()
        this.#state = { ...this.#state, loopNames }
      },
    ])
    forget()
  }

  #test(expression: TestExpression): void {
    switch (expression.type) {
      case 'TestUnary': {
        const words = this.#expand(expression.operand)
        const isName = words.every((word) => /^[A-Za-z_][A-Za-z0-9_]*$/.test(textOf(word) ?? ''))
        if (/^-[vR]$/.test(expression.operator) && !isName) this.object('`[[ -v` may evaluate a subscript')
        return
      }
      case 'TestBinary': {
        const words = [...this.#expand(expression.left), ...this.#expand(expression.right)]
        const isArithmetic = /^-(?:eq|ne|lt|le|gt|ge)$/.test(expression.operator)
        if (isArithmetic && !words.every(holdsNumber)) this.object('`[[` may evaluate arithmetic that runs something')
        return
      }
      case 'TestLogical':
        for (const operand of expression.operands) this.#test(operand)
        return
      case 'TestNot':
        this.#test(expression.operand)
        return
      case 'TestGroup':
        this.#test(expression.expression)
        return
      default:
        expression satisfies never
        this.object('a part of `[[` cannot be judged')
    }
  }

  // One command

  #command(node: Command): Output {
    const assignments = node.prefix.filter((each) => each.type === 'Assignment')
    const values = assignments.map((each) => ({ name: each.name, value: this.#assigned(each) }))
    return this.#redirected(node.redirects, () => this.#named(node, values))
  }

  #named(node: Command, values: readonly { name: string; value: Word }[]): Output {
    if (!node.name) {
      for (const { name, value } of values) this.#assign(name, value)
      return 'anything'
    }
    const [name, ...others] = this.#expand(node.name)
    const words = [...others, ...node.args.flatMap((argument) => this.#argument(argument))]
    const program = name && others.length === 0 && isWritten(node.name) ? textOf(name) : undefined
    for (const { name: variable, value } of values) {
      const isForRead = program === 'read' && variable === 'IFS'
      if (!isForRead && !isHarmlessFor(variable, textOf(value)))
        this.object(`\`${variable}\` may change what a program does`)
    }
    this.#cutsLines = values.some(({ name: variable, value }) => variable === 'IFS' && textOf(value) !== '')
    if (program !== undefined) return this.#run(program, words)
    this.object('the program that it starts is not known')
    return 'anything'
  }

  #argument(argument: Command['args'][number]): Word[] {
    if (argument.type === 'Word') return this.#expand(argument)
    this.#assigned(argument)
    this.object(`\`${argument.text}\` sets a variable`)
    return [anything]
  }

  #assigned({ index, value, append, text }: Assignment): Word {
    if (index) {
      this.#expand(index)
      this.object(`\`${text}\` has a subscript that may run something`)
    }
    if (value.type === 'Word') {
      const word = expandAssigned(value, this)
      return append ? anything : word
    }
    for (const element of value.elements) {
      this.#expand(element)
      if (element.text.startsWith('[')) this.object(`\`${element.text}\` has a subscript that may run something`)
    }
    return anything
  }

  #assign(name: string, value: Word): void {
    if (!isPlainVariable(name)) this.object(`\`${name}\` may change what a program does`)
    this.#set(name, value)
  }

  #run(program: string, words: readonly Word[]): Output {
    const folders = this.#state.folders
    const judged = this.#judge(program, words)
    this.line.commands.push({
      words: [literal(program), ...words],
      folders,
      isInner: this.#isInner,
      ...(judged.problem !== undefined && { problem: `\`${program}\`: ${judged.problem}` }),
    })
    this.#look([literal(program), ...words], judged.problem)
    return this.#printed(judged.prints)
  }

  /** Records what a command seems to start, so that a rule that forbids it is found. */
  #look(words: readonly Word[], problem: string | undefined): void {
    const wasInner = this.#isInner
    const { commands, scripts, isUnknown } = innerCommands(words)
    if (isUnknown && problem !== undefined) this.object('what it runs is not known')
    for (const command of commands)
      this.line.commands.push({ words: command, folders: this.#state.folders, isInner: true })
    this.#isInner = true
    for (const script of scripts) this.#apart(() => this.#script(parse(script)))
    this.#isInner = wasInner
  }

  #judge(program: string, words: readonly Word[]): ProgramJudgement {
    const nothing: ProgramJudgement = { reads: [], prints: 'anything' }
    const builtin = shellBuiltins.get(program)
    if (builtin) {
      const problem = builtin(words) ?? this.#effect(program, words)
      return problem === undefined ? nothing : { ...nothing, problem }
    }
    const started = wrappedCommand(program, words, this.#state.input)
    if (typeof started === 'string') return { ...nothing, problem: started }
    if (started) {
      const [inner, ...rest] = started
      const name = inner && textOf(inner)
      if (name === undefined) return { ...nothing, problem: 'what it starts is not known' }
      // Only `command` calls the shell itself; the others start a program of that name.
      if (program !== 'command' && shellBuiltins.has(name) && !programsOfThatName.has(name))
        return { ...nothing, problem: `it cannot start \`${name}\`, which is a part of the shell` }
      const judged = this.#judge(name, rest)
      return judged.problem === undefined ? judged : { ...judged, problem: `\`${name}\`: ${judged.problem}` }
    }
    const name = /^\/(?:usr\/)?bin\/([^/]+)$/.exec(program)?.[1]
    if (name !== undefined && programsOfThatName.has(name)) return this.#judge(name, words)
    if (program === 'git' && !this.#mayLook()) return { ...nothing, problem: 'it is one of too many' }
    const judged = judgeProgram(name ?? program, words, { folders: this.#state.folders, home: this.home })
    if (!judged) return { ...nothing, problem: 'it is not among the programs that only read' }
    return judged.problem === undefined ? this.#checkFiles(judged) : judged
  }

  #checkFiles(judged: ProgramJudgement): ProgramJudgement {
    const isKnown = judged.reads.every((use) => this.#reads(use))
    return isKnown ? judged : { ...judged, problem: 'it reads files that are not known before it runs' }
  }

  #printed(prints: ProgramJudgement['prints']): Output {
    if (prints === 'anything') return prints
    if (prints !== 'input') return this.#listed(prints)
    const { input } = this.#state
    return asLines(input)
  }

  /**
   * Names that a program lists are known if nobody has prepared the folders for that: then they stay one word each, none looks like an
   * option, and links and secrets among them are judged one by one when they are read. The folders are looked at only if the names are
   * used.
   */
  #listed(listing: Listing): Output {
    const { roots, isFlat = false, isTracked = false, isNul = false, wishes } = listing
    const { folders } = this.#state
    // What is in another folder is not found here under its name alone, and `..` is outside of what is looked at.
    const isElsewhere = isFlat && !roots.every((root) => /^\.?$/.test(textOf(root) ?? '?'))
    const leavesRepository = isTracked && wishes.some((word) => /^[:/]|\.\./.test(textOf(word) ?? '..'))
    // The names of the places themselves stand before what is found there.
    const isOdd = !isFlat && !isTracked && !roots.every((root) => isPlainPath(root) && !mayBeOption(root))
    if (isElsewhere || leavesRepository || isOdd || wishes.some((word) => mayListSecrets(textOf(word) ?? '')))
      return 'anything'
    const paths = folders.flatMap((folder) => roots.map((root) => pathsAt(root, folder)))
    if (!paths.every((each) => each !== undefined)) return 'anything'
    const places = paths.flat()
    let surveys: (Survey | undefined)[] | undefined
    const look = (): LookedUp | undefined => {
      if (!surveys && !this.#mayLook()) return undefined
      surveys ??= isTracked
        ? folders.map((folder) => surveyTracked(folder, wishes))
        : [survey(places, { ...listing, wants: wantedBy(listing.patterns ?? []) })]
      const found = surveys.filter((each) => each !== undefined)
      const isUsable = found.every(({ hasDash, isPlain }) => !hasDash && (isPlain || isNul))
      if (!isUsable || found.length < surveys.length) return undefined
      return { roots: places, touched: found.flatMap(({ links, secrets }) => [...links, ...secrets]) }
    }
    this.#listings += 1
    return { id: this.#listings, folders, isNul, look }
  }

  /** What a command of the shell changes in the shell, or why that is not known. */
  #effect(program: string, words: readonly Word[]): string | undefined {
    if (program === 'read') this.#readInput(words)
    if (program !== 'cd') return undefined
    const { folders, loopNames } = this.#state
    const target = folderEntered(words) ?? this.home
    // It may fail, and what follows may run all the same.
    const reached = new Set([...folders, ...folders.flatMap((folder) => foldersReached(folder, target))])
    this.#state = { ...this.#state, folders: [...reached] }
    return loopNames || reached.size > maxFolders ? 'where it goes is not known' : undefined
  }

  #readInput(words: readonly Word[]): void {
    const { names, whole } = namesRead(words)
    const { input } = this.#state
    const isName = input !== 'anything' && whole === (input.isNul ? 'nul' : 'line') && !this.#cutsLines
    for (const name of names) this.#set(name, isName ? { pieces: [pieceOf(input)], isSeveral: false } : anything)
  }

  // Files

  /** False where it is not known which files these are. */
  #reads({ word, isRecursive, followsLinks = false, folders = this.#state.folders }: FileUse): boolean {
    if (isPipe(word)) return true
    const names = namesOf(word)
    if (names) {
      // The names mean other files elsewhere.
      const found = names.folders === folders && !followsLinks ? names.look() : undefined
      const paths = found ? [...found.roots, ...found.touched] : []
      for (const path of paths) this.line.reads.push({ ...usePath(path), isRecursive: true })
      return found !== undefined
    }
    if (isRecursive && mayFindParent(word)) return false
    return folders.every((folder) => {
      const paths = pathsOf(word, folder)
      const special = specialMatchesOf(word, folder)
      if (paths === 'unknown' || !special) return false
      this.line.reads.push({ ...paths, shown: show(word), isRecursive })
      const files = pathsAt(word, folder) ?? []
      if (followsLinks && (!this.#mayLook() || survey(files)?.links.length !== 0)) return false
      // What a wildcard finds counts by itself if it is a link or a secret.
      for (const path of special) this.line.reads.push({ ...usePath(path), isRecursive })
      return true
    })
  }

  #redirected(redirects: readonly Redirection[], work: () => Output): Output {
    for (const redirect of redirects) this.#redirect(redirect)
    const { input } = this.#state
    const isFed = redirects.some(({ operator }) => operator.startsWith('<'))
    this.#state = { ...this.#state, input: isFed ? 'anything' : input }
    const output = work()
    this.#state = { ...this.#state, input }
    return output
  }

  #redirect(redirect: Redirection): void {
    if (redirect.descriptor?.type === 'FileDescriptorVariable') this.object('a redirection sets a variable')
    switch (redirect.type) {
      case 'HereString':
        if (redirect.target) this.#expand(redirect.target)
        else this.object('a redirection is not whole')
        return
      case 'HereDoc': {
        const { delimiter, body, closing } = redirect
        const isRead =
          delimiter &&
          closing &&
          /^(?:[A-Za-z0-9_]+|'[A-Za-z0-9_ ]+'|"[A-Za-z0-9_]+"|\\[A-Za-z0-9_]+)$/.test(delimiter.text)
        const isQuoted = /^['"\\]/.test(delimiter?.text ?? '')
        const mayRun = !isQuoted && /[`\\]|\$[({[]/.test(body.text)
        if (
          !isRead ||
          isQuoted !== delimiter.quoted ||
          mayRun ||
          body.text.split('\n').some((line) => line.trimStart() === delimiter.value)
        ) {
          this.object('text with `<<` in it may run something')
          for (const part of body.parts ?? []) forEachChild(part, (child) => this.#inside(child))
        }
        return
      }
      case 'Redirect':
        this.#redirectFile(redirect)
        return
      default:
        redirect satisfies never
        this.object('a redirection cannot be judged')
    }
  }

  /** The scripts in a part of text that was objected to anyway. */
  #inside(node: SyntaxNode): void {
    if (node.type === 'Script') this.#apart(() => this.#script(node))
    else forEachChild(node, (child) => this.#inside(child))
  }

  #redirectFile({ operator, target }: Extract<Redirection, { type: 'Redirect' }>): void {
    const words = target ? this.#expand(target) : []
    const [word] = words
    const text = word && words.length === 1 ? textOf(word) : undefined
    if (operator === '<' && word && words.length === 1 && this.#mayFeed(word)) return
    // The shell itself connects where it finds these names.
    if (text === undefined || word === undefined || /^\/dev\/(?:tcp|udp)/.test(text)) {
      this.object('where a redirection leads is not known')
      return
    }
    if (/^(?:>&|<&)$/.test(operator) && /^(?:-|[0-9]+-?)$/.test(text)) {
      if (!/^(?:-|[012])$/.test(text)) this.object(`\`${operator}${text}\` leads to a file that was opened elsewhere`)
      return
    }
    if (operator.startsWith('<')) {
      this.object(`\`${operator}\` cannot be judged`)
      return
    }
    if (text === '/dev/null') return
    for (const folder of this.#state.folders) {
      const paths = pathsOf(word, folder)
      if (typeof paths !== 'string')
        this.line.writes.push({ ...paths, shown: resolve(folder, text), isRecursive: false })
    }
  }

  /** Whether a program may read this as its input: a pipe, a file that is known, or one of those that a wildcard finds. */
  #mayFeed(word: Word): boolean {
    if (word.isSeveral || /^\/dev\/(?:tcp|udp)/.test(startOf(word))) return false
    if (namesOf(word)) return false
    return this.#reads({ word, isRecursive: false })
  }

  // State

  /** Folders and repositories are looked at only so often, since everything else waits meanwhile. */
  #mayLook(): boolean {
    this.#looks += 1
    if (this.#looks === maxLooks + 1) this.object('it is about too many places')
    return this.#looks <= maxLooks
  }

  #expand(word: WordNode): Word[] {
    return expandWord(word, this)
  }

  #set(name: string, value: Word): void {
    // The walk before the loop must have found every name, whatever the way it is set.
    if (this.#state.loopNames?.has(name) === false) this.object(`a loop sets \`${name}\` in a way that is not followed`)
    this.#state = { ...this.#state, variables: new Map(this.#state.variables).set(name, value) }
  }

  #unset(name: string): void {
    const variables = new Map(this.#state.variables)
    variables.delete(name)
    this.#state = { ...this.#state, variables }
  }

  /** In a shell of its own: what it changes is gone afterwards. */
  #apart(work: () => Output): Output {
    const before = this.#state
    this.#state = { ...before, loopNames: undefined }
    const output = work()
    this.#state = before
    return output
  }

  /** One of these happens; afterwards only that is known which holds after each of them. */
  #oneOf(branches: (() => void)[]): void {
    const before = this.#state
    const after = branches.map((branch) => {
      this.#state = before
      branch()
      return this.#state
    })
    const [first, ...others] = after
    const variables = [...(first?.variables ?? [])].filter(([name, value]) =>
      others.every((other) => JSON.stringify(other.variables.get(name)) === JSON.stringify(value)),
    )
    const hasMoved = after.some((state) => state.folders !== before.folders)
    const folders = hasMoved ? [...new Set(after.flatMap((state) => state.folders))] : before.folders
    this.#state = { ...before, variables: new Map(variables), folders }
  }
}

/** Whether a path, with all that its wildcards find, is one word to whatever reads it. */
function isPlainPath({ pieces }: Word): boolean {
  return pieces.every((piece) =>
    piece.type === 'text' ? isPlainName(piece.text) : piece.type === 'glob' && piece.isPlain,
  )
}

/** Whether a file is among those that patterns of names mean, upper and lower case alike; without patterns every file is. */
function wantedBy(globs: readonly string[]): (name: string) => boolean {
  const patterns = globs.map((glob) => parsePathPattern(glob.toLowerCase().replace(/\[[^\]]*\]?/g, '*')))
  if (patterns.length === 0) return () => true
  return (name) => patterns.some((pattern) => meets(pattern, exactPath(name.toLowerCase())))
}

/** The paths that a word means, seen from a folder; undefined if they are not known. */
function pathsAt(word: Word, folder: string): string[] | undefined {
  const text = textOf(word)
  return text === undefined ? matchesOf(word, folder) : [joinRaw(folder, text)]
}

/**
 * Where `cd` may lead: the shell takes `..` as text, but as the kernel does with `-P` and if there is no such folder otherwise.
 */
function foldersReached(folder: string, target: string): string[] {
  const written = resolve(folder, target)
  const real = realPath(joinRaw(folder, target))
  return realPath(written) === real ? [written] : [written, real]
}

/** Whether a word stands there as it is meant, with no variable, wildcard or command in it. */
function isWritten({ parts }: WordNode): boolean {
  return (parts ?? []).every(
    (part) =>
      part.type === 'Literal' ||
      part.type === 'SingleQuoted' ||
      (part.type === 'DoubleQuoted' && part.parts.every(({ type }) => type === 'Literal')),
  )
}

/** Variables that a loop sets in plain sight; `#set` objects to any other. */
function namesSetIn(node: SyntaxNode): Set<string> {
  const names = new Set<string>()
  const look = (child: SyntaxNode): void => {
    if (child.type === 'Assignment') names.add(child.name)
    if (child.type === 'For') names.add(child.name.text)
    if (child.type === 'Command' && child.name?.value === 'read') {
      for (const argument of child.args) names.add(argument.text)
    }
    forEachChild(child, look)
  }
  look(node)
  return names
}

function show({ pieces }: Word): string {
  return pieces.map((piece) => (piece.type === 'text' || piece.type === 'glob' ? piece.text : '…')).join('')
}

/** What a command seems to start: only good for finding what is forbidden, never for allowing something. */
interface InnerCommands {
  commands: Word[][]
  /** Text that a shell would run. */
  scripts: string[]
  /** It runs what is written nowhere on the line. */
  isUnknown: boolean
}

const nothing: InnerCommands = { commands: [], scripts: [], isUnknown: false }

function innerCommands(words: readonly Word[]): InnerCommands {
  const [first, ...rest] = words
  const program = first && textOf(first)?.replace(/^.*\//, '')
  if (program === undefined) return nothing
  if (program === 'eval') return scriptOf(rest)
  if (shells.has(program)) return scriptAfter(rest)
  if (program === 'find') return { ...nothing, commands: commandsAfterExec(rest) }
  if (!starters.has(program)) return nothing
  const started = rest.find((word) => !isOptionOrSetting(textOf(word)))
  const isUnknown = started !== undefined && textOf(started) === undefined
  return { ...nothing, commands: rest.flatMap((_, index) => startingAt(rest, index)), isUnknown }
}

const shells = new Set(['bash', 'sh', 'dash', 'zsh', 'ksh', 'fish'])

const starters = new Set(
  `sudo doas env nice nohup timeout xargs command builtin exec time stdbuf setsid ionice chrt taskset watch flock chroot unshare nsenter
  strace ltrace parallel npx`.split(/\s+/),
)

function isOptionOrSetting(text: string | undefined): boolean {
  return text !== undefined && /^-|=|^[0-9.]+[smhd]?$/.test(text)
}

function startingAt(words: readonly Word[], index: number): Word[][] {
  const text = textOf(words[index] ?? literal('-'))
  return text === undefined || isOptionOrSetting(text) ? [] : [words.slice(index)]
}

function scriptOf(words: readonly Word[]): InnerCommands {
  const texts = words.map(textOf)
  return texts.includes(undefined) ? { ...nothing, isUnknown: true } : { ...nothing, scripts: [texts.join(' ')] }
}

/** A shell without a script and without a file takes what it runs from its input. */
function scriptAfter(words: readonly Word[]): InnerCommands {
  const index = words.findIndex((word) => /^-[a-z]*c$/.test(textOf(word) ?? ''))
  if (index !== -1) return scriptOf(words.slice(index + 1, index + 2))
  return { ...nothing, isUnknown: words.every((word) => textOf(word)?.startsWith('-')) }
}

function commandsAfterExec(words: readonly Word[]): Word[][] {
  return words.flatMap((word, index) =>
    /^-(?:exec|ok)(?:dir)?$/.test(textOf(word) ?? '') ? startingAt(words, index + 1) : [],
  )
}
