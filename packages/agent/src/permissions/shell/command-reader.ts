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
import { innerCommands } from './programs/inner-commands.ts'
import { wrappedCommand } from './programs/wrappers.ts'

/** Everything that a command line would do, as far as that is known before it runs. */
export interface CommandLine {
  /** Every command in it, at any depth. */
  commands: SimpleCommand[]
  /** Files whose contents it shows. */
  reads: PathUse[]
  /** Files that the shell itself writes: `> out.txt`. */
  writes: PathUse[]
  /** Why its effects are unknown; empty if they are known. */
  objections: string[]
}

export interface SimpleCommand {
  words: readonly Word[]
  /** The possible folders of the shell when it starts. */
  folders: readonly string[]
  /** Why it is not known to be read-only. */
  problem?: string
  /** Another command on this line starts it and is judged for both. Only deny and ask rules are checked for it. */
  isInner: boolean
}

export interface ReaderPlace {
  cwd: string
  home: string
}

/** Parses a command line without running it. Everything that is not understood becomes an objection. */
export function readCommandLine(command: string, place: ReaderPlace): CommandLine {
  const reader = new CommandReader(place)
  reader.read(command)
  return reader.line
}

/** Longer ones are scripts, which a person does not read before allowing them. */
const maxLength = 10_000
/** How often the bodies of loops are walked in total. */
const maxRounds = 256
const maxFolders = 8
/** How often folders and repositories are inspected for one command line. */
const maxLooks = 48

/** What is known of the shell at one point. */
interface State {
  variables: ReadonlyMap<string, Word>
  folders: readonly string[]
  input: Output
  /** Inside a loop, where a command may have run before: the variables that the loop sets, which are unknown there. */
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
  /** `read` was told to split lines at some character. */
  #cutsLines = false

  constructor({ cwd, home }: ReaderPlace) {
    this.home = home
    this.#state = { variables: new Map(), folders: [cwd], input: 'anything' }
  }

  read(command: string): void {
    if (command.length > maxLength) this.object('it is too long to analyze')
    // Invisible characters, and blanks that the shell does not treat as such, would make a person and the shell read
    // different commands.
    else if (/[\p{C}\p{Zl}\p{Zp}]/u.test(command.replace(/[\n\t]/g, '')) || /[^\S \n\t]/.test(command))
      this.object('it contains invisible characters')
    else this.#script(parse(command))
  }

