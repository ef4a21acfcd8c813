import type { Completes } from './command.ts'
import { optionWords, quoted, type CompletionPoint } from './completion-points.ts'

export function zshCompletion(points: readonly CompletionPoint[]): string {
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
${points.flatMap(valueCases).join('\n')}
  esac
  local -a commands options
  case "$here" in
${points.map(pointCase).join('\n')}
  esac
}
if [[ $funcstack[1] == _tapetree ]]; then _tapetree "$@"; else compdef _tapetree tapetree; fi
`
}

function valueCases({ path, options }: CompletionPoint): string[] {
  return options.flatMap((option) => {
    if (option.value === undefined) return []
    const typed = optionWords(option)
      .map((word) => quoted(`${path}:${word}`))
      .join('|')
    const offer = option.choices ? `compadd -- ${option.choices.map(quoted).join(' ')}` : askFor(option.completes)
    return [`    (${typed}) ${offer}; return ;;`]
  })
}

function pointCase({ path, commands, options, positional }: CompletionPoint): string {
  const flags = options.map(({ name, description }) => quoted(`--${name}:${description}`)).join(' ')
  const words = commands.map(({ word, summary }) => quoted(`${word}:${summary}`)).join(' ')
  return `    (${quoted(path)})
      if [[ $words[CURRENT] == -* ]]; then options=(${flags}); _describe option options
      else commands=(${words}); (( $#commands )) && _describe command commands; ${askFor(positional)}; fi ;;`
}

function askFor(kind: Completes | undefined): string {
  if (kind === undefined) return ':'
  if (kind === 'file') return '_files'
  return kind === 'folder' ? '_files -/' : `_tapetree_ask ${kind}`
}
