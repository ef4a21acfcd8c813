import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { isDeepStrictEqual } from 'node:util'
import { checksum } from '@tapetree/session/format'
import { openFileStore } from '@tapetree/session/stores/file'

/** Derived files that do not say what the sessions say, after somebody has written them again. */
export async function wrongFiles(folder: string, ids: readonly string[]): Promise<string[]> {
  const problems: string[] = []
  const store = openFileStore({ folder })
  for (const id of ids) {
    await using session = await store.open(id, { readOnly: true })
    const { head, info } = session
    const wrong = (file: string): void => void problems.push(`${id}/${file} is not right again`)
    const [sum, body = ''] = readFileSync(join(folder, id, 'checkpoint.json'), 'utf8').split('\n')
    if (sum !== checksum(body) || (JSON.parse(body) as { seq: number }).seq !== head.seq) wrong('checkpoint.json')
    const metadata = readJson(join(folder, id, 'metadata.json'))
    const { path: _, ...row } = info
    if (!isDeepStrictEqual({ ...metadata, ...row }, metadata) || metadata['seq'] !== head.seq) wrong('metadata.json')
    const { messages } = readJson(join(folder, id, 'queue.json'))
    if (!isDeepStrictEqual(messages, await store.queue(id).list())) wrong('queue.json')
  }
  await store.close()
  return problems
}

function readJson(path: string): Record<string, unknown> {
  return JSON.parse(readFileSync(path, 'utf8')) as Record<string, unknown>
}

/** Whether SQLite finds nothing wrong with a database. */
export function isIntact(file: string): boolean {
  const db = new DatabaseSync(file, { readOnly: true })
  try {
    return db.prepare('PRAGMA integrity_check').get()?.['integrity_check'] === 'ok'
  } finally {
    db.close()
  }
}
