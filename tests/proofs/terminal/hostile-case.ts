import { sequenceClasses } from './sequences.ts'

/** One sequence, cut at one place, from one source. The marks around it tell on the screen that it arrived, and where it begins and ends. */
export interface HostileCase {
  number: number
  sequenceClass: string
  /** The two sides of the cut. Either may be empty. */
  pieces: readonly [string, string]
}

const all = Object.entries(sequenceClasses).flatMap(([sequenceClass, sequences]) =>
  sequences.map((sequence) => ({ sequenceClass, sequence })),
)

/** Hands out cases, each with a number of its own: first every sequence at every cut in turn, beginning anywhere, then over again. */
export class HostileCases {
  readonly made: HostileCase[] = []
  readonly #cuts = all.flatMap(({ sequenceClass, sequence }) =>
    Array.from({ length: sequence.length + 1 }, (_, cut) => ({ sequenceClass, sequence, cut })),
  )
  readonly #first: number

  constructor(random: () => number) {
    this.#first = Math.floor(random() * this.#cuts.length)
  }

  take(count: number): HostileCase[] {
    const taken = Array.from({ length: count }, (_, index) => this.#make(this.made.length + index))
    this.made.push(...taken)
    return taken
  }

  #make(number: number): HostileCase {
    // A step that has no divisor in common with the count visits all of them.
    const place = (this.#first + number * 7919) % this.#cuts.length
    const { sequenceClass, sequence, cut } = this.#cuts[place] ?? { sequenceClass: '', sequence: '', cut: 0 }
    return { number, sequenceClass, pieces: [sequence.slice(0, cut), sequence.slice(cut)] }
  }
}

/** As a stream brings it: the cut is between two pieces, and nothing else is. */
export function streamed({ number, pieces: [before, after] }: HostileCase): [string, string] {
  return [`B${number}b${before}`, `${after}e${number}E`]
}

/** As it stands in a file: whole, or where it was cut off by somebody, each half alone. */
export function recorded({ number, pieces: [before, after] }: HostileCase): string {
  if (number % 2 === 0) return `B${number}b${before}${after}e${number}E`
  return `B${number}b${before}e${number}E B${number}b${after}e${number}E`
}
