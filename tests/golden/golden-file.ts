import { existsSync, globSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { describeDifference } from './difference.ts'

const isUpdating = process.env['UPDATE_GOLDEN'] === '1'

/** Throws where the log is not the committed one, and says where they differ. */
export function compareWithGolden(name: string, log: readonly string[]): void {
  const path = pathOf(name)
  if (isUpdating) writeFileSync(path, log.map((line) => `${line}\n`).join(''))
  const committed = existsSync(path) ? readGolden(name) : []
  const difference = describeDifference(committed, log)
  if (difference.length === 0) return
  const advice = 'If the new log is right: UPDATE_GOLDEN=1 npx vitest run tests/golden, and read the diff.'
  throw new Error([`${name}.jsonl is not what happened. ${advice}`, ...difference].join('\n'))
}

export function readGolden(name: string): string[] {
  return readFileSync(pathOf(name), 'utf8').split('\n').slice(0, -1)
}

/** The names of all committed logs but those that nobody plays any more, which an update takes away. */
export function goldenNames(played: readonly string[]): string[] {
  const names = globSync('*.jsonl', { cwd: import.meta.dirname }).map((file) => basename(file, '.jsonl'))
  if (!isUpdating) return names
  for (const name of names) if (!played.includes(name)) rmSync(pathOf(name))
  return names.filter((name) => played.includes(name))
}

function pathOf(name: string): string {
  return join(import.meta.dirname, `${name}.jsonl`)
}
