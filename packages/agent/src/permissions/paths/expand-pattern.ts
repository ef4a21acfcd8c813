import { existsSync, readdirSync } from 'node:fs'
import { meets, type NamePattern } from './path-pattern.ts'

const maxEntries = 4000
const maxMatches = 1000

/**
 * The existing paths below a folder that match these names, which may have wildcards. Undefined if there are too many.
 * Enters links to folders, like the shell.
 */
export function expandPattern(folder: string, names: readonly NamePattern[]): string[] | undefined {
  let left = maxEntries
  let paths = [folder]
  for (const pattern of names) {
    const exact = pattern.tokens.every((token) => typeof token === 'string') ? pattern.tokens.join('') : undefined
    const next: string[] = []
    for (const path of paths) {
      const entries = exact === undefined ? namesIn(path) : existsSync(`${path}/${exact}`) ? [exact] : []
      left -= entries.length
      if (left < 0) return undefined
      for (const name of entries) if (exact !== undefined || isMeant(pattern, name)) next.push(`${path}/${name}`)
    }
    if (next.length > maxMatches) return undefined
    paths = next
  }
  return paths
}

function isMeant(pattern: NamePattern, name: string): boolean {
  return meets([pattern], [{ tokens: [...name], skipsHidden: false }])
}

/** Empty if it is not a folder or cannot be read: then the shell finds nothing in it either. */
function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder)
  } catch {
    return []
  }
}
