import { parseArguments } from '../words/parse-arguments.ts'
import type { ProgramRule } from './program-rule.ts'
import { textOf, type Word } from '../words/word.ts'

/** A sentence on what a call of npm may do beyond reading what is installed here; undefined if nothing. */
export function npmProblem(words: readonly Word[]): string | undefined {
  const [name, ...rest] = words
  const command = name && textOf(name)
  if (command === undefined) return 'npm without a command'
  const rule = npmCommands.get(command)
  if (!rule) return `\`npm ${command}\` is not among the commands that only read`
  const call = parseArguments(rest, rule)
  if (typeof call === 'string') return call
  if (call.operands.length > (rule.maxOperands ?? Infinity)) return `\`npm ${command}\` with a name does more`
  return rule.check?.(call)
}

const list: ProgramRule = {
  options: `-a -l -p -g --all --json --long --parseable --global --depth= --prod --production --dev --omit= --include= --link --package-lock-only
    --workspaces --workspace=`,
}

/** What asks the registry (`view`, `outdated`, `audit`, `search`) is not here, nor what runs a script. */
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
    // With a name it is run.
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
