import { existsSync, readdirSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { openFileStore } from '@tapetree/session/stores/file'
import type { FigureContext, FigureResult } from '../../scripts/figure/figure.ts'
import { fillStore, moveOn, peekAhead } from './rebuild/fill-store.ts'
import { whatItSays } from './rebuild/what-it-says.ts'
import { ways } from './rebuild/ways.ts'
import { wrongFiles } from './rebuild/wrong-files.ts'

export const name = 'rebuild'

/** Every derived file is harmed in every way; what a user sees stays the same, and the file comes back. */
export async function run(context: FigureContext): Promise<FigureResult> {
  const folder = await context.temporaryFolder()
  const older = await context.temporaryFolder()
  const newer = await context.temporaryFolder()
  const ids = await fillStore(folder)
  await moveOn(folder, older, ids)
  await peekAhead(folder, newer, ids)
  const expected = await whatItSays(folder, ids)
  const files = derivedFilesIn(folder)
  const index = files.find((file) => /^index-\d+\.sqlite$/.test(file)) ?? 'index'
  context.say(`${files.length} derived files, ${ways.length} ways: ${ways.map(({ title }) => title).join(', ')}`)
  const problems: string[] = []
  let tries = 0
  for (const file of files) {
    for (const way of ways) {
      tries++
      // A journal is there only now and then.
      if (!isFile(join(folder, file))) writeFileSync(join(folder, file), 'left over')
      way.harm({
        file: join(folder, file),
        older: join(older, file),
        newer: join(newer, file),
        random: context.random,
        others: files.map((each) => join(folder, each)),
      })
      const where = `${file}, ${way.title}`
      try {
        const said = await whatItSays(folder, ids)
        if (said !== expected) problems.push(`${where}: what is shown changed`)
      } catch (error) {
        problems.push(`${where}: ${(error as Error).message}`)
      }
      await writeAgain(folder, ids)
      if (!isFile(join(folder, file)) && !file.endsWith('-journal'))
        problems.push(`${where}: the file did not come back`)
      for (const wrong of await wrongFiles(folder, ids, index)) problems.push(`${where}: ${wrong}`)
    }
  }
  for (const problem of problems.slice(0, 20)) context.say(problem)
  context.say(`${tries} times harmed, ${problems.length} problems`)
  return {
    ok: problems.length === 0,
    figures: { files: files.length, ways: ways.length, tries, problems: problems.length },
  }
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
