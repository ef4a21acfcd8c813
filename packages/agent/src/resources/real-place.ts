import { realpath } from 'node:fs/promises'
import { isInside } from '../util/is-inside.ts'
import { oneLine } from '../util/visible-text.ts'

export type RealPlace = { type: 'found'; realPath: string } | { type: 'missing' } | { type: 'refused'; problem: string }

/** Where a path leads. With `within`, which has no symbolic links itself, a path that leads out of that folder is refused. */
export async function realPlaceOf(path: string, within?: string): Promise<RealPlace> {
  let realPath: string
  try {
    realPath = await realpath(path)
  } catch (error) {
    return isMissing(error) ? { type: 'missing' } : { type: 'refused', problem: unreadable(path, error) }
  }
  if (within === undefined || isInside(realPath, within)) return { type: 'found', realPath }
  return { type: 'refused', problem: `${oneLine(path)} was left out: it leads out of ${oneLine(within)}.` }
}

export function isMissing(error: unknown): boolean {
  return ['ENOENT', 'ENOTDIR'].includes(codeOf(error))
}

export function unreadable(path: string, error: unknown): string {
  return `${oneLine(path)} was left out: it cannot be read (${codeOf(error)}).`
}

function codeOf(error: unknown): string {
  const code = error instanceof Error && 'code' in error ? error.code : undefined
  return typeof code === 'string' ? code : 'unknown error'
}
