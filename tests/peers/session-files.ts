import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import type { FakeHome } from '../../packages/cli/src/testing/fake-home.ts'

type Home = Pick<FakeHome, 'env'>

export function sessionsFolder({ env }: Home): string {
  return join(env['TAPETREE_HOME'] ?? '', 'sessions')
}

/** The folder of the only session there is. */
export async function sessionFolder(home: Home): Promise<string> {
  const names = (await readdir(sessionsFolder(home))).filter((name) => /^[\w-]+$/.test(name))
  if (names.length !== 1) throw new Error(`There should be one session, and there are ${names.length}: ${names.join()}`)
  return join(sessionsFolder(home), names[0] ?? '')
}

/** The lines of its log, as they stand on disk. */
export async function logLines(home: Home): Promise<string[]> {
  const text = await readFile(join(await sessionFolder(home), 'events.jsonl'), 'utf8')
  return text.split('\n').filter(Boolean)
}

/** Resolves when a file of the session has these words in it: they are durable then, whatever a screen shows. */
export async function untilWritten(home: Home, file: 'events.jsonl' | 'draft.jsonl', words: string): Promise<void> {
  await until(`${words} in ${file}`, async () => {
    const folder = await sessionFolder(home)
    return (await readFile(join(folder, file), 'utf8')).includes(words)
  })
}

export async function untilThere(path: string): Promise<void> {
  await until(path, async () => {
    await readFile(path)
    return true
  })
}

/** Other processes write these files and tell nobody: so it is looked at, again and again. */
async function until(what: string, isSo: () => Promise<boolean>): Promise<void> {
  for (const end = Date.now() + 20_000; Date.now() < end; await pause(20)) {
    if (await isSo().catch(() => false)) return
  }
  throw new Error(`It did not come: ${what}`)
}
