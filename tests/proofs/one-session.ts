import { mkdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { FigureContext, FigureResult } from '../../scripts/figure/figure.ts'
import { catchMutant, caughtLine } from './mutants/catch-mutant.ts'
import { playHistory, type HistoryResult } from './one-session/history.ts'
import { mutants } from './one-session/mutants.ts'
import { OwnerProcesses, playProcessHistory } from './one-session/processes.ts'

export const name = 'one-session'
export const claim = 'A session that is open several times, in one process or in several, runs nothing twice.'

/** Most are played in one process, where every turn of the event loop is in the hands of the seed. */
export const sizes = {
  ci: { historiesInOneProcess: 290, historiesInSeveral: 10 },
  full: { historiesInOneProcess: 19_600, historiesInSeveral: 400 },
}
const maxFailures = 5
const progressEvery = 1000

/**
 * One session with many owners: whatever they do and whenever they die, nothing runs twice and the log is true. Then faults, one by
 * one, each of which must show. `ONE_SESSION_CASE` plays one history and tells of it; one in several processes depends on the machine too.
 */
export async function run(context: FigureContext): Promise<FigureResult> {
  const trial = new Trial(context, await context.temporaryFolder())
  const chosen = process.env['ONE_SESSION_CASE']
  const { historiesInOneProcess, historiesInSeveral } = sizes[context.size]
  if (chosen !== undefined) await trial.tell(chosen)
  else {
    await trial.play(historiesInOneProcess)
    await trial.playInProcesses(historiesInSeveral)
    await trial.catchMutants()
  }
  return { ok: trial.problems === 0, figures: { ...trial.figures, problems: trial.problems } }
}

class Trial {
  readonly figures: Record<string, number> = { histories: 0, inSeveral: 0 }
  problems = 0
  readonly #context: FigureContext
  readonly #folder: string

  constructor(context: FigureContext, folder: string) {
    this.#context = context
    this.#folder = folder
  }

  async play(count: number): Promise<void> {
    for (let index = 1; index <= count && this.problems < maxFailures; index++) {
      const seed = this.#nextSeed()
      this.#take(String(seed), await this.#playOne(seed))
      if (index % progressEvery === 0) this.#context.say(`${index} histories, ${this.figures['runs']} runs`)
    }
  }

  async playInProcesses(count: number): Promise<void> {
    const processes = new OwnerProcesses(join(this.#folder, 'cache'))
    try {
      for (let index = 1; index <= count && this.problems < maxFailures; index++) {
        const seed = this.#nextSeed()
        this.#take(`processes:${seed}`, await this.#playInProcesses(seed, processes))
        this.figures['inSeveral'] = index
      }
    } finally {
      await processes.close()
    }
  }

  async tell(chosen: string): Promise<void> {
    const { say } = this.#context
    const [, isInProcesses, seed] = /^(processes:)?(\d+)$/.exec(chosen) ?? []
    const processes = new OwnerProcesses(join(this.#folder, 'cache'))
    try {
      const number = Number(seed)
      const played = isInProcesses ? this.#playInProcesses(number, processes, say) : this.#playOne(number, say)
      this.#take(chosen, await played)
    } finally {
      await processes.close()
    }
  }

  async catchMutants(): Promise<void> {
    const { say } = this.#context
    this.figures['mutants'] = 0
    for (const [fault, mutant] of Object.entries(mutants)) {
      const caught = await catchMutant(mutant, () => this.#playOne(this.#nextSeed()))
      say(caughtLine(fault, caught))
      if (caught) this.figures['mutants']++
      else this.problems++
    }
  }

  #take(chosen: string, { problems, figures }: HistoryResult): void {
    const { say } = this.#context
    this.figures['histories'] = (this.figures['histories'] ?? 0) + 1
    for (const [figure, value] of Object.entries(figures)) this.figures[figure] = (this.figures[figure] ?? 0) + value
    if (problems.length === 0) return
    this.problems++
    for (const problem of problems.slice(0, 5)) say(`PROBLEM ${problem}`)
    say(`  again: ONE_SESSION_CASE=${chosen} npm run proof one-session`)
  }

  async #playOne(seed: number, say?: (line: string) => void): Promise<HistoryResult> {
    const ledger = join(this.#folder, 'ledger')
    await writeFile(ledger, '')
    return playHistory({ seed, ledger, ...(say && { say }) })
  }

  async #playInProcesses(
    seed: number,
    processes: OwnerProcesses,
    say?: (line: string) => void,
  ): Promise<HistoryResult> {
    const folder = join(this.#folder, String(seed))
    await mkdir(folder)
    try {
      return await playProcessHistory({ seed, folder, processes, ...(say && { say }) })
    } finally {
      await rm(folder, { recursive: true, force: true, maxRetries: 3 })
    }
  }

  #nextSeed(): number {
    return Math.floor(this.#context.random() * 2 ** 32)
  }
}
