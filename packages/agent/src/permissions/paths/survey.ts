import { lstatSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { isInside } from '../../util/is-inside.ts'
import { isSecretPath } from './secret-files.ts'
import { realPath } from './real-path.ts'

/** Files in a folder that make a listing of it dangerous. */
export interface Survey {
  /** Every name is one word to any reader: no blanks, quotes, backslashes, wildcards or control characters. */
  isPlain: boolean
  /** A name begins with a dash, so a program may parse it as an option. */
  hasDash: boolean
  /** Links that lead out of the folders or to a secret. */
  links: string[]
  /** Files whose names mark them as secrets. */
  secrets: string[]
}

/** Larger folders would block for too long; the caller then asks. */
const maxEntries = 10_000

interface SurveyOptions {
  /** Only direct children of the folders. */
  isFlat?: boolean
  /** Whether the content of a file with this name matters. Default: true for every file. */
  wants?: (name: string) => boolean
  /** Names of folders to skip. */
  skipped?: readonly string[]
}

/** Inspects everything below some paths without following links. Undefined if there is too much. */
export function survey(roots: readonly string[], options: SurveyOptions = {}): Survey | undefined {
  const { isFlat = false, wants = () => true, skipped = [] } = options
  const found: Survey = { isPlain: true, hasDash: false, links: [], secrets: [] }
  const places = roots.map(realPath)
  let left = maxEntries
  const folders = [...roots]
  for (let folder = folders.pop(); folder !== undefined; folder = folders.pop()) {
    for (const entry of entriesOf(folder)) {
      left -= 1
      if (left < 0) return undefined
      const { name } = entry
      const path = join(folder, name)
      found.isPlain &&= isPlainName(name)
      found.hasDash ||= name.startsWith('-')
      if (entry.isDirectory()) {
        if (!isFlat && !skipped.includes(name)) folders.push(path)
      } else if (wants(name)) {
        if (isSecretPath(path)) found.secrets.push(path)
        if (entry.isSymbolicLink() && isElsewhere(path, places)) found.links.push(path)
      }
    }
  }
  return found
}

/** Whether a name is one word to the shell, to `xargs` and to `read`. */
export function isPlainName(name: string): boolean {
  return !/[\s'"\\*?[\]\p{C}]/u.test(name)
}

function isElsewhere(link: string, places: readonly string[]): boolean {
  const real = realPath(link)
  return !places.some((place) => isInside(real, place)) || isSecretPath(real)
}

interface Entry {
  name: string
  isDirectory: () => boolean
  isSymbolicLink: () => boolean
}

/** Empty if it is not a folder, does not exist or cannot be read: then no other program reads it either. */
function entriesOf(folder: string): Entry[] {
  try {
    return readdirSync(folder, { withFileTypes: true })
  } catch {
    return []
  }
}

export function isLink(path: string): boolean {
  try {
    return lstatSync(path).isSymbolicLink()
  } catch {
    return false // it does not exist
  }
}
