import { cp, mkdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { buildCli } from '../../scripts/build-cli.ts'
import type { FigureContext, FigureResult } from '../../scripts/figure/figure.ts'
import { bundleProgram } from '../support/bundle-program.ts'
import { playConversation } from './acp/conversation.ts'
import type { ServerProgram } from './acp/hosts.ts'
import { playInEditors } from './acp/in-editors.ts'
import { initializeRatio } from './acp/initialize.ts'
import { mutants } from './acp/mutants.ts'
import { playOpencode } from './acp/opencode.ts'
import { catchMutant, caughtLine } from './mutants/catch-mutant.ts'
import type { Violation } from './sync/violation.ts'

export const name = 'acp'
export const claim =
  'A session of a foreign agent, or of ours in an editor, keeps every promise, whatever the agent does and whoever is killed.'
export const sizes = {
  ci: { conversations: 26, withServerKills: 6, inEditors: 8, mutants: 3 },
  full: { conversations: 4300, withServerKills: 350, inEditors: 350, mutants: Infinity },
}

const parts = ['withServerKills', 'inEditors', 'conversations'] as const
type Part = (typeof parts)[number]

/** Most of a conversation is waiting. */
const sideBySide = 4
const keptFolder = join(tmpdir(), 'tapetree-acp-problems')
const maxProblems = 5
const progressEvery = 100
const maxInitializeRatio = 8
/** Something else may run beside a measurement. */
const maxMeasurements = 3

interface Played {
  violations: Violation[]
  figures: Record<string, number>
}

/**
 * Random conversations with a foreign agent that misbehaves, and with `tapetree acp`, held against the invariants of the protocol; then
 * faults that they must find. `ACP_CASE=<part>:<seed>` plays one of them. The files of those that went wrong are kept in `keptFolder`:
 * what depends on the load of the machine may not go wrong again.
 */
export async function run(context: FigureContext): Promise<FigureResult> {
  const { size } = context
  const trial = new Trial(context, await context.temporaryFolder())
  await trial.prepare()
  const [, chosen, seed] = /^(\w+):(\d+)$/.exec(process.env['ACP_CASE'] ?? '') ?? []
  const part = parts.find((each) => each === chosen)
  if (part !== undefined) {
    await trial.playOne(part, Number(seed))
    return trial.result()
  }
  await trial.measureInitialize()
  if (size === 'full') await trial.playOpencode(await context.temporaryFolder())
  for (const each of parts) await trial.play(each, sizes[size][each])
  await trial.catchMutants(sizes[size].mutants)
  return trial.result()
}

class Trial {
  readonly #figures: Record<string, number> = {}
  readonly #context: FigureContext
  readonly #folder: string
  #server: ServerProgram | undefined
  #problems = 0
  #folders = 0

  constructor(context: FigureContext, folder: string) {
    this.#context = context
    this.#folder = folder
  }

  async prepare(): Promise<void> {
    await buildCli()
    const compileCache = join(this.#folder, 'cache')
    await mkdir(compileCache)
    // Also for `tapetree acp`, which starts in a new home each time.
    process.env['NODE_COMPILE_CACHE'] ??= compileCache
    const file = await bundleProgram(fileURLToPath(new URL('acp/server-process.ts', import.meta.url)), {
      folder: join(this.#folder, 'bundle'),
      compileCache,
      beside: [fileURLToPath(new URL('acp/unruly-agent.ts', import.meta.url))],
    })
    this.#server = { file, compileCache }
  }

  result(): FigureResult {
    return { ok: this.#problems === 0, figures: { ...this.#figures, problems: this.#problems } }
  }

  async measureInitialize(): Promise<void> {
    let ratio = Infinity
    for (let count = 0; count < maxMeasurements && ratio >= maxInitializeRatio; count++)
      ratio = Math.min(ratio, await initializeRatio())
    this.#figures['initializeRatio'] = Number(ratio.toFixed(1))
    if (ratio >= maxInitializeRatio)
      this.#problem(`initialize takes ${ratio.toFixed(1)} times of an empty program, more than ${maxInitializeRatio}`)
  }

  async playOpencode(folder: string): Promise<void> {
    const { say } = this.#context
    for (const problem of await playOpencode({ folder, say })) this.#problem(problem)
  }

  async play(part: Part, count: number): Promise<void> {
    const { say } = this.#context
    const seeds = Array.from({ length: count }, () => this.#nextSeed())
    let played = 0
    const worker = async (): Promise<void> => {
      for (let seed = seeds.shift(); seed !== undefined && this.#problems < maxProblems; seed = seeds.shift()) {
        await this.playOne(part, seed)
        if (++played % progressEvery === 0) say(`${played} of ${count} ${part}, ${this.#problems} problems`)
      }
    }
    await Promise.all(Array.from({ length: sideBySide }, worker))
    this.#figures[part] = played
  }

  async playOne(part: Part, seed: number): Promise<void> {
    const { violations, figures } = await this.#played(part, seed, { isKept: true }).catch((error: unknown) => ({
      violations: [{ invariant: 'none', message: `it could not be played: ${String(error)}` }],
      figures: {},
    }))
    for (const [figure, count] of Object.entries(figures)) this.#figures[figure] = (this.#figures[figure] ?? 0) + count
    if (violations.length === 0) return
    this.#problem(violations.slice(0, 5).map(inWords).join('; '))
    this.#context.say(
      `  again: ACP_CASE=${part}:${seed} npm run proof acp; its files: ${join(keptFolder, String(seed))}`,
    )
  }

  /** So many of them, beginning anywhere. */
  async catchMutants(most: number): Promise<void> {
    const all = Object.entries(mutants)
    const first = Math.floor(this.#context.random() * all.length)
    const chosen = [...all.slice(first), ...all.slice(0, first)].slice(0, most)
    this.#figures['mutants'] = 0
    for (const [fault, mutant] of chosen) {
      const caught = await catchMutant(mutant, async () => {
        const { violations } = await this.#played('conversations', this.#nextSeed())
        return { problems: violations.map(inWords) }
      })
      this.#context.say(caughtLine(fault, caught))
      if (caught) this.#figures['mutants']++
      else this.#problems++
    }
  }

  async #played(part: Part, seed: number, { isKept = false } = {}): Promise<Played> {
    if (part === 'inEditors') return playInEditors({ seed })
    const folder = join(this.#folder, String(++this.#folders))
    await mkdir(folder)
    try {
      const server = part === 'withServerKills' && this.#server ? { server: this.#server } : {}
      const played = await playConversation({ seed, folder, ...server })
      if (isKept && played.violations.length > 0) await cp(folder, join(keptFolder, String(seed)), { recursive: true })
      return played
    } finally {
      await rm(folder, { recursive: true, force: true, maxRetries: 3 })
    }
  }

  #problem(problem: string): void {
    this.#problems++
    this.#context.say(`PROBLEM ${problem.slice(0, 3000)}`)
  }

  #nextSeed(): number {
    return Math.floor(this.#context.random() * 2 ** 32)
  }
}

function inWords({ invariant, message }: Violation): string {
  return `${invariant}: ${message.slice(0, 600)}`
}
