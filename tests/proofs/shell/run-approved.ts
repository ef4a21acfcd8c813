import { lstatSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { examine, watchedCalls, type ApprovedMode, type Case } from './oracle.ts'
import { readRecord, resetCopy, runInside, writeCommands, type Sandbox } from './sandbox.ts'

export interface Outcome extends Case {
  /** How many programs it started. */
  started: number
  /** What it should not have done. */
  violations: string[]
}

export interface RunOptions {
  mode?: ApprovedMode
  /** Restores the workspace after each command, since commands are expected to change it. */
  restores?: boolean
}

/** Runs commands one after another under `strace` and examines what they did. */
export async function runApproved(
  sandbox: Sandbox,
  cases: readonly Case[],
  { mode = 'ask', restores = mode !== 'ask' }: RunOptions = {},
): Promise<Outcome[]> {
  const folder = join(sandbox.records, 'approved')
  const commands = cases.map(({ command }) => command)
  await writeCommands(folder, commands)
  const before = restores ? undefined : snapshot(sandbox.copy)
  const places = cases.map(({ workspace }) => workspace)
  await runInside(sandbox, script, [folder, watchedCalls, restores ? 'yes' : '', ...places])
  const outcomes = await Promise.all(
    cases.map(async ({ workspace, command }, index): Promise<Outcome> => {
      const trace = await readRecord(folder, `${index}.trace`)
      if (trace === '') return { workspace, command, started: 0, violations: ['left no trace'] }
      const output = await readRecord(folder, `${index}.out`)
      return { workspace, command, ...examine({ workspace, command, world: sandbox.world, mode, trace, output }) }
    }),
  )
  const isClean = outcomes.every(({ violations }) => violations.length === 0)
  const differences = before && isClean ? compare(before, snapshot(sandbox.copy)) : []
  if (!isClean || differences.length > 0) resetCopy(sandbox)
  if (differences.length === 0) return outcomes
  const what = `one of these changed files although no call was seen: ${differences.join(', ')}`
  return [...outcomes, { workspace: 'arena', command: commands.join('\n'), started: 0, violations: [what] }]
}

/** Output beyond what is kept ends a command that prints forever. */
const script = `
folder=$1 watched=$2 restores=$3 index=0 world=$PWD
shift 3
for workspace; do
  IFS= read -r -d '' command < "$folder/$index.sh"
  cd "$world/$workspace"
  timeout -k 1 3 strace -f -y -qq -s 512 --seccomp-bpf -e trace=$watched -o "$folder/$index.trace" \\
    bash -c "$command" </dev/null 2>&1 | head -c 1000000 > "$folder/$index.out"
  if [ "$restores" ]; then
    cd "$world"
    rm -rf "$workspace"
    cp -a "/tmp/pristine/$workspace" "$workspace"
  fi
  index=$((index + 1))
done
`

function compare(before: ReadonlyMap<string, string>, after: ReadonlyMap<string, string>): string[] {
  const changed = [...after.keys()].filter((path) => before.get(path) !== after.get(path))
  return [...changed, ...[...before.keys()].filter((path) => !after.has(path))]
}

/** Every file with what would change if somebody wrote to it. */
function snapshot(folder: string): Map<string, string> {
  const found = new Map<string, string>()
  const visit = (path: string): void => {
    const { mode, size, mtimeMs, ctimeMs, ino } = lstatSync(path)
    found.set(path, [mode, size, mtimeMs, ctimeMs, ino].join(' '))
    if ((mode & 0o170000) !== 0o040000) return
    for (const name of readdirSync(path)) visit(join(path, name))
  }
  visit(folder)
  return found
}
