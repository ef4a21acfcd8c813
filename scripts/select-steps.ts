// Selects the proofs and benches that `.ci/run` runs for a commit and prints one line for each: `run|name|reason` or `skip|name|reason`.
// A step runs if the commit touches a file that its program uses, and a third of the other steps runs too, chosen by the seed.
// `select-steps.ts --seed N [--base revision] [--all]`
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { parseArgs } from 'node:util'
import { changedFiles } from './changed-files.ts'
import { UsedFiles } from './used-files.ts'

/** A line of the table in `.ci/run`. */
export interface Step {
  name: string
  kind: 'check' | 'proof' | 'alone'
  budgetSeconds: number
  command: string
}

export interface Choice {
  name: string
  runs: boolean
  reason: string
}

export interface Selection {
  steps: readonly Step[]
  /** Paths from the root. Undefined if the changes are unknown: then every step counts as touched. */
  changed: readonly string[] | undefined
  /** The files that the program of a step uses, with their distance from it. */
  usedBy: (entry: string) => ReadonlyMap<string, number>
  seed: number
  all?: boolean
  limitSeconds?: number
}

/** What the whole of `.ci/run` may take on a quiet machine with two cores. */
const limitSeconds = 35 * 60
/** A budget is a ceiling. On a quiet machine the steps together take about this share of their budgets. */
const typicalShare = 0.7
/** A change of these can change any program. */
const usedByAll = ['package-lock.json', '.node-version']

export function selectSteps({ steps, changed, usedBy, seed, all = false, ...options }: Selection): Choice[] {
  const optional = steps.filter(({ kind }) => kind !== 'check')
  if (all) return optional.map(({ name }) => ({ name, runs: true, reason: '--all' }))
  const ranked = optional
    .map((step) => ({ step, touch: touchOf(step, changed, usedBy), rank: rankOf(step.name, seed) }))
    .sort((a, b) => (a.touch?.distance ?? Infinity) - (b.touch?.distance ?? Infinity) || (a.rank < b.rank ? -1 : 1))
  const untouched = ranked.filter(({ touch }) => touch === undefined)
  const drawn = new Set(untouched.slice(0, Math.ceil(untouched.length / 3)))
  let seconds = sum(steps.filter(({ kind }) => kind === 'check').map(secondsOf))
  const choices = ranked.map((candidate): Choice => {
    const { step, touch } = candidate
    const reason =
      touch?.reason ?? `not touched, ${drawn.has(candidate) ? 'but' : 'and not'} in the third drawn by seed ${seed}`
    const wanted = touch !== undefined || drawn.has(candidate)
    if (!wanted) return { name: step.name, runs: false, reason }
    if (seconds + secondsOf(step) > (options.limitSeconds ?? limitSeconds)) {
      return { name: step.name, runs: false, reason: `${reason}; left out because the time is used up, --all runs it` }
    }
    seconds += secondsOf(step)
    return { name: step.name, runs: true, reason }
  })
  const order = new Map(optional.map(({ name }, index) => [name, index]))
  return choices.sort((a, b) => (order.get(a.name) ?? 0) - (order.get(b.name) ?? 0))
}

/** Reads the table of steps out of `.ci/run`. */
export function stepsOf(script: string): Step[] {
  const lines = script.matchAll(/^([a-z-]+)\|(check|proof|alone)\|(\d+)\|(.+)$/gm)
  return [...lines].map(([, name = '', kind = '', budget = '', command = '']) => ({
    name,
    kind: kind as Step['kind'],
    budgetSeconds: Number(budget),
    command,
  }))
}

/** The program that a step starts. */
export function entryOf({ command }: Step): string | undefined {
  const [, kind, name] = /^npm run (proof|bench) ([a-z-]+)/.exec(command) ?? []
  return kind === undefined ? undefined : `${kind === 'proof' ? 'tests/proofs' : 'bench'}/${name}.ts`
}

interface Touch {
  distance: number
  reason: string
}

function touchOf(step: Step, changed: Selection['changed'], usedBy: Selection['usedBy']): Touch | undefined {
  if (changed === undefined) return { distance: 0, reason: 'the changes are unknown, so it counts as touched' }
  const common = changed.find((file) => usedByAll.includes(file))
  if (common !== undefined) return { distance: 0, reason: `touched: ${common}` }
  const entry = entryOf(step)
  if (entry === undefined) return { distance: 0, reason: 'its program is unknown, so it counts as touched' }
  const used = usedBy(entry)
  const [nearest] = changed
    .map((file) => ({ file, distance: distanceOf(file, used) }))
    .sort((a, b) => a.distance - b.distance)
  if (nearest === undefined || nearest.distance === Infinity) return undefined
  return { distance: nearest.distance, reason: `touched: ${nearest.file}` }
}

/** Package sources also read files in their own folder by a name that they compute, such as the prompts in Markdown. */
function distanceOf(file: string, used: ReadonlyMap<string, number>): number {
  const known = used.get(file)
  if (known !== undefined) return known
  if (file.endsWith('.ts') || !/^packages\/[^/]+\/src\//.test(file)) return Infinity
  const beside = [...used].filter(([other]) => dirname(other) === dirname(file))
  return 1 + Math.min(Infinity, ...beside.map(([, distance]) => distance))
}

function secondsOf({ kind, budgetSeconds }: Step): number {
  // Two proofs run at a time.
  return budgetSeconds * typicalShare * (kind === 'proof' ? 0.5 : 1)
}

function rankOf(name: string, seed: number): string {
  return createHash('sha256').update(`${seed} ${name}`).digest('hex')
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0)
}

/** Against the last commit that landed: the given one, or where the branch left origin/main, or the parent of HEAD. */
function changedSince(base: string | undefined): string[] | undefined {
  if (base !== undefined) return changedFiles({ bases: [base] })
  const changed = changedFiles({ bases: ['origin/main'] })
  // HEAD is what landed last.
  return changed === undefined || changed.length === 0 ? changedFiles({ bases: ['HEAD^'] }) : changed
}

function main(): void {
  const { values } = parseArgs({
    options: { seed: { type: 'string' }, base: { type: 'string' }, all: { type: 'boolean' } },
  })
  const files = new UsedFiles()
  // The runner is part of every proof and bench. It names the folders of all of them, which do not count here.
  const runner = [...files.of('scripts/figure.ts')].filter(([file]) => file.startsWith('scripts/figure'))
  const choices = selectSteps({
    steps: stepsOf(readFileSync('.ci/run', 'utf8')),
    changed: changedSince(values.base),
    usedBy: (entry) => new Map([...runner, ...files.of(entry)]),
    seed: Number(values.seed ?? 0),
    all: values.all ?? false,
  })
  for (const { name, runs, reason } of choices) console.log(`${runs ? 'run' : 'skip'}|${name}|${reason}`)
}

if (process.argv[1] === import.meta.filename) main()
