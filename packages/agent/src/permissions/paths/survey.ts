import { lstatSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { isInside } from '../../util/is-inside.ts'
import { isSecretPath } from './secret-files.ts'
import { realPath } from './real-path.ts'

/** What somebody may have put into a folder so that a listing of it does harm. */
export interface Survey {
  /** All names stay one word each, whatever reads them: no blanks, quotes, backslashes, wildcards or control characters. */
  isPlain: boolean
  /** A name begins with a dash, so that a program may take it for an option. */
  hasDash: boolean
  /** Links that lead out of the folders or to a secret. */
  links: string[]
  /** Files that are secrets by their own names. */
  secrets: string[]
}

/** More would keep everything else waiting; the caller then asks. */
const maxEntries = 10_000

interface SurveyOptions {
  /** Only what is in the folders themselves. */
  isFlat?: boolean
  /** Whether the content of a file of this name matters. Default: of every file. */
  wants?: (name: string) => boolean
  /** Names of folders to leave out. */
  skipped?: readonly string[]
}

/** Looks at everything below some paths without following links; undefined if that is too much. */
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

/** A name that is one word to the shell, to `xargs` and to `read`. */
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

/** Empty if it is no folder, is not there or may not be read: then nothing else reads it either. */
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
    return false // nothing is there
  }
}
