import { referenceOf } from '@tapetree/agent/models'
import { harmlessLine } from '../text/harmless.ts'
import { openStore } from '../host/open-store.ts'
import { surroundingsOf } from '../host/surroundings.ts'
import type { Io } from '../command-line/io.ts'
import { placesOf } from '../host/places.ts'

const maxSessions = 200

/** One word per line, with its description after a tab. On failure prints nothing, because a shell waits for it. */
export async function completionWords(kind: string, io: Io): Promise<string> {
  const words = await wordsOf(kind, io).catch(() => [])
  return words.map(([word, about]) => `${word}\t${harmlessLine(about)}\n`).join('')
}

async function wordsOf(kind: string, io: Io): Promise<[word: string, about: string][]> {
  if (kind === 'session') {
    const store = await openStore(placesOf(io))
    const { sessions } = await store.list({ limit: maxSessions })
    await store.close()
    return sessions.map(({ id, name, firstText = '' }) => [id, name || firstText])
  }
  const { registry } = await surroundingsOf(io, { cwd: io.cwd })
  if (kind === 'provider') return registry.providers.map(({ id, name }) => [id, name])
  return (await registry.list()).map((model) => [referenceOf(model), model.name])
}
