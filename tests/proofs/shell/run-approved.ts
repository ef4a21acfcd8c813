import { lstat, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { callsIn, startsProgram, violationOf, watchedCalls } from './oracle.ts'
import { readTrace, runInside, writeCommands, type Sandbox } from './sandbox.ts'

export interface Outcome {
  command: string
  /** How many programs it started. */
  started: number
  /** What it should not have done. */
  violations: string[]
}

/** Runs commands one after another under the eyes of `strace`. */
export async function runApproved(sandbox: Sandbox, commands: readonly string[]): Promise<Outcome[]> {
  const folder = join(sandbox.records, 'approved')
  await writeCommands(folder, commands)
  const before = await snapshot(sandbox)
  await runInside(sandbox, script, [folder, String(commands.length), watchedCalls])
  const outcomes = await Promise.all(
    commands.map(async (command, index): Promise<Outcome> => {
      const trace = await readTrace(folder, index)
      if (trace === '') return { command, started: 0, violations: ['left no trace'] }
      const calls = callsIn(trace)
      return { command, started: calls.filter(startsProgram).length, violations: calls.flatMap(violationOf) }
    }),
  )
  const differences = compare(before, await snapshot(sandbox))
  if (differences.length === 0 || outcomes.some(({ violations }) => violations.length > 0)) return outcomes
  const what = `one of these changed files although no call was seen: ${differences.join(', ')}`
  return [...outcomes, { command: commands.join('\n'), started: 0, violations: [what] }]
}

const script = `
folder=$1 count=$2 watched=$3 index=0
while [ $index -lt $count ]; do
  command=$(cat "$folder/$index.sh"; echo .)
  timeout -k 1 5 strace -f -qq -s 512 --seccomp-bpf -e trace=$watched -o "$folder/$index.trace" \\
    bash -c "\${command%.}" </dev/null >/dev/null 2>&1
  index=$((index + 1))
done
`

function compare(before: ReadonlyMap<string, string>, after: ReadonlyMap<string, string>): string[] {
  const changed = [...after.keys()].filter((path) => before.get(path) !== after.get(path))
  return [...changed, ...[...before.keys()].filter((path) => !after.has(path))]
}

/** Every file with what would change if somebody wrote to it. */
async function snapshot({ arena, home }: Sandbox): Promise<Map<string, string>> {
  const found = new Map<string, string>()
  const visit = async (path: string): Promise<void> => {
    const { mode, size, mtimeMs, ctimeMs, ino } = await lstat(path)
    found.set(path, [mode, size, mtimeMs, ctimeMs, ino].join(' '))
    if ((mode & 0o170000) !== 0o040000) return
    for (const name of await readdir(path)) await visit(join(path, name))
  }
  await visit(arena)
  await visit(home)
  return found
}
