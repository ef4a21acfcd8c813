// A program that saves files again and again, as an editor does: in place, and by rename. It prints each save that
// something else has replaced, and at the end the last save of each file.
import { openSync, closeSync, ftruncateSync, readFileSync, renameSync, writeFileSync, writeSync } from 'node:fs'
import { join } from 'node:path'

const [folder = '', files = '0', saves = '0', seed = '0'] = process.argv.slice(2)
let state = Number(seed)
const last = new Map<string, string>()

for (let number = 0; number < Number(saves); number += 1) {
  const name = `f${small(Number(files))}.txt`
  const path = join(folder, name)
  const previous = last.get(name)
  // Told if someone else has replaced it: then it must be kept somewhere.
  if (previous !== undefined && contentOf(path) !== previous) tell('replaced', name, previous)
  const content = `save ${seed}-${number}\n`
  const way = small(3)
  if (way === 0) writeFileSync(path, content)
  else if (way === 1) {
    writeFileSync(`${path}~`, content)
    renameSync(`${path}~`, path)
  } else overwrite(path, content)
  last.set(name, content)
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, small(4))
}
for (const [name, content] of last) tell('last', name, content)

/** Like an editor that keeps the file and shortens it. */
function overwrite(path: string, content: string): void {
  let file
  try {
    file = openSync(path, 'r+')
  } catch {
    writeFileSync(path, content)
    return
  }
  ftruncateSync(file, 0)
  writeSync(file, content, 0)
  closeSync(file)
}

function contentOf(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return undefined
  }
}

function tell(type: string, name: string, content: string): void {
  process.stdout.write(`${JSON.stringify({ type, name, content })}\n`)
}

function small(limit: number): number {
  state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0
  return (state >>> 8) % limit
}
