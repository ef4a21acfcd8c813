import { listFiles } from './list-files.ts'

const maxFound = 50
/** A list is used again while somebody types. */
const freshMs = 5000

/** The paths below a folder that match what was typed. What begins with a dot is left out unless a dot was typed. */
export class FileMatches {
  readonly #root: string
  #seen: Promise<string[]> | undefined
  #seenAt = 0

  constructor(root: string) {
    this.#root = root
  }

  async matching(typed: string): Promise<string[]> {
    const wanted = typed.toLowerCase()
    const hidden = /(?:^|\/)\./.test(typed)
    const paths = await this.#paths()
    return paths
      .filter((path) => hidden || !/(?:^|\/)\./.test(path))
      .map((path) => ({ path, rank: rankOf(path.toLowerCase(), wanted) }))
      .filter(({ rank }) => rank < Infinity)
      .sort(
        (left, right) =>
          left.rank - right.rank || left.path.length - right.path.length || (left.path < right.path ? -1 : 1),
      )
      .slice(0, maxFound)
      .map(({ path }) => path)
  }

  #paths(): Promise<string[]> {
    const now = Date.now()
    if (!this.#seen || now - this.#seenAt > freshMs) {
      this.#seen = listFiles(this.#root)
      this.#seenAt = now
    }
    return this.#seen
  }
}

/** The beginning of the path, then of the name, then a part of it, then the same letters in order. */
function rankOf(path: string, wanted: string): number {
  if (path.startsWith(wanted)) return 0
  const name = path.slice(path.lastIndexOf('/', path.length - 2) + 1)
  if (name.startsWith(wanted)) return 1
  if (path.includes(wanted)) return 2
  return hasLetters(path, wanted) ? 3 : Infinity
}

function hasLetters(path: string, wanted: string): boolean {
  let from = 0
  for (const letter of wanted) {
    const at = path.indexOf(letter, from)
    if (at === -1) return false
    from = at + letter.length
  }
  return true
}
