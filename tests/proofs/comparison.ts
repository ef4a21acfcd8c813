import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { FigureContext, FigureResult } from '../../scripts/figure/figure.ts'
import { npm } from '../../scripts/release/packages.ts'
import { tryBrowserClient } from '../comparison/browser-client.ts'
import { comparisonPage, keyOf, outcomesIn, pageWith, withoutPadding } from '../comparison/comparison-page.ts'
import { programs, rivals, rivalsFolder, tapetree, type Program } from '../comparison/contenders.ts'
import { trials } from '../comparison/trials.ts'

export const name = 'comparison'
export const claim =
  'A support bot, an eval harness, two screens and a structured answer take the lines, and end as, the comparison with other SDKs says.'
export const sizes = { ci: { libraries: 1 }, full: { libraries: 1 + rivals.length } }

/**
 * Runs the programs of the comparison and checks its page: the lines of all libraries, and the outcomes of those that were run. At full
 * size the other libraries are installed and run, too. `UPDATE_COMPARISON=1` writes the page.
 */
export async function run({ size, say, temporaryFolder }: FigureContext): Promise<FigureResult> {
  const folder = await temporaryFolder()
  const contenders = [tapetree, ...rivals].slice(0, sizes[size].libraries)
  if (contenders.length > 1) {
    await npm(['ci', '--prefer-offline', '--strict-allow-scripts'], { cwd: rivalsFolder })
    await promisify(execFile)(process.execPath, ['node_modules/typescript/bin/tsc', '-p', rivalsFolder])
    say('the programs of the other libraries compile')
  }
  const before = readFileSync(comparisonPage, 'utf8')
  const outcomes = outcomesIn(before)
  const problems: string[] = []
  const browser = async (): Promise<void> => {
    const place = join(folder, 'browser-client')
    await mkdir(place)
    problems.push(...(await tryBrowserClient(place)))
    say(`browser client: ${problems.length} problems`)
  }
  for (const contender of contenders) {
    const trial = async (program: Program): Promise<void> => {
      const place = join(folder, `${contender.name}-${program}`)
      await mkdir(place)
      const begun = performance.now()
      const { outcome, details } = await trials[program](contender, place)
      const seconds = ((performance.now() - begun) / 1000).toFixed(1)
      say(`${keyOf(contender, program)}: ${outcome} (${seconds} s)`)
      const known = outcomes.get(keyOf(contender, program))
      if (known !== outcome) for (const detail of details) if (detail !== '') say(`  ${detail.slice(0, 1000)}`)
      outcomes.set(keyOf(contender, program), outcome)
    }
    // The others take long to start, so one program at a time.
    if (contender === tapetree) await Promise.all([...programs.map(trial), browser()])
    else for (const program of programs) await trial(program)
  }
  const page = pageWith(outcomes)
  if (process.env['UPDATE_COMPARISON'] === '1') await writeFile(comparisonPage, page)
  const isRight = withoutPadding(readFileSync(comparisonPage, 'utf8')) === withoutPadding(page)
  if (!isRight) problems.push(`${comparisonPage} differs. Write it with UPDATE_COMPARISON=1, then read the difference.`)
  for (const problem of problems) say(`PROBLEM ${problem}`)
  return {
    ok: problems.length === 0,
    figures: { libraries: contenders.length, programs: contenders.length * programs.length, problems: problems.length },
  }
}
