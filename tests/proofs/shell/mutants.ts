import type { Case } from './oracle.ts'
import type { Twin } from './world.ts'

/** The judge, asked in the mode that asks before every write, in the world or in a twin of it. */
export type Approves = (tried: Case, twin?: Twin) => boolean

/**
 * Weaker judges, each blind to one thing: they see a command without it, or a world without it. The commands that are made up must
 * include one that the weak judge approves and that does harm when it runs, else the proof could not see such a mistake in ours.
 */
export const mutants: Record<string, (approves: Approves, tried: Case) => boolean> = {
  'takes `$!` for a number': rewritten((command) => command.replaceAll(/\$!|\$\{!\}/g, '1')),
  'does not know what `read` sets': rewritten((command) => command.replaceAll(readOfX, 'true')),
  'collapses `..` in the text of a path': rewritten(collapse),
  'takes every option for one that only reads': rewritten((command) =>
    command.replaceAll(/ --?[A-Za-z][\w-]*(?:=\S*)?/g, ''),
  ),
  'does not know which files are secret': rewritten((command) =>
    command.replaceAll(/\S*(?:\.env|\.netrc|id_rsa|private\/x|credentials|hosts\.yml)\b/g, 'a.txt'),
  ),
  'does not look for links': (approves, tried) => tried.workspace === 'links' && approves(tried, 'links'),
  'does not look at names of files': (approves, tried) => tried.workspace === 'odd' && approves(tried, 'names'),
  'does not look at settings of repositories': (approves, tried) =>
    tried.workspace === 'repos' && approves(tried, 'settings'),
}

const readOfX =
  /(?:command (?:-p )?|builtin |timeout 1 |\\)?read (?:-\S+ (?:"" |99 |1 |0 |p |a |30 )?)*(?:"x"|'x'|\\?x(?:'')?)/g

function rewritten(rewrite: (command: string) => string): (approves: Approves, tried: Case) => boolean {
  return (approves, { workspace, command }) => {
    const seen = rewrite(command)
    return seen !== command && approves({ workspace, command: seen })
  }
}

/** Takes `name/..` out of paths until there is none. */
function collapse(command: string): string {
  const shorter = command.replace(/(?<=^|[\s/'"])(?!\.\.?\/)[\w.-]+\/\.\.(?:\/|(?=[\s'";]|$))/, '')
  return shorter === command ? command : collapse(shorter)
}
