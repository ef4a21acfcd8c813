import { guarded, type IndexConnection } from './index-connection.ts'

/** A query names at most this many terms. */
export const maxNamedTerms = 512

/** The vocabulary of each source: the terms of its documents. */
export class IndexTerms {
  readonly #connection: IndexConnection
  /** Terms known to be in one source; querying each word of each entry would dominate the time. */
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

  /** Clears the cache after a rollback. */
  forget(source = 0): void {
    this.#known = { source, words: new Set() }
  }

  /** Ranges of the vocabulary. Computing them takes as long as a full scan, so they are cached. */
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
