import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { runInside, writeCommands, type Sandbox } from './sandbox.ts'

/** Runs each command in a fresh copy of the arena and tells which of them left the canary there. */
export async function runForReal(sandbox: Sandbox, commands: readonly string[]): Promise<boolean[]> {
  const folder = join(sandbox.records, 'bypasses')
  await writeCommands(folder, commands)
  await runInside(sandbox, script, [folder, String(commands.length)])
  const left = new Set((await readFile(join(folder, 'left'), 'utf8')).split('\n'))
  return commands.map((_, index) => left.has(String(index)))
}

/** A file, a folder, a link or a pipe whose name begins with C. */
const script = `
folder=$1 count=$2 index=0
: > "$folder/left"
while [ $index -lt $count ]; do
  copy=/tmp/$index
  cp -a "$PWD/arena" $copy
  command=$(cat "$folder/$index.sh")
  (cd $copy && exec timeout -k 1 10 bash -c "$command") </dev/null >/dev/null 2>&1
  for canary in $copy/C*; do
    if [ -e "$canary" ] || [ -L "$canary" ]; then echo $index >> "$folder/left"; break; fi
  done
  rm -rf $copy
  index=$((index + 1))
done
`
