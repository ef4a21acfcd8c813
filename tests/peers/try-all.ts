// Tries every experiment, in mounts of its own, so that one of them can fill a disk. Started by `npm run proof peers`.
import { readFile } from 'node:fs/promises'
import { inspect } from 'node:util'
import type { FigureResult } from '../../scripts/figure/figure.ts'
import { runInside, type InsideContext } from '../proofs/writer/own-mounts.ts'
import { allExperiments } from './all-experiments.ts'
import { peerTable, rowsMissingIn, type PeerRow } from './peer-table.ts'

const count = 16

async function tryAll({ say }: InsideContext): Promise<FigureResult> {
  const problems: string[] = []
  const rows: PeerRow[] = []
  if (allExperiments.length !== count) problems.push(`there are ${allExperiments.length} experiments, not ${count}`)
  for (const { experiment, others, attempt } of allExperiments) {
    const begun = performance.now()
    try {
      rows.push({ experiment, others, tapetree: await attempt() })
    } catch (error) {
      problems.push(`${experiment}: ${inspect(error)}`)
    }
    say(`${((performance.now() - begun) / 1000).toFixed(1)} s: ${experiment}`)
  }
  say(`\n${peerTable(rows)}`)
  const page = await readFile(new URL('../../docs/peers.md', import.meta.url), 'utf8')
  for (const { experiment } of rowsMissingIn(page, rows))
    problems.push(`docs/peers.md tells something else: ${experiment}`)
  for (const problem of problems) say(`PROBLEM ${problem}`)
  return { ok: problems.length === 0, figures: { experiments: rows.length, problems: problems.length } }
}

await runInside(tryAll)
