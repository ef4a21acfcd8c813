import type { Completes } from './command.ts'
import type { CompletionPoint } from './completion-points.ts'

export function fishCompletion(points: readonly CompletionPoint[]): string {
  const paths = points.flatMap(({ path }) => (path === '' ? [] : [quoted(path)])).join(' ')
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
${points.flatMap(linesOf).join('\n')}
`
}

function linesOf({ path, commands, options, positional }: CompletionPoint): string[] {
  const start = `complete -c tapetree -n ${quoted(`__tapetree_at "${path}"`)}`
  return [
    ...commands.map(({ word, summary }) => `${start} -a ${quoted(word)} -d ${quoted(summary)}`),
    ...options.map(({ name, short, value, choices, completes, description }) => {
      const named = `-l ${name}${short === undefined ? '' : ` -s ${short}`}`
      const offer = choices ? `-a ${quoted(choices.join(' '))}` : askFor(completes)
      return `${start} ${named}${value === undefined ? '' : ` -r ${offer}`} -d ${quoted(description)}`
    }),
    ...(positional === undefined ? [] : [`${start} ${askFor(positional)}`]),
  ]
}

function askFor(kind: Completes | undefined): string {
  if (kind === undefined) return '-f'
  if (kind === 'file') return '-F'
  return kind === 'folder'
    ? "-a '(__fish_complete_directories)'"
    : `-a '(tapetree completion --words ${kind} 2>/dev/null)'`
}

/** In fish a backslash is special inside single quotes, too. */
function quoted(text: string): string {
  return `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`
}