  // References of words

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
    this.object(`\`${text}\` cannot be parsed`)
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
    for (const { message } of errors ?? []) this.object(`it is an incomplete command: ${message}`)
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
        this.object(`a ${node.type.toLowerCase()} cannot be analyzed`)
        const { body } = node
        this.#loop(node, () => void (body.type === 'CompoundList' ? this.#statements(body.commands) : this.#node(body)))
        return 'anything'
      }
      default:
        node satisfies never
        this.object('a part of it cannot be analyzed')
        return 'anything'
    }
  }

  /** The parts of a pipeline run concurrently, each in its own subshell. */
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
    // Bodies may run one after another (`;&`), or not at all.
    for (const body of bodies) this.#oneOf([() => undefined, body])
  }

  #for(node: For): void {
    const { name, wordlist, body } = node
    const values = wordlist?.flatMap((word) => this.#expand(word)) ?? [anything]
    if (!isPlainVariable(name.text)) this.object(`\`${name.text}\` is a variable that programs read`)
    const isMany = this.#rounds + values.length > maxRounds
    this.#loop(node, () => {
      for (const value of isMany ? [anything] : values) {
        this.#rounds += 1
        this.#set(name.text, { ...value, isSeveral: false })
        this.#statements(body.commands)
      }
    })
  }

  /** Variables that a loop sets are unknown in it, since it may be the second round. */
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
        // Not those of an outer loop: this loop has forgotten only its own.
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
        this.object('a part of `[[` cannot be analyzed')
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
    this.object('the program that it starts is unknown')
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

  /** Records what a command seems to start, so that deny rules can match it. */
  #look(words: readonly Word[], problem: string | undefined): void {
    const wasInner = this.#isInner
    const { commands, scripts, isUnknown } = innerCommands(words)
    if (isUnknown && problem !== undefined) this.object('what it runs is unknown')
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
      if (name === undefined) return { ...nothing, problem: 'what it starts is unknown' }
      // Only `command` calls the shell itself; the others start a program with that name.
      if (program !== 'command' && shellBuiltins.has(name) && !programsOfThatName.has(name))
        return { ...nothing, problem: `it cannot start \`${name}\`, which is a shell builtin` }
      const judged = this.#judge(name, rest)
      return judged.problem === undefined ? judged : { ...judged, problem: `\`${name}\`: ${judged.problem}` }
    }
    const name = /^\/(?:usr\/)?bin\/([^/]+)$/.exec(program)?.[1]
    if (name !== undefined && programsOfThatName.has(name)) return this.#judge(name, words)
    if (program === 'git' && !this.#mayLook()) return { ...nothing, problem: 'there are too many commands like it' }
    const judged = judgeProgram(name ?? program, words, { folders: this.#state.folders, home: this.home })
    if (!judged) return { ...nothing, problem: 'it is not a known read-only program' }
    return judged.problem === undefined ? this.#checkFiles(judged) : judged
  }

  #checkFiles(judged: ProgramJudgement): ProgramJudgement {
    const isKnown = judged.reads.every((use) => this.#reads(use))
    return isKnown ? judged : { ...judged, problem: 'it reads files that are unknown before it runs' }
  }

  #printed(prints: ProgramJudgement['prints']): Output {
    if (prints === 'anything') return prints
    if (prints !== 'input') return this.#listed(prints)
    const { input } = this.#state
    return asLines(input)
  }

  /**
   * The names that a program lists are known if the folders have no dangerous names: then each is one word, none looks
   * like an option, and links and secrets are judged one by one when they are read. The folders are inspected only if
   * the names are used.
   */
  #listed(listing: Listing): Output {
    const { roots, isFlat = false, isTracked = false, isNul = false, wishes } = listing
    const { folders } = this.#state
    // Names from another folder are not found here, and `..` is outside of what is inspected.
    const isElsewhere = isFlat && !roots.every((root) => /^\.?$/.test(textOf(root) ?? '?'))
    const leavesRepository = isTracked && wishes.some((word) => /^[:/]|\.\./.test(textOf(word) ?? '..'))
    // The paths of the roots precede the names that are found there.
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

  /** How a shell builtin changes the shell, or why that is unknown. */
  #effect(program: string, words: readonly Word[]): string | undefined {
    if (program === 'read') this.#readInput(words)
    if (program !== 'cd') return undefined
    const { folders, loopNames } = this.#state
    const target = folderEntered(words) ?? this.home
    // It may fail, and the next command may run anyway.
    const reached = new Set([...folders, ...folders.flatMap((folder) => foldersReached(folder, target))])
    this.#state = { ...this.#state, folders: [...reached] }
    return loopNames || reached.size > maxFolders ? 'the folder that it enters is unknown' : undefined
  }

  #readInput(words: readonly Word[]): void {
    const { names, whole } = namesRead(words)
    const { input } = this.#state
    const isName = input !== 'anything' && whole === (input.isNul ? 'nul' : 'line') && !this.#cutsLines
    for (const name of names) this.#set(name, isName ? { pieces: [pieceOf(input)], isSeveral: false } : anything)
  }

  // Files

  /** False if it is unknown which files these are. */
  #reads({ word, isRecursive, followsLinks = false, folders = this.#state.folders }: FileUse): boolean {
    if (isPipe(word)) return true
    const names = namesOf(word)
    if (names) {
      // In another folder, the names refer to other files.
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
      // Links and secrets that a wildcard finds are judged one by one.
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
        else this.object('a redirection is incomplete')
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
        this.object('a redirection cannot be analyzed')
    }
  }

  /** Walks the scripts inside text that already has an objection. */
  #inside(node: SyntaxNode): void {
    if (node.type === 'Script') this.#apart(() => this.#script(node))
    else forEachChild(node, (child) => this.#inside(child))
  }

  #redirectFile({ operator, target }: Extract<Redirection, { type: 'Redirect' }>): void {
    const words = target ? this.#expand(target) : []
    const [word] = words
    const text = word && words.length === 1 ? textOf(word) : undefined
    if (operator === '<' && word && words.length === 1 && this.#mayFeed(word)) return
    // The shell itself opens network connections for these names.
    if (text === undefined || word === undefined || /^\/dev\/(?:tcp|udp)/.test(text)) {
      this.object('the target of a redirection is unknown')
      return
    }
    if (/^(?:>&|<&)$/.test(operator) && /^(?:-|[0-9]+-?)$/.test(text)) {
      if (!/^(?:-|[012])$/.test(text)) this.object(`\`${operator}${text}\` refers to a file that was opened elsewhere`)
      return
    }
    if (operator.startsWith('<')) {
      this.object(`\`${operator}\` cannot be analyzed`)
      return
    }
    if (text === '/dev/null') return
    for (const folder of this.#state.folders) {
      const paths = pathsOf(word, folder)
      if (typeof paths !== 'string')
        this.line.writes.push({ ...paths, shown: resolve(folder, text), isRecursive: false })
    }
  }

  /** Whether a program may read this as its input: a pipe, a known file, or a file that a wildcard finds. */
  #mayFeed(word: Word): boolean {
    if (word.isSeveral || /^\/dev\/(?:tcp|udp)/.test(startOf(word))) return false
    if (namesOf(word)) return false
    return this.#reads({ word, isRecursive: false })
  }

  // State

  /** Limits how often folders and repositories are inspected, since that blocks everything else. */
  #mayLook(): boolean {
    this.#looks += 1
    if (this.#looks === maxLooks + 1) this.object('it uses too many folders')
    return this.#looks <= maxLooks
  }

  #expand(word: WordNode): Word[] {
    return expandWord(word, this)
  }

  #set(name: string, value: Word): void {
    // The walk before the loop must have found every name that the loop sets.
    if (this.#state.loopNames?.has(name) === false)
      this.object(`a loop sets \`${name}\` in a way that cannot be analyzed`)
    this.#state = { ...this.#state, variables: new Map(this.#state.variables).set(name, value) }
  }

  #unset(name: string): void {
    const variables = new Map(this.#state.variables)
    variables.delete(name)
    this.#state = { ...this.#state, variables }
  }

  /** Runs the work in a subshell: its changes are discarded afterwards. */
  #apart(work: () => Output): Output {
    const before = this.#state
    this.#state = { ...before, loopNames: undefined }
    const output = work()
    this.#state = before
    return output
  }

  /** One of these branches runs. Afterwards only what holds after each of them is known. */
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

