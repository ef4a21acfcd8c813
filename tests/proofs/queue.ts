import { mkdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { FigureContext, FigureResult } from '../../scripts/figure/figure.ts'
import { playQueueHistory } from './queue/queue-history.ts'
import { ServerRelay } from './server-kill/server-relay.ts'

export const name = 'queue'
export const claim = 'Queued messages are delivered once and in order, even while clients edit the queue.'
export const sizes = {
  ci: { histories: 290, historiesWithKills: 10 },
  full: { histories: 9900, historiesWithKills: 100 },
}

/** Eight clients at one queue: what happened must be what one of them after the other could have done. */
export async function run(context: FigureContext): Promise<FigureResult> {
  const { say, size } = context
  const trial = new Trial(context, { folder: await context.temporaryFolder(), cache: await context.temporaryFolder() })
  await trial.playWithKills(sizes[size].historiesWithKills)
  await trial.play(sizes[size].histories)
  for (const problem of trial.problems.slice(0, 20)) say(`PROBLEM ${problem}`)
  return { ok: trial.problems.length === 0, figures: { ...trial.figures, problems: trial.problems.length } }
}

/** Side by side: most of a history is waiting for the disk. */
const sideBySide = 4

class Trial {
  readonly problems: string[] = []
  readonly figures = { histories: 0, withKills: 0, operations: 0, accepted: 0, delivered: 0, waiting: 0, refused: 0 }
  readonly #context: FigureContext
  readonly #folder: string
  readonly #cache: string

  constructor(context: FigureContext, { folder, cache }: { folder: string; cache: string }) {
    this.#context = context
    this.#folder = folder
    this.#cache = cache
  }

  async play(count: number): Promise<void> {
    const seeds = Array.from({ length: count }, () => this.#nextSeed())
    const worker = async (): Promise<void> => {
      for (let seed = seeds.shift(); seed !== undefined && this.problems.length < 5; seed = seeds.shift())
        await this.#playOne(seed)
    }
    await Promise.all(Array.from({ length: sideBySide }, worker))
  }

  async playWithKills(count: number): Promise<void> {
    const servers = new ServerRelay(this.#cache)
    try {
      for (let index = 0; index < count && this.problems.length < 5; index++) {
        await this.#playOne(this.#nextSeed(), servers)
        this.figures.withKills++
      }
    } finally {
      await servers.close()
    }
  }

  async #playOne(seed: number, servers?: ServerRelay): Promise<void> {
    const folder = join(this.#folder, String(seed))
    await mkdir(folder)
    try {
      const { problems, figures } = await playQueueHistory({ seed, folder, ...(servers && { servers }) })
      const what = `seed ${this.#context.seed}, history ${seed}${servers ? ' with a kill' : ''}`
      this.problems.push(...problems.map((problem) => `${what}: ${problem}`))
      this.figures.histories++
      for (const [figure, value] of Object.entries(figures)) this.figures[figure as keyof typeof figures] += value
    } finally {
      await rm(folder, { recursive: true, force: true, maxRetries: 3 })
    }
  }

  #nextSeed(): number {
    return Math.floor(this.#context.random() * 2 ** 32)
  }
}
