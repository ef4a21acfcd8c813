import { cp, mkdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { FigureContext, FigureResult } from '../../scripts/figure/figure.ts'
import { faultNames, faults, type Fault } from '../../packages/server/src/testing/fault.ts'
import { ServerRelay } from './server-kill/server-relay.ts'
import { playHistory, type HistoryResult } from './sync/history.ts'
import { playKillHistory } from './sync/kill-history.ts'
import { playOwnerHistory } from './sync/owner-history.ts'

export const name = 'sync'
export const claim = 'All clients see every line once and in order, through disconnects, reloads and a killed server.'
export const sizes = {
  ci: { histories: 70, historiesWithKills: 10, historiesWithOwners: 5 },
  full: { histories: 9800, historiesWithKills: 200, historiesWithOwners: 200 },
}

/** In so many histories a bug must show. */
const maxTries = 12
const keptFolder = join(tmpdir(), 'tapetree-sync-problems')

/**
 * Sessions with many screens, random but for their seeds, held against the invariants of the protocol; then bugs, one by one. The files of
 * histories that went wrong are kept in `keptFolder`.
 */
export async function run(context: FigureContext): Promise<FigureResult> {
  const { say, size } = context
  const trial = new Trial(context, { folder: await context.temporaryFolder(), cache: await context.temporaryFolder() })
  await trial.playWithKills(sizes[size].historiesWithKills)
  await trial.playWithOwners(sizes[size].historiesWithOwners)
  await trial.play(sizes[size].histories)
  await trial.catchFaults()
  for (const problem of trial.problems.slice(0, 20)) say(`PROBLEM ${problem}`)
  return { ok: trial.problems.length === 0, figures: { ...trial.figures, problems: trial.problems.length } }
}

/** Most of a history is waiting: for the disk, for a model, for somebody to come back. */
const sideBySide = 4

async function inParallel<T>(all: readonly T[], work: (one: T) => Promise<void>): Promise<void> {
  const rest = [...all]
  const worker = async (): Promise<void> => {
    for (let one = rest.shift(); one !== undefined; one = rest.shift()) await work(one)
  }
  await Promise.all(Array.from({ length: sideBySide }, worker))
}

interface Caught {
  tries: number
  message?: string
}

class Trial {
  readonly problems: string[] = []
  readonly figures = {
    histories: 0,
    withKills: 0,
    withOwners: 0,
    screens: 0,
    commands: 0,
    frames: 0,
    lines: 0,
    faults: 0,
    caught: 0,
  }
  readonly #context: FigureContext
  readonly #folder: string
  readonly #cache: string
  #folders = 0

  constructor(context: FigureContext, { folder, cache }: { folder: string; cache: string }) {
    this.#context = context
    this.#folder = folder
    this.#cache = cache
  }

  async play(count: number): Promise<void> {
    const { say } = this.#context
    const seeds = Array.from({ length: count }, () => this.#nextSeed())
    await inParallel(seeds, async (seed) => {
      if (this.problems.length >= 5) return
      await this.#take(`history ${seed}`, (folder) => playHistory({ seed, folder }))
      if (this.figures.histories % 1000 === 0) say(`${this.figures.histories} histories, ${this.figures.frames} frames`)
    })
  }

  async playWithKills(count: number): Promise<void> {
    const servers = new ServerRelay(this.#cache)
    try {
      for (let index = 0; index < count && this.problems.length < 5; index++) {
        const seed = this.#nextSeed()
        await this.#take(`history ${seed} with kills`, (folder) => playKillHistory({ seed, folder, servers }))
        this.figures.withKills++
      }
    } finally {
      await servers.close()
    }
  }

  async playWithOwners(count: number): Promise<void> {
    const seeds = Array.from({ length: count }, () => this.#nextSeed())
    await inParallel(seeds, async (seed) => {
      if (this.problems.length >= 5) return
      await this.#take(`history ${seed} with an owner of its own`, (folder) => playOwnerHistory({ seed, folder }))
      this.figures.withOwners++
    })
  }

  async catchFaults(): Promise<void> {
    const { say } = this.#context
    const caught = new Map<Fault, Caught>()
    await inParallel(faultNames, async (fault) => void caught.set(fault, await this.#catch(fault)))
    for (const fault of faultNames) {
      const { tries, message }: Caught = caught.get(fault) ?? { tries: 0 }
      this.figures.faults++
      this.figures.caught += Number(message !== undefined)
      say(`${faults[fault].padEnd(4)} ${fault.padEnd(54)} ${message ?? 'NOT CAUGHT'} (history ${tries})`)
      if (message === undefined) this.problems.push(`"${fault}" was not caught by ${faults[fault]}`)
    }
  }

  async #catch(fault: Fault): Promise<Caught> {
    for (let tries = 1; tries <= maxTries; tries++) {
      const seed = this.#nextSeed()
      const { violations } = await this.#inFolder((folder) => playHistory({ seed, folder, fault }))
      const caught = violations.find(({ invariant }) => invariant === faults[fault])
      if (caught) return { tries, message: caught.message.slice(0, 110) }
    }
    return { tries: maxTries }
  }

  async #take(what: string, play: (folder: string) => Promise<HistoryResult>): Promise<void> {
    const { violations, figures } = await this.#inFolder(async (folder) => {
      const result = await play(folder)
      if (result.violations.length > 0) await this.#keep(what, folder)
      return result
    })
    this.figures.histories++
    this.figures.screens += figures.screens
    this.figures.commands += figures.commands
    this.figures.frames += figures.frames
    this.figures.lines += figures.lines
    for (const { invariant, message } of violations)
      this.problems.push(`seed ${this.#context.seed}, ${what}: ${invariant}: ${message}`)
  }

  async #keep(what: string, folder: string): Promise<void> {
    const kept = join(keptFolder, what.replaceAll(' ', '-'))
    await rm(kept, { recursive: true, force: true })
    await cp(folder, kept, { recursive: true })
    this.#context.say(`  the files of ${what}: ${kept}`)
  }

  async #inFolder<T>(work: (folder: string) => Promise<T>): Promise<T> {
    const folder = join(this.#folder, String(++this.#folders))
    await mkdir(folder)
    try {
      return await work(folder)
    } finally {
      await rm(folder, { recursive: true, force: true, maxRetries: 3 })
    }
  }

  #nextSeed(): number {
    return Math.floor(this.#context.random() * 2 ** 32)
  }
}
