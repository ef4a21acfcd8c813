import { parseArguments } from '../words/parse-arguments.ts'
import { hasOption, valuesOf, type HistoryShown, type ParsedCall, type ProgramRule } from './program-rule.ts'
import { textOf, type Word } from '../words/word.ts'

export interface GitCall {
  /** The folders of `-C`, entered first. */
  folders: Word[]
  /** Absent for a version query. */
  command?: { rule: ProgramRule; call: ParsedCall }
}

/** What a git call reads, or a sentence on what else it may do. */
export function readGit(words: readonly Word[]): GitCall | string {
  const outer = parseArguments(words, { options: globalOptions, stopsAtOperand: true })
  if (typeof outer === 'string') return outer
  const folders = valuesOf(outer, '-C')
  const [name, ...rest] = outer.operands
  if (!name) return hasOption(outer, '--version -v') ? { folders } : 'git without a command'
  let command = textOf(name) ?? ''
  const second = rest[0] && textOf(rest[0])
  if (second !== undefined && subcommands.get(command)?.includes(second)) {
    command += ` ${second}`
    rest.shift()
  }
  const rule = gitCommands.get(command)
  if (!rule) return `\`git ${command}\` is not a known read-only command`
  const call = parseArguments(rest, rule)
  if (typeof call === 'string') return call
  return { folders, command: { rule, call } }
}

/** The folders that `-C` names in a git call of any command; a sentence if it may use another repository. */
export function gitFoldersNamed(words: readonly Word[]): Word[] | string {
  const outer = parseArguments(words, { options: globalOptions, stopsAtOperand: true })
  return typeof outer === 'string' ? outer : valuesOf(outer, '-C')
}

/** `-c`, `--exec-path`, `--git-dir` and similar options make git run or read something else; `-p` starts a pager. */
const globalOptions =
  '-C: -P --no-pager --no-optional-locks --literal-pathspecs --glob-pathspecs --no-replace-objects --version -v'

/** Commands whose first operand is a subcommand. Without a subcommand they have their own rule, or none. */
const subcommands = new Map([
  ['remote', ['get-url']],
  ['stash', ['list', 'show']],
  ['worktree', ['list']],
  ['reflog', ['show']],
])

const diffOptions = `-p -u -s -U? -M? -C? -B? -D -l: -S: -G: -R -a -b -w -W -z -q -r -t -c -m --patch --no-patch --raw --unified?
  --stat? --numstat --shortstat --dirstat? --summary --compact-summary --name-only --name-status --diff-filter= --color? --no-color
  --color-words? --word-diff? --word-diff-regex= --color-moved? --no-renames --find-renames? --find-copies? --find-copies-harder
  --ignore-space-at-eol --ignore-space-change --ignore-all-space --ignore-blank-lines --ignore-cr-at-eol --function-context
  --inter-hunk-context= --minimal --patience --histogram --diff-algorithm= --indent-heuristic --text --binary --full-index --abbrev?
  --relative? --exit-code --quiet --no-ext-diff --no-textconv --no-prefix --src-prefix= --dst-prefix= --check --cc
  --combined-all-paths --pickaxe-regex --pickaxe-all --ignore-submodules? --submodule? --stat-width= --stat-count= --no-relative`

const historyOptions = `-n: -i -g -L: -# --oneline --graph --decorate? --no-decorate --decorate-refs= --all --branches? --tags? --remotes?
  --glob= --exclude= --max-count= --skip= --since= --after= --until= --before= --author= --committer= --grep= --all-match
  --invert-grep --regexp-ignore-case --extended-regexp --fixed-strings --perl-regexp -E -F --merges --no-merges --first-parent
  --min-parents= --max-parents= --reverse --date-order --author-date-order --topo-order --date= --relative-date --pretty? --format?
  --abbrev-commit --no-abbrev-commit --follow --full-history --simplify-merges --dense --sparse --boundary --left-right --cherry-pick
  --cherry-mark --cherry --left-only --right-only --walk-reflogs --merge --parents --children --show-pulls --source --use-mailmap
  --no-mailmap --notes? --no-notes --ancestry-path? --root --no-walk? --log-size --expand-tabs? --no-expand-tabs --encoding= --full-diff
  --not --count`

const refFilters = '--contains --no-contains --merged --no-merged --points-at'

const refOptions = `--contains? --no-contains? --merged? --no-merged? --points-at? --sort= --format= --color? --no-color --column? --no-column
  -i --ignore-case --abbrev? --no-abbrev`

/** With `diff`, git runs itself in each submodule in the history, with the settings of whatever is there. */
function shownProblem(call: ParsedCall): string | undefined {
  const values = valuesOf(call, '--submodule').map(textOf)
  if (values.every((value) => value === 'short' || value === 'log')) return formatProblem(call)
  return '`--submodule` may run git in other repositories'
}

