import { existsSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { openFileStore } from '@tapetree/session/stores/file'
import type { FigureContext, FigureResult } from '../../scripts/figure/figure.ts'
import { fillStore, moveOn, peekAhead } from './rebuild/fill-store.ts'
import { whatItSays } from './rebuild/what-it-says.ts'
import { ways } from './rebuild/ways.ts'
import { isIntact, wrongFiles } from './rebuild/wrong-files.ts'

export const name = 'rebuild'
export const claim =
  'Indexes, checkpoints and other derived files can be deleted or damaged; they are rebuilt identically.'
export const sizes = { ci: { sessions: 1 }, full: { sessions: Infinity } }

/** Every derived file is harmed in every way; what a user sees stays the same, and the file is right again after a write. */
export async function run(context: FigureContext): Promise<FigureResult> {
  const [folder, older, newer] = [
    await context.temporaryFolder(),
    await context.temporaryFolder(),
    await context.temporaryFolder(),
  ]
  const ids = await fillStore(folder)
  await moveOn(folder, older, ids)
  await peekAhead(folder, newer, ids)
  const expected = await whatItSays(folder, ids)
  const files = derivedFilesIn(folder)
  // The files of one session are like those of another.
  const harmed = files.filter((file) => sizes[context.size].sessions === Infinity || !/^(second|third)\//.test(file))
  context.say(`${harmed.length} derived files, ${ways.length} ways: ${ways.map(({ title }) => title).join(', ')}`)
  const problems: string[] = []
  const figures = { files: harmed.length, ways: ways.length, tries: 0, searchesThatMissed: 0, indexesLeftHarmed: 0 }
  for (const file of harmed) {
    for (const way of ways) {
      figures.tries++
      const problem = (what: string): void => void problems.push(`${file}, ${way.title}: ${what}`)
      // A journal is there only now and then.
      if (!isFile(join(folder, file))) writeFileSync(join(folder, file), 'left over')
      way.harm({
        file: join(folder, file),
        older: join(older, file),
        newer: join(newer, file),
        random: context.random,
        others: files.map((each) => join(folder, each)),
      })
      const said = await whatItSays(folder, ids).catch((error: Error) => ({ shown: error.message, found: 0 }))
      if (said.shown !== expected.shown) problem('what is shown changed')
      const mayMiss = isIndex(file) && way.isSubtle
      if (said.found !== expected.found && !mayMiss) problem('a search finds something else')
      if (said.found !== expected.found) figures.searchesThatMissed++
      await writeAgain(folder, ids)
      if (!isFile(join(folder, file)) && !file.endsWith('-journal')) problem('the file did not come back')
      for (const wrong of await wrongFiles(folder, ids)) problem(wrong)
      const index = files.find(isIndex) ?? ''
      if (isIntact(join(folder, index))) continue
      if (mayMiss) figures.indexesLeftHarmed++
      else problem('the index is not intact again')
      rmSync(join(folder, index))
    }
  }
  for (const each of problems.slice(0, 20)) context.say(`FAILED ${each}`)
  context.say(`${figures.tries} times harmed, ${problems.length} problems`)
  // SQLite does not notice every changed byte of its full-text index; the rows of the list are sealed.
  const { searchesThatMissed, indexesLeftHarmed } = figures
  context.say(
    `bytes changed inside the index: ${searchesThatMissed} searches missed something, ${indexesLeftHarmed} went unnoticed`,
  )
  return { ok: problems.length === 0, figures: { ...figures, problems: problems.length } }
}

function isIndex(file: string): boolean {
  return /^index-\d+\.sqlite$/.test(file)
}

/** Everything below the root that is no log, no blob and no lock: found by looking, so that a new one is not forgotten. */
function derivedFilesIn(folder: string): string[] {
  const kept = /(^|\/)(events\.jsonl|lock|blobs\/[0-9a-f]{64})$/
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((path) => isFile(join(folder, path)) && !kept.test(path))
    .toSorted()
}

/** What the next user of the store does: writes, lists, searches. */
async function writeAgain(folder: string, ids: readonly string[]): Promise<void> {
  const store = openFileStore({ folder })
  for (const id of ids) {
    const session = await store.open(id)
    await session.saveDerived()
    await session.close()
  }
  await store.list()
  await store.search({ text: 'words' })
  await store.close()
}

function isFile(path: string): boolean {
  return existsSync(path) && statSync(path).isFile()
}
