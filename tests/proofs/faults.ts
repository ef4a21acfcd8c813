import type { FigureContext, FigureResult } from '../../scripts/figure/figure.ts'
import type { RealFault } from './faults/faulty-process.ts'
import { tryPortFaults } from './faults/port-faults.ts'
import { tryRealFaults } from './faults/real-faults.ts'

export const name = 'faults'
export const claim = 'A failing system call loses nothing that was acknowledged.'
export const sizes = { ci: { failingSystemCalls: 60 }, full: { failingSystemCalls: Infinity } }

const maxShown = 20

/** A failure at every call that stores something: through the store's own file port, and through real system calls. */
export async function run(context: FigureContext): Promise<FigureResult> {
  const { say } = context
  const port = await tryPortFaults()
  say(`file port: ${port.runs} runs, ${port.hits} failed calls, ${port.refusals} times a caller was told`)
  say(`  calls of a run: ${describe(port.calls)}`)
  const real = await tryRealFaults(await context.temporaryFolder(), (faults) => choose(faults, context))
  say(
    `system calls: ${real.runs} runs of ${real.possible}, ${real.hits} failed calls, ${real.refusals} times a caller was told`,
  )
  say(`  calls of a run: ${describe(real.calls)}`)
  const problems = [...port.problems, ...real.problems]
  for (const problem of problems.slice(0, maxShown)) say(`PROBLEM ${problem}`)
  return {
    ok: problems.length === 0,
    figures: {
      portRuns: port.runs,
      portHits: port.hits,
      realRuns: real.runs,
      realHits: real.hits,
      refusals: port.refusals + real.refusals,
      problems: problems.length,
    },
  }
}

/** As many of each kind of call as there are, but every kind at least a few times. */
function choose(faults: RealFault[], { size, random }: FigureContext): RealFault[] {
  const wanted = sizes[size].failingSystemCalls
  if (wanted === Infinity) return faults
  const byKind = Map.groupBy(faults, ({ kind }) => kind)
  const chosen = new Set<RealFault>()
  const kinds = [...byKind.values()]
  for (let turn = 0; chosen.size < Math.min(wanted, faults.length); turn++) {
    const ofKind = kinds[turn % kinds.length] ?? []
    const fault = ofKind[Math.floor(random() * ofKind.length)]
    if (fault) chosen.add(fault)
  }
  return [...chosen]
}

function describe(calls: Record<string, number>): string {
  return Object.entries(calls)
    .map(([operation, count]) => `${operation} ${count}`)
    .join(', ')
}