/** `%G` verifies signatures, which starts another program. */
function formatProblem(call: ParsedCall): string | undefined {
  const formats = valuesOf(call, '--format --pretty --group').map(textOf)
  if (formats.every((format) => format !== undefined && !/%G|signature/.test(format))) return undefined
  return 'the format may make another program verify signatures'
}

/** Options that show the changes themselves. */
const patches = `-p -u -U -W -c -m -L --patch --unified --function-context --cc --binary --check --word-diff --word-diff-regex --color-words
  --color-moved`

/** Options that hide the changes, unless one of the others is present. */
const summaries = `--stat --numstat --shortstat --dirstat --summary --compact-summary --name-only --name-status --raw --no-patch -s --quiet
  -q`

function showsIfAsked(call: ParsedCall): HistoryShown {
  return hasOption(call, patches) ? 'changes' : 'names'
}

function showsUnlessSummary(call: ParsedCall): HistoryShown {
  return hasOption(call, summaries) ? showsIfAsked(call) : 'changes'
}

const log: ProgramRule = {
  options: `${diffOptions} ${historyOptions}`,
  check: shownProblem,
  showsHistory: showsIfAsked,
}
const diff: ProgramRule = {
  options: `${diffOptions} --cached --staged --merge-base --ours --theirs --base`,
  check: shownProblem,
  showsHistory: showsIfAsked,
}

