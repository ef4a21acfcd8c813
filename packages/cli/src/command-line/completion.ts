import type { CommandSpec, Completes, OptionSpec } from './command.ts'
import { shownOptions } from './help.ts'

export const shells = ['bash', 'zsh', 'fish'] as const

/** A shell script generated from the command table. */
export function completionScript(shell: (typeof shells)[number], commands: readonly CommandSpec[]): string {
  const points = completionPoints(commands)
  switch (shell) {
    case 'bash':
      return bashCompletion(points)
    case 'zsh':
      return zshCompletion(points)
    case 'fish':
      return fishCompletion(points)
    default:
      return shell satisfies never
  }
}

/** What may follow the words of a command or group. */
interface CompletionPoint {
  /** Such as `sessions list`; empty at the top level. */
  path: string
  commands: { word: string; summary: string }[]
  options: OptionSpec[]
  positional: Completes | undefined
}

function completionPoints(commands: readonly CommandSpec[]): CompletionPoint[] {
  const paths = new Set([
    '',
    ...commands.flatMap(({ path }) => path.map((_, index) => path.slice(0, index + 1).join(' '))),
  ])
  return [...paths].map((path) => pointAt(path, commands))
}

function pointAt(path: string, commands: readonly CommandSpec[]): CompletionPoint {
  const own = commands.find((each) => each.path.join(' ') === path)
  const depth = path === '' ? 0 : path.split(' ').length
  const below = new Map<string, string>()
  for (const each of commands) {
    const word = each.path[depth]
    if (word === undefined || each.path.slice(0, depth).join(' ') !== path) continue
    const isWhole = each.path.length === depth + 1
    if (isWhole || !below.has(word)) below.set(word, isWhole ? each.summary : `commands for ${word}`)
  }
  return {
    path,
    commands: [...below].map(([word, summary]) => ({ word, summary })),
    options: own ? shownOptions(own) : [],
    positional: own?.positionals?.find(({ completes }) => completes !== undefined)?.completes,
  }
}

/** The ways to type an option. */
function optionWords({ name, short }: OptionSpec): string[] {
  return [`--${name}`, ...(short === undefined ? [] : [`-${short}`])]
}

/** In single quotes, for every shell. */
function quoted(text: string): string {
  return `'${text.replaceAll("'", String.raw`'\''`)}'`
}

/** Compares printed words by hand: `compgen -W` would evaluate shell code inside them. */
function bashCompletion(points: readonly CompletionPoint[]): string {
  return `# Completion of tapetree for bash: eval "$(tapetree completion bash)"
_tapetree_offer() {
  local current=$1 word
  shift
  for word in "$@"; do [[ $word == "$current"* ]] && COMPREPLY+=("$word"); done
}
_tapetree_ask() {
  local word rest
  while IFS=$'\\t' read -r word rest; do
    [[ $word == "$2"* ]] && COMPREPLY+=("$word")
  done < <(tapetree completion --words "$1" 2>/dev/null)
}
_tapetree_files() {
  local word
  compopt -o filenames 2>/dev/null
  while IFS= read -r word; do COMPREPLY+=("$word"); done < <(compgen "$1" -- "$2")
}
_tapetree() {
  local current previous words cword here='' word
  if declare -F _get_comp_words_by_ref >/dev/null; then
    _get_comp_words_by_ref -n := current previous words cword 2>/dev/null
    current=\${words[cword]} previous=\${words[cword - 1]}
  else
    words=("\${COMP_WORDS[@]}") cword=$COMP_CWORD
    current=\${words[cword]} previous=\${words[cword - 1]}
  fi
  COMPREPLY=()
  for word in "\${words[@]:1:cword - 1}"; do
    case "\${here:+$here }$word" in
      ${points.flatMap(({ path }) => (path === '' ? [] : [quoted(path)])).join(' | ')}) here="\${here:+$here }$word" ;;
    esac
  done
  case "$here:$previous" in
${points.flatMap(bashValueCases).join('\n')}
  esac
  case "$here" in
${points.map(bashPointCase).join('\n')}
  esac
  if declare -F __ltrim_colon_completions >/dev/null; then __ltrim_colon_completions "$current"; fi
}
complete -F _tapetree tapetree
`
}

function bashValueCases({ path, options }: CompletionPoint): string[] {
  return options.flatMap((option) => {
    if (option.value === undefined) return []
    const typed = optionWords(option)
      .map((word) => quoted(`${path}:${word}`))
      .join(' | ')
    const offer = option.choices
      ? `_tapetree_offer "$current" ${option.choices.map(quoted).join(' ')}`
      : bashAskFor(option.completes)
    return [`    ${typed}) ${offer}; return ;;`]
  })
}

