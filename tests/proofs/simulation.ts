import type { FigureContext, FigureResult } from '../../scripts/figure/figure.ts'
import { catchMutant, caughtLine } from './mutants/catch-mutant.ts'
import { playHistory, type HistoryOptions, type HistoryResult } from './simulation/history.ts'
import { mutants } from './simulation/mutants.ts'
import { playHistories } from './simulation/play-histories.ts'

export const name = 'simulation'
export const claim =
  'A simulated cluster on one database runs no tool twice and loses no message, whatever dies, pauses, is cut off or has the wrong time.'

export const sizes = {
  ci: { nodes: 200, hours: 5 },
  full: { nodes: 200, hours: 500 },
}
const maxFailures = 3

/** One hour of a large cluster, where much is idle. */
const large = { hours: 1, sessions: 6, faultEveryMs: 4000 }
/** A cluster in which a fault shows soon. */
const small = { nodes: 8, hours: 0.15, sessions: 8, faultEveryMs: 3000 }

/**
 * Each hour is a history of its own, with its own seed, in a thread beside this one. Meanwhile faults are added to the cluster's own code
 * here, one by one, and each must show. `SIMULATION_CASE` plays one history and tells of it. With the same seed, `SIMULATION_FROM` goes on
 * with the hours of an earlier run that has played so many of them, and leaves out the faults.
 */
export async function run(context: FigureContext): Promise<FigureResult> {
  const trial = new Trial(context)
  const chosen = process.env['SIMULATION_CASE']
  const first = process.env['SIMULATION_FROM']
  const { nodes, hours } = sizes[context.size]
  if (chosen !== undefined) await trial.tell(chosen)
  else if (first !== undefined) await trial.play(nodes, hours, Number(first))
  else await Promise.all([trial.play(nodes, hours), trial.catchMutants()])
  return { ok: trial.problems === 0, figures: { ...trial.figures, problems: trial.problems } }
}

class Trial {
  readonly figures: Record<string, number> = { hours: 0 }
  problems = 0
  readonly #context: FigureContext

  constructor(context: FigureContext) {
    this.#context = context
  }

  async play(nodes: number, hours: number, first = 0): Promise<void> {
    const histories = Array.from({ length: hours }, () => ({ ...large, nodes, seed: this.#nextSeed() }))
    let played = first
    await playHistories(histories.slice(first), (options, result) => {
      this.#take(options, result)
      this.figures['hours'] = ++played
      if (played % 10 === 0) this.#context.say(`${played} hours, ${this.figures['runs']} runs`)
      return this.problems < maxFailures
    })
  }

  /** `seed:nodes`, of a large cluster. */
  async tell(chosen: string): Promise<void> {
    const [seed = 0, nodes = sizes.ci.nodes] = chosen.split(':').map(Number)
    const options = { ...large, nodes, seed, say: this.#context.say }
    this.#take(options, await playHistory(options))
  }

  async catchMutants(): Promise<void> {
    const { say } = this.#context
    this.figures['mutants'] = 0
    for (const [fault, { add = () => () => undefined, rules = {} }] of Object.entries(mutants)) {
      const caught = await catchMutant(add, () => playHistory({ ...small, seed: this.#nextSeed(), rules }))
      say(caughtLine(fault, caught))
      if (caught) this.figures['mutants']++
      else this.problems++
    }
  }

  #take({ seed, nodes }: HistoryOptions, { problems, figures }: HistoryResult): void {
    const { say } = this.#context
    for (const [figure, value] of Object.entries(figures)) this.figures[figure] = (this.figures[figure] ?? 0) + value
    if (problems.length === 0) return
    this.problems++
    for (const problem of problems.slice(0, 5)) say(`PROBLEM ${problem}`)
    say(`  again: SIMULATION_CASE=${seed}:${nodes} npm run proof simulation`)
  }

  #nextSeed(): number {
    return Math.floor(this.#context.random() * 2 ** 32)
  }
}
