import { createHash } from 'node:crypto'
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import type { FigureContext, FigureResult } from '../../scripts/figure/figure.ts'
import { databaseCopies } from '../../packages/cli/src/import/opencode-rows.ts'
import { randomFrom } from '@tapetree/session/testing'
import { checkGrowth, checkImport, checkPrefix, entriesOf } from './import/check-import.ts'
import { goOn, strictProvider, successors } from './import/go-on.ts'
import { measureMany } from './import/many-sessions.ts'
import { inAllReaders, readerMutants } from './import/mutants.ts'
import { layOut, specimensIn, type Specimen } from './import/specimens.ts'
import { totalsOf } from './import/totals.ts'
import { vary } from './import/vary.ts'
import { catchMutant, caughtLine } from './mutants/catch-mutant.ts'
import { Draw } from './providers/draw.ts'

export const name = 'import'
export const claim =
  'Sessions of other programs are imported without loss, as often as you like, and every provider accepts what follows.'
export const sizes = { ci: { variations: 150 }, full: { variations: 3000 } }

const maxShown = 20
/** Only at size full: they are imported one by one. */
const manySessions = 100_000

/**
 * Imports what other programs have written, as it is and varied at random: what every line says is in the session or in the report, a second
 * import adds nothing, a part and then the whole is the whole, and a strict provider accepts the next request. Faults that are added to the
 * importer must show. `IMPORT_CASE` repeats one variation. At size full, it also lists and searches as many sessions as `bench list` has.
 */
export async function run(context: FigureContext): Promise<FigureResult> {
  const { size, seed, say, temporaryFolder } = context
  const home = await temporaryFolder()
  await layOut(home)
  const before = digestOf(home)
  await using _copies = databaseCopies
  await using fake = await strictProvider()
  const specimens = await specimensIn(home)
  const problems: string[] = []
  const complain = (problem: string): void => {
    problems.push(problem)
    if (problems.length <= maxShown) say(`PROBLEM: ${problem.slice(0, 600)}`)
  }
  const figures = { specimens: specimens.length, lines: 0, variations: 0, continued: 0, mutants: 0, missed: 0 }

  const playSpecimens = async (): Promise<string[]> => {
    const found: string[] = []
    for (const specimen of specimens)
      found.push(...(await checkSpecimen(specimen)).map((each) => `${specimen.source}: ${each}`))
    return found
  }
  for (const problem of await playSpecimens()) complain(problem)
  for (const specimen of specimens) {
    for (const subject of successors) {
      const { store, result } = await checkImport(specimen, specimen.lines)
      for (const problem of await goOn({ store, id: result.id }, subject, fake))
        complain(`${specimen.source}: ${problem}`)
      figures.continued += 1
    }
  }
  say(`${specimens.length} recordings, continued with ${successors.length} models each`)

  const chosen = process.env['IMPORT_CASE']
  const cases =
    chosen === undefined
      ? Array.from({ length: sizes[size].variations }, (_, each) => seed * 1_000_003 + each)
      : [Number(chosen)]
  for (const each of cases) {
    const draw = new Draw(randomFrom(each))
    const specimen = draw.pick(specimens)
    const { lines, names } = vary(specimen.lines, draw)
    const tell = (problem: string): void =>
      complain(`IMPORT_CASE=${each} ${specimen.source}, ${names.join(' and ')}: ${problem}`)
    try {
      const { problems: found, store, result } = await checkImport(specimen, lines)
      found.push(...(await checkPrefix(specimen, lines, draw.integer(0, lines.length))))
      if (result.outcome !== 'empty' && draw.chance(0.3)) {
        found.push(...(await goOn({ store, id: result.id }, draw.pick(successors), fake)))
        figures.continued += 1
      }
      for (const problem of found) tell(problem)
    } catch (error) {
      tell(`it failed: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`)
    }
    fake.requests.length = 0
    figures.lines += lines.length
    figures.variations += 1
    if (figures.variations % 2000 === 0) say(`${figures.variations} variations, ${problems.length} problems`)
  }

  for (const [mutant, change] of Object.entries(readerMutants)) {
    const caught = await catchMutant(inAllReaders(change), async () => ({ problems: await playSpecimens() }))
    say(caughtLine(mutant, caught))
    figures.mutants += 1
    if (!caught) figures.missed += 1
  }
  if (figures.missed > 0) complain(`${figures.missed} added faults were not found`)
  if (digestOf(home) !== before) complain('the files of the other programs were changed')
  const many = size === 'full' && chosen === undefined ? await measureMany(manySessions, context) : undefined
  for (const problem of many?.problems ?? []) complain(problem)
  return { ok: problems.length === 0, figures: { ...figures, ...many?.figures, problems: problems.length } }
}

/** A recording as it is: also its totals and times are known. */
async function checkSpecimen(specimen: Specimen): Promise<string[]> {
  try {
    const { problems, store, result } = await checkImport(specimen, specimen.lines)
    if (result.outcome === 'empty') return [...problems, 'it is empty']
    for (const count of [1, 5, 9, specimen.lines.length - 1].map((each) => Math.min(each, specimen.lines.length))) {
      problems.push(...(await checkPrefix(specimen, specimen.lines, count)))
    }
    if (specimen.source === 'opencode') problems.push(...(await checkGrowth(specimen)))
    await using session = await store.open(result.id)
    const expected = totalsOf(specimen.source, specimen.lines)
    const { tokens, cost } = session.totals
    if (tokens !== expected.tokens || Math.abs(cost - expected.cost) > 1e-9) {
      problems.push(`its totals are ${tokens} tokens and $${cost}, not ${expected.tokens} and $${expected.cost}`)
    }
    const times = new Set(timesIn(specimen.lines))
    for (const { timestamp, type } of await entriesOf(session)) {
      if (!times.has(Date.parse(timestamp)))
        problems.push(`a ${type} has the time ${timestamp}, which is nowhere in the source`)
    }
    const { cwd } = specimen.found.session
    if (cwd !== '/home/user/project' || session.header?.cwd !== cwd)
      problems.push(`its folder is ${session.header?.cwd}`)
    return problems
  } catch (error) {
    return [error instanceof Error ? error.message : String(error)]
  }
}

function timesIn(lines: readonly string[]): number[] {
  return lines.flatMap((line) => [
    ...[...line.matchAll(/"(\d{4}-\d\d-\d\dT[\d:.]+Z)"/g)].map(([, time = '']) => Date.parse(time)),
    ...[...line.matchAll(/\b(1[789]\d{11})\b/g)].map(([, ms]) => Number(ms)),
  ])
}

/** Of all files, with their names. */
function digestOf(folder: string): string {
  const hash = createHash('sha256')
  for (const path of readdirSync(folder, { recursive: true, encoding: 'utf8' }).sort()) {
    const whole = join(folder, path)
    hash.update(path)
    if (statSync(whole).isFile()) hash.update(readFileSync(whole))
  }
  return hash.digest('hex')
}
