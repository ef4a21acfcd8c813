import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { linesOfText, writeHugeFile } from '../../corpus/huge-files.ts'
import { runChild } from './run-child.ts'

/** How much the memory of a process may grow while it reads any log. */
const maxGrownBytes = 150e6
/** By how much it grows in a process that only splits and parses ten lines of 6 MB, on a machine with nothing else to do. */
const quietBareBytes = 80e6

/**
 * What the memory may grow by here and now. The worst moment depends on how fast garbage is collected, which other threads
 * do: on a busy machine the bare reading of lines takes up to twice the memory as well, and the limit follows it.
 */
export async function memoryLimit(folder: string): Promise<number> {
  const path = join(folder, 'bare.jsonl')
  writeHugeFile(path, linesOfText)
  let grownBytes = 0
  const failure = await runChild({
    program: 'read-bare.ts',
    args: [path],
    silenceMs: 60_000,
    onLine: (line) => (grownBytes = Number(line)),
  })
  rmSync(path)
  if (failure !== undefined) throw new Error(`bare reading ${failure}`)
  return maxGrownBytes * Math.max(1, grownBytes / quietBareBytes)
}
