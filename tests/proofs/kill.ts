import { setTimeout } from 'node:timers/promises'
import type { FigureContext, FigureResult } from '../../scripts/figure/figure.ts'
import { Survivors } from './writer/survivors.ts'
import { WriterProcess } from './writer/writer-process.ts'

export const name = 'kill'
export const claim = 'Acknowledged data survives `kill -9`.'
export const sizes = { ci: { kills: 40 }, full: { kills: 1000 } }

/** Writers are killed with `kill -9` at random moments, one after another on the same sessions; each time everything is looked for. */
export async function run(context: FigureContext): Promise<FigureResult> {
  const { say, size } = context
  const { kills } = sizes[size]
  const trial = new Trial(context, { folder: await context.temporaryFolder(), cache: await context.temporaryFolder() })
  for (let kill = 1; kill <= kills; kill++) {
    await trial.killOnce(kill)
    if (kill % (kills / 10) === 0) say(`${kill} kills: ${JSON.stringify(trial.figures)}`)
    if (trial.problems.length > 0) break
  }
  await trial.end()
  for (const problem of trial.problems.slice(0, 20)) say(`LOST: ${problem}`)
  return { ok: trial.problems.length === 0, figures: { ...trial.figures, problems: trial.problems.length } }
}

class Trial {
  readonly problems: string[] = []
  readonly figures = {
    kills: 0,
    whileOpening: 0,
    whileWriting: 0,
    acknowledged: 0,
    checked: 0,
    opened: 0,
    tornTails: 0,
    handedOver: 0,
    halfMade: 0,
  }
  readonly #context: FigureContext
  readonly #folder: string
  readonly #survivors: Survivors
  #sessions: { durable: string[]; accepted: string[] } = { durable: [], accepted: [] }
  readonly #compileCache: string
  #next: WriterProcess

  constructor(context: FigureContext, { folder, cache }: { folder: string; cache: string }) {
    this.#context = context
    this.#folder = folder
    this.#compileCache = cache
    this.#survivors = new Survivors(folder)
    this.#next = new WriterProcess({ compileCache: cache })
  }

  async killOnce(number: number): Promise<void> {
    const { random, seed } = this.#context
    const writer = this.#next
    const writerSeed = Math.floor(random() * 2 ** 32)
    await writer.go({ folder: this.#folder, seed: writerSeed, sessions: this.#sessions })
    const moment = await this.#waitForMoment(writer)
    await writer.kill()
    // The next one loads while the sessions are being looked at.
    this.#next = new WriterProcess({ compileCache: this.#compileCache })
    this.#survivors.add(writer.acknowledged)
    // Some sessions go to the next writer as they are: opening after a crash must work for whoever comes first.
    const isHandedOver = random() < 0.25 && number > 1
    const findings = await this.#survivors.check({ as: isHandedOver ? 'reader' : 'writer', machineDied: false })
    if (!isHandedOver) this.#sessions = this.#survivors.goOnWith({ durable: 3, accepted: 1 })
    const failure = writer.failure === undefined ? [] : [`the writer failed: ${writer.failure}`]
    this.problems.push(
      ...[...failure, ...findings.problems].map((each) => `seed ${seed}, kill ${number} ${moment}: ${each}`),
    )
    this.figures.kills++
    this.figures.acknowledged += writer.acknowledged.length
    this.figures.checked += findings.checked
    this.figures.opened += findings.opened
    this.figures.tornTails += findings.torn
    this.figures.halfMade += findings.halfMade
    this.figures.handedOver += Number(isHandedOver)
  }

  async end(): Promise<void> {
    await this.#next.kill()
  }

  /** While it opens its sessions, or after so many acknowledgements, and then anywhere within a few milliseconds. */
  async #waitForMoment(writer: WriterProcess): Promise<string> {
    const { random } = this.#context
    if (random() < 0.2) {
      const delayMs = random() * 60
      await setTimeout(delayMs)
      this.figures.whileOpening++
      return `${delayMs.toFixed(1)} ms after its start`
    }
    const count = Math.floor(random() * 250)
    await writer.hasAcknowledged(count)
    if (random() < 0.4) {
      await writer.beginsLongWrite()
      this.figures.whileWriting++
      return `in a long write after ${count} acknowledgements`
    }
    await setTimeout(random() * 4)
    return `after ${count} acknowledgements`
  }
}
