import { guarded, type IndexConnection } from './index-connection.ts'

/** More words than this are not named one by one in a question. */
export const maxNamedTerms = 512

/** The vocabulary of each source: which words its documents have. */
export class IndexTerms {
  readonly #connection: IndexConnection
  /** Words that one source has for certain; asking for each word of each entry would take most of the time. */
  #known = { source: 0, words: new Set<string>() }
  #stretches = { source: 0, ends: [] as string[], learntSince: 0 }

  constructor(connection: IndexConnection) {
    this.#connection = connection
  }

  *with(source: number, part: string): Iterable<string[]> {
    const ends = guarded(() => this.#stretchesOf(source))
    for (const [index, through] of ends.entries()) {
      const after = ends[index - 1] ?? ''
      yield guarded(() => {
        const terms = this.#connection.all(
          `SELECT term FROM term WHERE source = ? AND term > ? AND term <= ? AND instr(term, ?) > 0
           ORDER BY length(term) LIMIT ${maxNamedTerms + 1}`,
          source,
          after,
          through,
          part,
        )
        return terms.map(([term]) => term as string)
      })
    }
  }

  learn(source: number, words: ReadonlySet<string>): void {
    if (this.#known.source !== source || this.#known.words.size > maxKnownTerms) this.forget(source)
    const known = this.#known.words
    for (const word of words) {
      if (known.has(word)) continue
      this.#connection.run('INSERT OR IGNORE INTO term (source, term) VALUES (?, ?)', source, word)
      known.add(word)
      this.#stretches.learntSince++
    }
  }

  /** What was learnt and may have been taken back is learnt again. */
  forget(source = 0): void {
    this.#known = { source, words: new Set() }
  }

  /** Where the vocabulary is cut. Finding that out takes as long as looking through it, so it is remembered. */
  #stretchesOf(source: number): string[] {
    const { source: known, ends: knownEnds, learntSince } = this.#stretches
    if (known === source && learntSince < termStretch) return knownEnds
    const ends: string[] = []
    for (let end: string | undefined = ''; end !== undefined;) {
      const [next] = this.#connection.all(
        'SELECT term FROM term WHERE source = ? AND term > ? ORDER BY term LIMIT 1 OFFSET ?',
        source,
        end,
        termStretch,
      ) as [string][]
      end = next?.[0]
      ends.push(end ?? afterAllTerms)
    }
    this.#stretches = { source, ends, learntSince: 0 }
    return ends
  }
}

const termStretch = 20_000
const afterAllTerms = '\u{10ffff}'
const maxKnownTerms = 200_000
