// Fills the small disk around everything that writes. Runs in a mount namespace of its own; see ../disk-full.ts.
import { nodeFilePort, type FilePort } from '@tapetree/session/stores/file'
import { sizes } from '../disk-full.ts'
import type { FigureResult } from '../../../scripts/figure/figure.ts'
import { maxTries } from '../../../scripts/figure/tries.ts'
import { runInside, type InsideContext } from '../writer/own-mounts.ts'
import { runEverything } from './every-call.ts'
import { phases, type Phase } from './phases.ts'
import { Scene } from './scene.ts'
import { runServerOnFullDisk } from './server-run.ts'
import { SmallDisk } from './small-disk.ts'

const limitMs = 1000
/** Nothing here needs more room than this; a phase that still fails with it does not end. */
const maxFree = 400

async function fillEverywhere(context: InsideContext): Promise<FigureResult> {
  const trial = new Trial(context, new SmallDisk(context.folder))
  process.on('unhandledRejection', (error) => trial.problems.push(`nobody was told of ${String(error)}`))
  const { rounds } = sizes[context.size]
  for (let round = 1; round <= rounds; round++) {
    for (const phase of phases) await trial.runPhase(phase, round)
    await trial.runAtEveryCall(round)
    await trial.runServer()
  }
  const { problems, figures } = trial
  if (figures.slowestMs > limitMs) problems.push(`a caller waited ${figures.slowestMs} ms to be told`)
  for (const problem of problems.slice(0, 20)) context.say(`BROKEN: ${problem}`)
  return { ok: problems.length === 0, figures: { ...figures, problems: problems.length } }
}

class Trial {
  readonly problems: string[] = []
  readonly figures = { tries: 0, told: 0, acknowledged: 0, slowestMs: 0, phases: 0 }
  readonly #context: InsideContext
  readonly #disk: SmallDisk

  constructor(context: InsideContext, disk: SmallDisk) {
    this.#context = context
    this.#disk = disk
  }

  /** From a full disk up, one page more each time, until there has been room enough twice. */
  async runPhase({ name, fills, run }: Phase, round: number): Promise<void> {
    let fullCount = 0
    let fits = 0
    let free = 0
    for (; fits < 2; free++) {
      const fill = (): void => (fills === 'pages' ? this.#disk.fillTo(free) : this.#disk.fillInodesTo(free))
      const isFull = await this.#try(
        `${name} with ${free} free ${fills}`,
        () => ({}),
        (scene) => run(scene, fill),
      )
      fits = isFull ? 0 : fits + 1
      fullCount += Number(isFull)
      if (free > maxFree) break
    }
    this.figures.phases++
    if (fullCount === 0) this.problems.push(`${name}: the disk was never full for it`)
    if (free > maxFree) this.problems.push(`${name}: it fails with ${maxFree} free ${fills}`)
    if (round === 1) this.#context.say(`${name}: 0 to ${free - 1} free ${fills}, too few for ${fullCount}`)
  }

  /** Everything in one go, with the disk filling up at one call of the file port, the next time at a later one, and so on. */
  async runAtEveryCall(round: number): Promise<void> {
    const { random, size } = this.#context
    // There are some 350 calls; the small size takes a part of them, each time another one.
    const step = size === 'ci' ? 6 : 1
    let tries = 0
    let call = 1 + Math.floor(random() * step)
    for (let wasReached = true; wasReached; call += step) {
      tries++
      let calls = 0
      const onCall = (): void => {
        calls++
        if (calls === call) this.#disk.fill()
      }
      const watch = (): { port: FilePort } => {
        calls = 0
        return { port: watched(nodeFilePort(), onCall) }
      }
      const what = `the disk filling up at call ${call}`
      await this.#try(what, watch, (scene) => runEverything(scene))
      wasReached = calls >= call
    }
    this.figures.phases++
    if (round === 1)
      this.#context.say(`everything in one go: filled up at ${tries} of some ${call - step} calls of the file port`)
  }

  /** With a real server on the disk, which says why it stopped. */
  async runServer(): Promise<void> {
    const runs = 3
    for (let run = 0; run < runs; run++) {
      const problems = await runServerOnFullDisk(this.#disk, this.#context.random)
      this.problems.push(...problems.map((problem) => `seed ${this.#context.seed}, a server: ${problem}`))
      this.figures.tries++
    }
    this.figures.phases++
    this.#context.say(`a server whose disk fills up during an answer: ${runs} times`)
  }

  async #try(
    what: string,
    options: () => { port?: FilePort },
    run: (scene: Scene) => Promise<boolean | void>,
  ): Promise<boolean> {
    let taken = await this.#tryOnce(what, options(), run)
    for (let tries = 1; taken.slowestMs > limitMs && tries < maxTries; tries++) {
      this.#context.say(`${what}: a caller waited ${Math.round(taken.slowestMs)} ms; once more`)
      taken = await this.#tryOnce(what, options(), run)
    }
    this.figures.slowestMs = Math.max(this.figures.slowestMs, Math.round(taken.slowestMs))
    return taken.isFull
  }

  async #tryOnce(
    what: string,
    options: { port?: FilePort },
    run: (scene: Scene) => Promise<boolean | void>,
  ): Promise<{ isFull: boolean; slowestMs: number }> {
    const scene = new Scene(this.#disk, this.#context.random, options)
    let isFull = true
    try {
      isFull = (await run(scene)) === true
      await scene.end()
    } catch (error) {
      scene.problems.push(`it does not go on: ${(error as Error).stack}`)
    }
    this.problems.push(...scene.problems.map((problem) => `seed ${this.#context.seed}, ${what}: ${problem}`))
    this.figures.tries++
    this.figures.told += scene.failures
    this.figures.acknowledged += scene.acknowledged
    return { isFull, slowestMs: scene.slowestMs }
  }
}

/** The file port with somebody looking on. */
function watched(port: FilePort, onCall: () => void): FilePort {
  return new Proxy(port, {
    get: (target, name: keyof FilePort) => {
      const call = target[name] as (...parameters: unknown[]) => unknown
      return (...parameters: unknown[]) => {
        onCall()
        return call(...parameters)
      }
    },
  })
}

await runInside(fillEverywhere)