const gitCommands = new Map<string, ProgramRule>(
  Object.entries({
    log,
    // It is unknown what an object id refers to; it may be a file.
    show: {
      ...log,
      showsHistory: (call: ParsedCall) =>
        call.operands.every(
          (word) => /^[A-Za-z@]/.test(textOf(word) ?? '') && !/^[0-9a-f]{4,}$/.test(textOf(word) ?? ''),
        )
          ? showsUnlessSummary(call)
          : 'files',
    },
    whatchanged: log,
    'stash list': log,
    'stash show': {
      ...diff,
      showsHistory: (call: ParsedCall) => (hasOption(call, patches) ? ('files' as const) : ('names' as const)),
    },
    'reflog show': log,
    // Any operand could be a subcommand that deletes.
    reflog: { ...log, maxOperands: 0 },
    shortlog: {
      options: `-s -n -e -c --summary --numbered --email --committer --group= --all --no-merges --merges --since= --after= --until= --before=
      --author= --max-count=`,
      check: formatProblem,
    },
    'rev-list': log,
    // Paths outside of the repository are compared as files.
    diff: { ...diff, reads: 'contents', recursive: true, needsOperands: true, showsHistory: showsUnlessSummary },
    'diff-tree': {
      ...diff,
      options: `${diff.options} --root --stdin --pretty? --format? -v --no-commit-id`,
    },
    'diff-index': diff,
    'diff-files': diff,
    'range-diff': {
      ...diff,
      options: `${diff.options} --creation-factor= --no-dual-color --left-only --right-only`,
      showsHistory: () => 'files' as const,
    },
    status: {
      options: `-v -s -b -z -u? -M? --verbose --short --branch --show-stash --ahead-behind --no-ahead-behind --porcelain? --long --null
      --untracked-files? --ignored? --ignore-submodules? --column? --no-column --no-renames --renames --find-renames?`,
      showsHistory: (call: ParsedCall) => (hasOption(call, '-v --verbose') ? ('changes' as const) : undefined),
      check: (call: ParsedCall) =>
        hasOption(call, '-v --verbose') && call.operands.length > 0
          ? '`git status -v` shows the changes of all files, whatever it names'
          : undefined,
    },
    blame: {
      options: `-b -f -n -p -c -t -l -s -e -w -L: -M? -C? --root --show-name --show-number --porcelain --line-porcelain --show-email
      --since= --date= --abbrev? --ignore-rev= --minimal --first-parent --color-lines --color-by-age --reverse --incremental`,
      reads: 'contents',
    },
    branch: {
      options: `-a -r -v --all --remotes --verbose --list --show-current ${refOptions}`,
      // A name alone creates a branch.
      check: (call: ParsedCall) => listsOnly(call, `--list ${refFilters}`),
    },
    tag: {
      options: `-l -n? --list ${refOptions}`,
      check: (call: ParsedCall) => listsOnly(call, `-l -n --list ${refFilters}`),
    },
    'for-each-ref': { options: `${refOptions} --count=`, check: formatProblem },
    'show-ref': { options: '-d -s -q --tags --heads --verify --head --dereference --hash? --abbrev? --quiet' },
    'ls-files': {
      options: `-z -t -v -c -d -m -o -i -s -k -u -x: --cached --deleted --modified --others --ignored --stage --killed --directory
      --no-empty-directory --unmerged --exclude= --exclude-standard --full-name --error-unmatch --abbrev? --eol --deduplicate
      --recurse-submodules`,
      prints: { names: { with: '-z -c -d -m --cached --deleted --modified --deduplicate', isTracked: true } },
    },
    'ls-tree': {
      options: '-d -r -t -z -l --long --name-only --name-status --object-only --full-name --full-tree --abbrev?',
    },
    grep: {
      options: `-v -i -w -a -I -r -E -G -F -P -n -h -H -l -L -z -o -c -p -W -q -e: -f@ -A: -B: -C: -m: -# --cached --invert-match
      --ignore-case --word-regexp --text --recursive --no-recursive --max-depth= --extended-regexp --basic-regexp --fixed-strings
      --perl-regexp --line-number --column --full-name --files-with-matches --name-only --files-without-match --null --only-matching
      --count --color? --no-color --break --heading --context= --before-context= --after-context= --threads= --show-function
      --function-context --and --or --not --quiet --all-match --max-count= --no-textconv`,
      prints: {
        names: {
          needs: '-l -L --files-with-matches --name-only --files-without-match',
          with: `-v -i -w -a -I -E -G -F -P -l -L -z -e --ignore-case --word-regexp --extended-regexp --basic-regexp --fixed-strings
            --perl-regexp --files-with-matches --name-only --files-without-match --null`,
          isTracked: true,
        },
      },
      text: { count: 1, unless: '-e -f' },
      showsHistory: (call: ParsedCall) =>
        hasOption(call, '-l -L -c -q --files-with-matches --name-only --files-without-match --count --quiet')
          ? ('names' as const)
          : ('matches' as const),
    },
    'cat-file': {
      options: '-e -p -t -s --batch-check? --batch-all-objects --allow-unknown-type',
      showsHistory: (call: ParsedCall) => (hasOption(call, '-p') ? ('files' as const) : ('names' as const)),
    },
    'rev-parse': {
      options: `-q --verify --quiet --short? --abbrev-ref? --symbolic --symbolic-full-name --all --branches? --tags? --remotes? --git-dir
      --absolute-git-dir --git-common-dir --git-path= --show-toplevel --show-superproject-working-tree --show-prefix --show-cdup
      --is-inside-work-tree --is-inside-git-dir --is-bare-repository --is-shallow-repository --show-object-format? --revs-only --no-revs
      --flags --no-flags --path-format= --not --glob= --exclude=`,
    },
    describe: {
      // `--dirty` rewrites the index.
      options: `--contains --all --tags --long --first-parent --abbrev? --exact-match --candidates= --match= --exclude= --always`,
    },
    'merge-base': { options: '-a --all --octopus --independent --is-ancestor --fork-point' },
    'name-rev': { options: '--name-only --tags --refs= --exclude= --all --always --no-undefined' },
    'symbolic-ref': { options: '-q --quiet --short', maxOperands: 1 },
    'count-objects': { options: '-v -H --verbose --human-readable' },
    'check-ignore': { options: '-q -v -z -n --quiet --verbose --non-matching --no-index' },
    'check-attr': { options: '-a -z --all --cached' },
    cherry: { options: '-v --abbrev?' },
    remote: { options: '-v --verbose', maxOperands: 0 },
    'remote get-url': { options: '--push --all' },
    'worktree list': { options: '-v -z --verbose --porcelain --expire=' },
    config: {
      options: `-l -z -t: --get --get-all --get-regexp --list --global --system --local --worktree --type= --bool --int --bool-or-int --path
      --null --name-only --show-origin --show-scope --default= --includes --no-includes`,
      // `git config a.b -z` sets a.b to `-z`.
      stopsAtOperand: true,
      check: configProblem,
    },
    version: { options: '--build-options', maxOperands: 0 },
  }),
)

/** A name and a value would set it, and since version 2.46 a word without a dot is a subcommand: `git config edit`. */
function configProblem(call: ParsedCall): string | undefined {
  const isQuery = hasOption(call, '-l --list --get --get-all --get-regexp') || call.operands.length === 1
  const [first] = call.operands
  const isKey = first === undefined || hasOption(call, '--get-regexp') || textOf(first)?.includes('.')
  return isQuery && isKey ? undefined : '`git config` may change settings'
}

function listsOnly(call: ParsedCall, lists: string): string | undefined {
  if (call.operands.length > 0 && !hasOption(call, lists)) return 'a name without `--list` creates something'
  return formatProblem(call)
}
