import { rm } from 'node:fs/promises'
import type { FigureContext, FigureResult } from '../../scripts/figure/figure.ts'
import { Arena } from './two-writers/arena.ts'
import { checkLog } from './two-writers/check-log.ts'
import { rounds } from './two-writers/rounds.ts'

export const name = 'two-writers'
export const claim = 'Two processes never write to one session. If a lock fails, the conflict is detected.'
export const sizes = { ci: { contests: 60 }, full: { contests: 10_000 } }

/** Real processes that all want to write one session, with the lock and with the lock defeated. */
export async function run({ size, say, random, temporaryFolder }: FigureContext): Promise<FigureResult> {
  const count = sizes[size].contests
  const problems: string[] = []
  let current = ''
  const complain = (problem: string): void => {
    problems.push(problem)
    say(`PROBLEM in ${current}: ${problem}`)
  }
  const arena = new Arena({ folder: await temporaryFolder(), random, complain })
  const tried = new Map(
    Object.keys(rounds).map((kind) => [kind, { count: 0, processes: 0, acknowledged: 0, foreign: 0, fenced: 0 }]),
  )
  try {
    for (let number = 0; number < count; number += 1) {
      const [kind, play] = Object.entries(rounds)[number % tried.size]!
      current = `round ${number} (${kind})`
      const round = await arena.newRound()
      await play(round)
      await round.closeAll()
      const check = await checkLog(round.place, round.tenures, { isDefeated: kind.startsWith('defeated') })
      check.problems.forEach(complain)
      await rm(round.place.folder, { recursive: true })
      const total = tried.get(kind)!
      total.count += 1
      total.processes += round.processes.length
      total.acknowledged += check.acknowledged
      total.foreign += check.foreign
      total.fenced += round.tenures.filter(({ isFenced }) => isFenced).length
    }
  } finally {
    await arena.close()
  }
  for (const [kind, { count, processes, acknowledged, foreign, fenced }] of tried) {
    say(
      `${kind}: ${count} rounds, ${processes} processes, ${acknowledged} lines acknowledged, ${fenced} writers fenced, ${foreign} foreign lines`,
    )
  }
  const totals = [...tried.values()]
  return {
    ok: problems.length === 0,
    figures: {
      rounds: count,
      acknowledged: sum(totals.map(({ acknowledged }) => acknowledged)),
      fenced: sum(totals.map(({ fenced }) => fenced)),
      foreign: sum(totals.map(({ foreign }) => foreign)),
      problems: problems.length,
    },
  }
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0)
}