/** Whether a path, with everything that its wildcards find, is one word to any reader. */
function isPlainPath({ pieces }: Word): boolean {
  return pieces.every((piece) =>
    piece.type === 'text' ? isPlainName(piece.text) : piece.type === 'glob' && piece.isPlain,
  )
}

/** Whether a file matches one of the name patterns, ignoring case. Without patterns every file does. */
function wantedBy(globs: readonly string[]): (name: string) => boolean {
  const patterns = globs.map((glob) => parsePathPattern(glob.toLowerCase().replace(/\[[^\]]*\]?/g, '*')))
  if (patterns.length === 0) return () => true
  return (name) => patterns.some((pattern) => meets(pattern, exactPath(name.toLowerCase())))
}

/** The paths that a word refers to, relative to a folder. Undefined if they are unknown. */
function pathsAt(word: Word, folder: string): string[] | undefined {
  const text = textOf(word)
  return text === undefined ? matchesOf(word, folder) : [joinRaw(folder, text)]
}

/**
 * The folders that `cd` may enter: the shell resolves `..` as text, but like the kernel with `-P` or if there is no
 * such folder.
 */
function foldersReached(folder: string, target: string): string[] {
  const written = resolve(folder, target)
  const real = realPath(joinRaw(folder, target))
  return realPath(written) === real ? [written] : [written, real]
}

/** Whether a word is literal, without a variable, wildcard or command in it. */
function isWritten({ parts }: WordNode): boolean {
  return (parts ?? []).every(
    (part) =>
      part.type === 'Literal' ||
      part.type === 'SingleQuoted' ||
      (part.type === 'DoubleQuoted' && part.parts.every(({ type }) => type === 'Literal')),
  )
}

/** Variables that a loop sets explicitly; `#set` objects to any other. */
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
