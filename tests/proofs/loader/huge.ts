import { hugeFiles } from '../../corpus/huge-files.ts'
import type { HugeReport } from './reports.ts'
import { runChild } from './run-child.ts'

export const maxGrownBytes = 150e6
const maxMsPerMegabyte = 100

/**
 * Opens all large logs in processes of their own, several in each. What is too slow or takes too much memory is tried again
 * alone: others use this machine too, and memory is not given back between two files.
 */
export async function openHugeFiles(options: {
  folder: () => Promise<string>
  say: (line: string) => void
}): Promise<{ reports: HugeReport[]; failures: string[] }> {
  const reports: HugeReport[] = []
  const failures: string[] = []
  for (let start = 0; start < hugeFiles.length; start += filesPerProcess) {
    const numbers = hugeFiles.slice(start, start + filesPerProcess).map((_, index) => start + index)
    const found = await openInChild(await options.folder(), numbers)
    for (const number of numbers) {
      const first = found.reports.find(({ name }) => name === hugeFiles[number]?.name)
      const isFine = first !== undefined && judge(first).length === 0
      const { reports: again, failure } = isFine
        ? { reports: [first] }
        : await openInChild(await options.folder(), [number])
      const [last = nothingOf(number)] = again
      const problems = [...judge(last), ...(failure === undefined ? [] : [failure])]
      failures.push(...problems.map((problem) => `${last.name}: ${problem}`))
      reports.push(last)
      const memory = `memory up to +${Math.round(last.grownBytes / 1e6)} MB`
      options.say(`${last.name}: ${Math.round(last.msPerMegabyte)} ms CPU for each MB, ${memory}`)
    }
  }
  return { reports, failures }
}

const filesPerProcess = 7

async function openInChild(
  folder: string,
  numbers: readonly number[],
): Promise<{ reports: HugeReport[]; failure?: string }> {
  const reports: HugeReport[] = []
  const failure = await runChild({
    program: 'open-huge.ts',
    args: [folder, ...numbers.map(String)],
    silenceMs: 60_000,
    onLine: (line) => reports.push(JSON.parse(line) as HugeReport),
  })
  return { reports, ...(failure !== undefined && { failure }) }
}

function judge({ problems, msPerMegabyte, grownBytes }: HugeReport): string[] {
  return [
    ...problems,
    ...(msPerMegabyte > maxMsPerMegabyte ? [`takes ${Math.round(msPerMegabyte)} ms for each MB`] : []),
    ...(grownBytes > maxGrownBytes ? [`takes ${Math.round(grownBytes / 1e6)} MB of memory`] : []),
  ]
}

function nothingOf(number: number): HugeReport {
  return { name: hugeFiles[number]?.name ?? '', problems: ['was not opened'], msPerMegabyte: 0, grownBytes: 0 }
}
