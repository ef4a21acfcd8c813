import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { appendFile, mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { openFileStore } from '@tapetree/session/stores/file'
import type { FigureContext, FigureResult } from '../../scripts/figure/figure.ts'
import { filesWith, newCanary } from './erase/canary.ts'
import { mutantCount, survivingMutants } from './erase/mutants.ts'
import type { Order, Report } from './erase/orders.ts'

export const name = 'erase'
export const claim = 'Erased sessions leave no byte in any file, also after `kill -9`; all other sessions stay whole.'
export const sizes = { ci: { rounds: 7 }, full: { rounds: 500 } }

/**
 * Processes archive, delete, restore, fork, compact, search and erase random sessions, one or two at a time, and are killed at random
 * moments or inside an erase. Then no file may contain text of an erased session, and every other session must be whole. Broken ways to
 * erase must be found, too.
 */
export async function run(context: FigureContext): Promise<FigureResult> {
  const { size, say, random, temporaryFolder } = context
  const { rounds } = sizes[size]
  const trial = new Trial(context, await temporaryFolder())
  for (let round = 1; round <= rounds && trial.problems.length === 0; round++) {
    await trial.play(await temporaryFolder(), round)
    if (round % Math.ceil(rounds / 10) === 0) say(`${round} rounds: ${JSON.stringify(trial.figures)}`)
  }
  if (trial.problems.length === 0) await trial.playCommand(await temporaryFolder())
  const surviving = await survivingMutants(temporaryFolder, newCanary(random))
  for (const each of surviving) trial.problems.push(`mutant "${each}": the search for leftovers was wrong`)
  for (const problem of trial.problems.slice(0, 20)) say(`PROBLEM: ${problem}`)
  return {
    ok: trial.problems.length === 0 && trial.figures.erased > 0,
    figures: { ...trial.figures, mutants: mutantCount, surviving: surviving.length, problems: trial.problems.length },
  }
}

/** What is known about one store. */
interface Known {
  /** The canary that was put into a session. */
  canaries: Map<string, string>
  /** The session that another one was copied from. */
  parents: Map<string, string>
}

class Trial {
  readonly problems: string[] = []
  readonly figures = {
    rounds: 0,
    processes: 0,
    killed: 0,
    killedInErase: 0,
    erased: 0,
    refused: 0,
    searched: 0,
    whole: 0,
  }
  readonly #context: FigureContext
  readonly #compileCache: string

  constructor(context: FigureContext, compileCache: string) {
    this.#context = context
    this.#compileCache = compileCache
  }

  async play(folder: string, round: number): Promise<void> {
    const { random } = this.#context
    const known: Known = { canaries: new Map(), parents: new Map() }
    const generations = 2
    for (let generation = 0; generation < generations; generation++) {
      const isAlone = random() < 0.6
      await Promise.all(Array.from({ length: isAlone ? 1 : 2 }, () => this.#work(folder, { known, isAlone, round })))
      await this.#check(folder, known, round)
    }
    this.figures.rounds++
  }

  /** The command removes what lies outside the store, such as the history of the composer. */
  async playCommand(home: string): Promise<void> {
    const { random } = this.#context
    const canary = newCanary(random)
    const store = openFileStore({ folder: join(home, 'sessions') })
    const session = await store.create({ name: canary })
    await session.appendMessage('user', canary)
    await session.close()
    await store.close()
    await mkdir(join(home, 'state'))
    const prompts = [canary, { text: `/fix ${canary}`, session: session.id }]
    for (const prompt of prompts) await appendFile(join(home, 'state', 'history.jsonl'), `${JSON.stringify(prompt)}\n`)
    const program = fileURLToPath(new URL('../../packages/cli/src/main.ts', import.meta.url))
    const args = ['sessions', 'delete', session.id, '--forever', '--yes']
    const child = spawn(process.execPath, ['-C', '@tapetree/source', program, ...args], {
      env: { ...process.env, TAPETREE_HOME: home, HOME: home },
      stdio: ['ignore', 'ignore', 'pipe'],
    })
    const said = textOf(child)
    const [code] = (await once(child, 'close')) as [number | null]
    if (code !== 0) this.problems.push(`the command ended with ${code}: ${await said}`)
    this.#searchFor(home, [canary], 'the command')
  }

  async #work(
    folder: string,
    { known, isAlone, round }: { known: Known; isAlone: boolean; round: number },
  ): Promise<void> {
    const { random } = this.#context
    const dies = random()
    const order: Order = {
      folder,
      seed: Math.floor(random() * 2 ** 32),
      operations: 30,
      dieAtCall: dies < 0.5 ? 1 + Math.floor(random() * 60) : 0,
    }
    const delayMs = dies > 0.8 ? 500 + Math.floor(random() * 1500) : undefined
    const program = fileURLToPath(new URL('./erase/worker.ts', import.meta.url))
    const child = spawn(process.execPath, ['-C', '@tapetree/source', program, JSON.stringify(order)], {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...process.env, NODE_COMPILE_CACHE: this.#compileCache },
    })
    const said = textOf(child)
    const closed = once(child, 'close') as Promise<[number | null, NodeJS.Signals | null]>
    if (delayMs !== undefined) void this.#killLater(child, delayMs)
    let isErasing = false
    for await (const line of createInterface(child.stdout)) {
      const report = JSON.parse(line) as Report
      isErasing = report.type === 'erasing'
      this.#take(report, { known, isAlone, round })
    }
    const [code, signal] = await closed
    this.figures.processes++
    if (signal === 'SIGKILL') {
      this.figures.killed++
      if (isErasing) this.figures.killedInErase++
    } else if (code !== 0) this.problems.push(`round ${round}: a process ended with ${code}: ${await said}`)
  }

  async #killLater(child: ChildProcess, delayMs: number): Promise<void> {
    await setTimeout(delayMs)
    child.kill('SIGKILL')
  }

  #take(report: Report, { known, isAlone, round }: { known: Known; isAlone: boolean; round: number }): void {
    switch (report.type) {
      case 'made':
        known.canaries.set(report.id, report.canary)
        return
      case 'copied':
        known.parents.set(report.id, report.from)
        return
      case 'erasing':
        if (report.parent !== undefined) known.parents.set(report.id, report.parent)
        return
      case 'erased': {
        this.figures.erased++
        const wrong = report.forks.filter((fork) => !ancestorsOf(fork, known).includes(report.id))
        if (isAlone && wrong.length > 0)
          this.problems.push(`round ${round}: ${wrong.join()} is no fork of ${report.id}`)
        return
      }
      case 'refused':
        this.figures.refused++
        if (isAlone) this.problems.push(`round ${round}: an erase of ${report.id} was refused: ${report.code}`)
        return
      case 'copying':
      case 'done':
        return
      default:
        report satisfies never
    }
  }

  /** Opens the store, which finishes what a killed process left, and looks at everything. */
  async #check(folder: string, known: Known, round: number): Promise<void> {
    const store = openFileStore({ folder })
    const living: string[] = []
    for (const place of ['active', 'archive', 'trash'] as const) {
      for (const { id, parentSession, damaged } of (await store.list({ place, limit: Infinity })).sessions) {
        living.push(id)
        if (parentSession !== undefined) known.parents.set(id, parentSession)
        if (damaged) this.problems.push(`round ${round}: ${id} is damaged`)
        if (place !== 'active') continue
        const { lines, damage } = await store.verify(id)
        this.figures.whole++
        if (lines < 1 || damage.length > 0) this.problems.push(`round ${round}: ${id} is not whole`)
      }
    }
    await store.close()
    const needed = new Set(living.flatMap((id) => ancestorsOf(id, known)))
    const gone = [...known.canaries].filter(([id]) => !needed.has(id)).map(([, canary]) => canary)
    this.#searchFor(folder, gone, `round ${round}`)
    const kept = [...known.canaries].filter(([id]) => living.includes(id)).map(([, canary]) => canary)
    // A search that finds nothing anywhere would prove nothing.
    if (kept.length > 3 && filesWith(folder, kept).length === 0)
      this.problems.push(`round ${round}: no canary was found`)
  }

  #searchFor(folder: string, canaries: readonly string[], where: string): void {
    this.figures.searched += canaries.length
    for (const { path, canary } of filesWith(folder, canaries))
      this.problems.push(`${where}: ${path} contains ${canary}`)
  }
}

/** A session, and those that it has copies of. */
function ancestorsOf(id: string, { parents }: Known): string[] {
  const chain = [id]
  for (let parent = parents.get(id); parent !== undefined; parent = parents.get(parent)) chain.push(parent)
  return chain
}

async function textOf({ stderr }: ChildProcess): Promise<string> {
  let text = ''
  for await (const chunk of stderr!.setEncoding('utf8')) text += chunk as string
  return text.slice(-2000)
}
