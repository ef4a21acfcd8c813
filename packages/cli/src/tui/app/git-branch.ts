import { readFileSync, statSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'

const readEveryMs = 3000
const longestHead = 1000

/** The branch of a folder, read from the files of Git, so that it costs no process. */
export class GitBranch {
  readonly #now: () => number
  #folder: string | undefined
  #branch: string | undefined
  #readAtMs = -Infinity

  constructor(now: () => number) {
    this.#now = now
  }

  /** Undefined if the folder is in no repository. Without a branch, the start of the commit. Not yet harmless. */
  of(folder: string | undefined): string | undefined {
    const now = this.#now()
    if (folder !== this.#folder || now - this.#readAtMs >= readEveryMs) {
      this.#folder = folder
      this.#readAtMs = now
      this.#branch = folder === undefined ? undefined : branchOf(folder)
    }
    return this.#branch
  }
}

function branchOf(folder: string): string | undefined {
  for (let at = resolve(folder); ; at = dirname(at)) {
    const head = headIn(join(at, '.git'))
    if (head !== undefined) return /^ref: refs\/heads\/(.+)$/.exec(head)?.[1] ?? head.slice(0, 8)
    if (dirname(at) === at) return undefined
  }
}

/** A worktree has a file in the place of the folder, which names the folder. */
function headIn(git: string): string | undefined {
  try {
    const stat = statSync(git)
    const place =
      stat.isFile() && stat.size < longestHead ? /^gitdir: (.+)$/m.exec(readFileSync(git, 'utf8'))?.[1] : git
    const head = place === undefined ? undefined : join(resolve(dirname(git), place), 'HEAD')
    if (head === undefined || !statSync(head).isFile()) return undefined
    return readFileSync(head, 'utf8').slice(0, longestHead).trim()
  } catch {
    // Not a repository, or not readable.
    return undefined
  }
}
