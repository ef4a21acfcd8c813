import { mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { writeHugeFile, type HugeFile } from '../../corpus/huge-files.ts'
import type { HugeReport } from './reports.ts'
import { runChild } from './run-child.ts'

export interface HugeOutcome {
  problems: string[]
  grownBytes: number
  /** Of the slowest step, for one reading. */
  msPerMegabyte: number
}

export const maxGrownBytes = 150e6
const maxMsPerMegabyte = 100

/** Opens a large log in a process of its own. Being slow counts only if it is slow a second time: others use this machine too. */
export async function tryHuge(root: string, file: HugeFile): Promise<HugeOutcome> {
  const folder = join(root, 'huge')
  mkdirSync(folder)
  try {
    const megabytes = writeHugeFile(join(folder, 'events.jsonl'), file) / 1e6
    const first = await openOnce(root, file, megabytes)
    if (first.problems.length === 0 && first.msPerMegabyte <= maxMsPerMegabyte) return first
    rmSync(join(folder, 'events.jsonl'))
    writeHugeFile(join(folder, 'events.jsonl'), file)
    return withSlowness(await openOnce(root, file, megabytes))
  } finally {
    rmSync(folder, { recursive: true })
  }
}

function withSlowness(outcome: HugeOutcome): HugeOutcome {
  const { msPerMegabyte, problems } = outcome
  if (msPerMegabyte <= maxMsPerMegabyte) return outcome
  return { ...outcome, problems: [...problems, `takes ${Math.round(msPerMegabyte)} ms for each MB`] }
}

async function openOnce(root: string, { isLargeInItself }: HugeFile, megabytes: number): Promise<HugeOutcome> {
  let report: HugeReport = { costs: [], problems: [], grownBytes: 0 }
  const failure = await runChild({
    program: 'open-huge.ts',
    args: [root, 'huge', ...(isLargeInItself ? ['large'] : [])],
    silenceMs: 60_000,
    onLine: (line) => {
      report = JSON.parse(line) as HugeReport
    },
  })
  const { costs, grownBytes } = report
  const problems = [...report.problems, ...(failure === undefined ? [] : [failure])]
  if (grownBytes > maxGrownBytes) problems.push(`takes ${Math.round(grownBytes / 1e6)} MB of memory`)
  const msPerMegabyte = Math.max(0, ...costs.map(({ cpuMs, readings }) => cpuMs / readings / megabytes))
  return { problems, grownBytes, msPerMegabyte }
}
