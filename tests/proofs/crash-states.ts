import type { FigureContext, FigureResult } from '../../scripts/figure/figure.ts'
import type { DiskOperation, DiskStep } from '../../packages/session/src/testing/memory-disk.ts'
import { checkCrash, checkThroughStore, type FoundSession } from './crash-states/check-crash.ts'
import { crashesAt, type Crash } from './crash-states/crashes-at.ts'
import type { Due, Ledger } from './crash-states/ledger.ts'
import { runScenario, type Epoch } from './crash-states/scenario.ts'
import { areNamesSafe, touchedSessions } from './crash-states/touched-sessions.ts'

export const name = 'crash-states'
export const claim = 'Acknowledged data survives every state that a crash can leave on a modeled disk.'
export const sizes = { ci: { states: 300_000 }, full: { states: 10_000_000 } }

/** Every so many of them are also opened through the store, and go on from there. */
const throughStoreEvery = 30
/** And every so many of those where only derived files differ. */
const derivedEvery = 150
const maxShown = 10

/** Every state in which a crash can leave the disk, call by call, over random lives of a few processes. */
export async function run(context: FigureContext): Promise<FigureResult> {
  const count = new Count()
  while (count.states < sizes[context.size].states && count.problems.length === 0) {
    count.scenarios++
    for await (const epoch of runScenario(context.random)) {
      count.processes++
      await checkEpoch(epoch, count)
      // What follows stands on a disk that is wrong already.
      if (count.problems.length > 0) break
    }
    // Sessions of processes that "died" still have timers; let them run out.
    await new Promise((resolve) => setImmediate(resolve))
  }
  count.tell(context)
  return { ok: count.problems.length === 0, figures: count.figures }
}

async function checkEpoch({ journal, ledger, description }: Epoch, count: Count): Promise<void> {
  const moments = [...journal.keys()].filter((index) => changing.has((journal[index] as DiskStep).operation))
  for (const [number, index] of moments.entries()) {
    count.moments++
    const step = journal[index] as DiskStep
    const moment: Moment = {
      ledger,
      // Until the next call that changes something the disk stays as it is, and so does what a crash leaves.
      due: ledger.dueAt(moments[number + 1] ?? journal.length),
      dueInside: ledger.dueAt(index),
      touched: touchedSessions(step.state, ledger),
      known: new Map(),
    }
    const isQuiet = moment.touched.size === 0 && areNamesSafe(step.state)
    for (const crash of crashesAt(step)) {
      // Sessions that no crash can touch were read after the first; now only what is derived from them differs.
      const isDerived = isQuiet && crash.level === 'machine'
      if (isDerived && !count.takesDerived()) continue
      for (const problem of await problemsOf(crash, moment, { count, isDerived })) {
        const place = `scenario ${count.scenarios}, process ${count.processes} (${description})`
        count.problems.push(`${place}, call ${index} (${step.operation} ${step.path}), ${crash.describe()}: ${problem}`)
      }
      if (count.problems.length >= maxShown) return
    }
  }
}

interface Moment {
  ledger: Ledger
  due: ReadonlyMap<string, Due>
  /** For a crash during the call. */
  dueInside: ReadonlyMap<string, Due>
  touched: ReadonlySet<string>
  known: Map<string, FoundSession>
}

async function problemsOf(
  crash: Crash,
  moment: Moment,
  { count, isDerived }: { count: Count; isDerived: boolean },
): Promise<string[]> {
  const { ledger, touched } = moment
  try {
    const { problems, sessions, opened } = await checkCrash(crash, moment)
    const isThroughStore = isDerived || (opened > 0 ? count.takesStore(crash) : count.takesDerived())
    if (opened > 0 || isThroughStore) count.add(crash, { isThroughStore })
    if (problems.length > 0 || !isThroughStore) return problems
    // Where only derived files can differ, one session is enough.
    const chosen = [...sessions].filter(([sessionId]) => touched.has(sessionId))
    return await checkThroughStore(crash, chosen.length > 0 ? chosen : [...sessions].slice(0, 1), ledger)
  } catch (error) {
    return [`opening it failed: ${error instanceof Error ? error.stack : String(error)}`]
  }
}

const changing: ReadonlySet<DiskOperation> = new Set([
  'create',
  'write',
  'truncate',
  'dataSync',
  'syncFolder',
  'rename',
  'makeFolder',
  'remove',
])

/** What was tried. */
class Count {
  /** In which at least one session was opened; a state that cannot differ from one before it is not counted. */
  states = 0
  processCrashes = 0
  withHoles = 0
  throughStore = 0
  /** Enumerated beside them: every session is as in a state that was opened, only derived files differ. */
  derivedOnly = 0
  moments = 0
  processes = 0
  scenarios = 0
  readonly problems: string[] = []

  /** Whether it is the turn of a state where only derived files differ. */
  takesDerived(): boolean {
    return ++this.derivedOnly % derivedEvery === 0
  }

  /** Whether a state is opened through the store too: a killed process always, others in turn. */
  takesStore({ level, isInsideCall }: Crash): boolean {
    return (level === 'process' && !isInsideCall) || this.states % throughStoreEvery === 0
  }

  add(crash: Crash, { isThroughStore }: { isThroughStore: boolean }): void {
    this.states++
    if (crash.level === 'process') this.processCrashes++
    if (crash.hasHole) this.withHoles++
    if (isThroughStore) this.throughStore++
  }

  get figures(): FigureResult['figures'] {
    const { problems, ...counts } = this
    return { ...counts, problems: problems.length }
  }

  tell({ say }: FigureContext): void {
    const { states, processCrashes, withHoles, throughStore, derivedOnly } = this
    say(`${this.scenarios} scenarios, ${this.processes} processes, ${this.moments} moments, ${states} crash states:`)
    say(`  ${processCrashes} of a process, ${states - processCrashes} of the machine, ${withHoles} of them with holes`)
    say(`  ${throughStore} opened through the store and written on`)
    say(`beside them ${derivedOnly} where only derived files differ; every ${derivedEvery}th of these is counted above`)
    for (const problem of this.problems) say(`PROBLEM ${problem}`)
  }
}
