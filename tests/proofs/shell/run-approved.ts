import { lstat, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { violationsIn, watchedCalls } from './oracle.ts'
import { readTrace, runInside, writeCommands, type Sandbox } from './sandbox.ts'

export interface Violation {
  command: string
  what: string
}

/** Runs commands one after another under the eyes of `strace` and tells what they should not have done. */
export async function runApproved(sandbox: Sandbox, commands: readonly string[]): Promise<Violation[]> {
  const folder = join(sandbox.records, 'approved')
  await writeCommands(folder, commands)
  const before = await snapshot(sandbox)
  await runInside(sandbox, script, [folder, String(commands.length), watchedCalls])
  const traces = await Promise.all(commands.map((_, index) => readTrace(folder, index)))
  const violations = traces.flatMap((trace, index) => {
    const command = commands[index] ?? ''
    if (trace === '') return [{ command, what: 'left no trace' }]
    return violationsIn(trace).map((what) => ({ command, what }))
  })
  const after = await snapshot(sandbox)
  const changed = [...after].filter(([path, state]) => before.get(path) !== state)
  const gone = [...before.keys()].filter((path) => !after.has(path))
  if (violations.length === 0 && changed.length + gone.length > 0) {
    const what = `files differ although no call was seen: ${[...changed.map(([path]) => path), ...gone].join(', ')}`
    violations.push({ command: commands.join('\n'), what })
  }
  return violations
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
