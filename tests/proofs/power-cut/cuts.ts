// Cuts the power under writers. Runs in a mount namespace of its own; see ../power-cut.ts.
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { sizes } from '../power-cut.ts'
import type { FigureResult } from '../../../scripts/figure/figure.ts'
import { runInside, type InsideContext } from '../writer/own-mounts.ts'
import { Survivors } from '../writer/survivors.ts'
import { WriterProcess } from '../writer/writer-process.ts'
import { CutDisks, mountOptions } from './cut-disks.ts'

async function cutManyTimes(context: InsideContext): Promise<FigureResult> {
  const { say, size, folder } = context
  const { cuts } = sizes[size]
  const disk = new CutDisks(folder)
  const trial = new Trial(context, disk)
  try {
    for (let number = 1; number <= cuts && trial.problems.length === 0; number++) {
      await trial.cutOnce(number)
      if (size === 'ci' || number % 20 === 0) say(`${number} cuts: ${JSON.stringify(trial.figures)}`)
    }
  } finally {
    await trial.end()
    await disk.end()
  }
  const { problems, figures } = trial
  for (const problem of problems.slice(0, 20)) say(`LOST: ${problem}`)
  if (figures.cutsThatLost === 0)
    say('No cut lost anything that was merely accepted: this run does not show that the cuts are real.')
  return { ok: problems.length === 0, figures: { ...figures, problems: problems.length } }
}

class Trial {
  readonly problems: string[] = []
  readonly figures = {
    cuts: 0,
    acknowledged: 0,
    checked: 0,
    opened: 0,
    tornTails: 0,
    lostAccepted: 0,
    cutsThatLost: 0,
    damagedAccepted: 0,
    damagedDurable: 0,
  }
  readonly #context: InsideContext
  readonly #disk: CutDisks
  readonly #mount: string
  readonly #survivors: Survivors
  readonly #compileCache: string
  #sessions: { durable: string[]; accepted: string[] } = { durable: [], accepted: [] }
  #next: WriterProcess

  constructor(context: InsideContext, disk: CutDisks) {
    this.#context = context
    this.#disk = disk
    this.#mount = disk.mounts[0] as string
    this.#survivors = new Survivors(this.#mount)
    this.#compileCache = join(context.folder, 'compile-cache')
    mkdirSync(this.#compileCache)
    this.#next = new WriterProcess({ compileCache: this.#compileCache })
  }

  async cutOnce(number: number): Promise<void> {
    const { random, seed } = this.#context
    const options = mountOptions[(number - 1) % mountOptions.length] as string
    await this.#disk.start(options)
    const writer = this.#next
    await writer.go({ folder: this.#mount, seed: Math.floor(random() * 2 ** 32), sessions: this.#sessions })
    const count = 1 + Math.floor(random() * 1000)
    await writer.hasAcknowledged(count)
    await setTimeout(random() * 20)
    // What is acknowledged after this moment may or may not have been on the disk when the power went.
    const promised = writer.acknowledged.slice()
    await this.#disk.cut()
    await writer.kill()
    this.#next = new WriterProcess({ compileCache: this.#compileCache })
    this.#survivors.add(promised)
    await this.#disk.putBack()
    await this.#lookAround(
      options,
      `seed ${seed}, cut ${number} (${options}) after ${promised.length} acknowledgements`,
    )
    if (writer.failure !== undefined)
      this.problems.push(`seed ${seed}, cut ${number}: the writer failed: ${writer.failure}`)
    this.figures.acknowledged += promised.length
  }

  async end(): Promise<void> {
    await this.#next.kill()
  }

  /** The machine is up again: the disk is mounted, which replays its journal, and every session is opened for writing. */
  async #lookAround(options: string, moment: string): Promise<void> {
    const { figures } = this
    await this.#disk.start(options)
    const findings = await this.#survivors.check({ as: 'writer', machineDied: true })
    this.problems.push(...findings.problems.map((problem) => `${moment}: ${problem}`))
    this.#sessions = this.#survivors.goOnWith({ durable: 3, accepted: 1 })
    await this.#disk.stop()
    figures.cuts++
    figures.checked += findings.checked
    figures.opened += findings.opened
    figures.tornTails += findings.torn
    figures.lostAccepted += findings.lostAccepted
    figures.damagedAccepted += findings.damaged.accepted
    figures.damagedDurable += findings.damaged.durable
    figures.cutsThatLost += Number(findings.lostAccepted > 0)
  }
}

await runInside(cutManyTimes)