function bashPointCase({ path, commands, options, positional }: CompletionPoint): string {
  const flags = options.flatMap(({ name }) => quoted(`--${name}`)).join(' ')
  const words = commands.map(({ word }) => quoted(word)).join(' ')
  return `    ${quoted(path)})
      if [[ $current == -* ]]; then _tapetree_offer "$current" ${flags}
      else _tapetree_offer "$current" ${words}; ${bashAskFor(positional)}; fi ;;`
}

function bashAskFor(kind: Completes | undefined): string {
  if (kind === undefined) return ':'
  if (kind === 'file') return '_tapetree_files -f "$current"'
  return kind === 'folder' ? '_tapetree_files -d "$current"' : `_tapetree_ask ${kind} "$current"`
}

function fishCompletion(points: readonly CompletionPoint[]): string {
  const paths = points.flatMap(({ path }) => (path === '' ? [] : [fishQuoted(path)])).join(' ')
  return `# Completion of tapetree for fish: tapetree completion fish > ~/.config/fish/completions/tapetree.fish
function __tapetree_at
    set -l here ''
    for word in (commandline -opc)[2..]
        set -l longer (string trim -- "$here $word")
        contains -- $longer ${paths}; and set here $longer
    end
    test "$here" = "$argv[1]"
end
complete -c tapetree -f
${points.flatMap(fishLines).join('\n')}
`
}

function fishLines({ path, commands, options, positional }: CompletionPoint): string[] {
  const start = `complete -c tapetree -n ${fishQuoted(`__tapetree_at "${path}"`)}`
  return [
    ...commands.map(({ word, summary }) => `${start} -a ${fishQuoted(word)} -d ${fishQuoted(summary)}`),
    ...options.map(({ name, short, value, choices, completes, description }) => {
      const named = `-l ${name}${short === undefined ? '' : ` -s ${short}`}`
      const offer = choices ? `-a ${fishQuoted(choices.join(' '))}` : fishAskFor(completes)
      return `${start} ${named}${value === undefined ? '' : ` -r ${offer}`} -d ${fishQuoted(description)}`
    }),
    ...(positional === undefined ? [] : [`${start} ${fishAskFor(positional)}`]),
  ]
}

function fishAskFor(kind: Completes | undefined): string {
  if (kind === undefined) return '-f'
  if (kind === 'file') return '-F'
  return kind === 'folder'
    ? "-a '(__fish_complete_directories)'"
    : `-a '(tapetree completion --words ${kind} 2>/dev/null)'`
}

/** In fish a backslash is special inside single quotes, too. */
function fishQuoted(text: string): string {
  return `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`
}

function zshCompletion(points: readonly CompletionPoint[]): string {
  return `#compdef tapetree
# Completion of tapetree for zsh: put this into a file _tapetree in a folder of your $fpath.
_tapetree_ask() {
  local -a lines=("\${(@f)$(tapetree completion --words $1 2>/dev/null)}")
  local -a names=("\${(@)lines%%$'\\t'*}") shown=("\${(@)lines//$'\\t'/  }")
  [[ -n $names[1] ]] && compadd -l -d shown -a names
}
_tapetree() {
  local here='' word
  for word in "\${(@)words[2,CURRENT-1]}"; do
    case "\${here:+$here }$word" in
      (${points.flatMap(({ path }) => (path === '' ? [] : [quoted(path)])).join('|')}) here="\${here:+$here }$word" ;;
    esac
  done
  case "$here:$words[CURRENT-1]" in
${points.flatMap(zshValueCases).join('\n')}
  esac
  local -a commands options
  case "$here" in
${points.map(zshPointCase).join('\n')}
  esac
}
if [[ $funcstack[1] == _tapetree ]]; then _tapetree "$@"; else compdef _tapetree tapetree; fi
`
}

function zshValueCases({ path, options }: CompletionPoint): string[] {
  return options.flatMap((option) => {
    if (option.value === undefined) return []
    const typed = optionWords(option)
      .map((word) => quoted(`${path}:${word}`))
      .join('|')
    const offer = option.choices ? `compadd -- ${option.choices.map(quoted).join(' ')}` : zshAskFor(option.completes)
    return [`    (${typed}) ${offer}; return ;;`]
  })
}

function zshPointCase({ path, commands, options, positional }: CompletionPoint): string {
  const flags = options.map(({ name, description }) => quoted(`--${name}:${description}`)).join(' ')
  const words = commands.map(({ word, summary }) => quoted(`${word}:${summary}`)).join(' ')
  return `    (${quoted(path)})
      if [[ $words[CURRENT] == -* ]]; then options=(${flags}); _describe option options
      else commands=(${words}); (( $#commands )) && _describe command commands; ${zshAskFor(positional)}; fi ;;`
}

function zshAskFor(kind: Completes | undefined): string {
  if (kind === undefined) return ':'
  if (kind === 'file') return '_files'
  return kind === 'folder' ? '_files -/' : `_tapetree_ask ${kind}`
}
