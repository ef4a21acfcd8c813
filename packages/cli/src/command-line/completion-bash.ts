import type { Completes } from './command.ts'
import { optionWords, quoted, type CompletionPoint } from './completion-points.ts'

/** Compares printed words by hand: `compgen -W` would evaluate shell code inside them. */
export function bashCompletion(points: readonly CompletionPoint[]): string {
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
${points.flatMap(valueCases).join('\n')}
  esac
  case "$here" in
${points.map(pointCase).join('\n')}
  esac
  if declare -F __ltrim_colon_completions >/dev/null; then __ltrim_colon_completions "$current"; fi
}
complete -F _tapetree tapetree
`
}

function valueCases({ path, options }: CompletionPoint): string[] {
  return options.flatMap((option) => {
    if (option.value === undefined) return []
    const typed = optionWords(option)
      .map((word) => quoted(`${path}:${word}`))
      .join(' | ')
    const offer = option.choices
      ? `_tapetree_offer "$current" ${option.choices.map(quoted).join(' ')}`
      : askFor(option.completes)
    return [`    ${typed}) ${offer}; return ;;`]
  })
}

function pointCase({ path, commands, options, positional }: CompletionPoint): string {
  const flags = options.flatMap(({ name }) => quoted(`--${name}`)).join(' ')
  const words = commands.map(({ word }) => quoted(word)).join(' ')
  return `    ${quoted(path)})
      if [[ $current == -* ]]; then _tapetree_offer "$current" ${flags}
      else _tapetree_offer "$current" ${words}; ${askFor(positional)}; fi ;;`
}

function askFor(kind: Completes | undefined): string {
  if (kind === undefined) return ':'
  if (kind === 'file') return '_tapetree_files -f "$current"'
  return kind === 'folder' ? '_tapetree_files -d "$current"' : `_tapetree_ask ${kind} "$current"`
}
