import { DatabaseSync } from 'node:sqlite'
import { readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { SessionStore, text } from '@tapetree/session'
import type { LogStore } from '@tapetree/session/log-store'
import { FileLogStore, nodeFilePort, type FilePort, type FileStoreOptions } from '@tapetree/session/stores/file'
import { indexFileIn } from '../../../packages/session/src/stores/file/session-index/index-db.ts'
import { SessionIndex } from '../../../packages/session/src/stores/file/session-index/session-index.ts'
import { filesWith } from './canary.ts'

interface Mutant {
  port?: (port: FilePort) => Partial<FilePort>
  /** Replaces the purge of the index; returns what has to be closed later. */
  purge?: (file: string) => DatabaseSync | undefined
  erase?: (logs: LogStore, erase: LogStore['erase']) => LogStore['erase']
}

const clear = `
  DELETE FROM log; DELETE FROM batch; DELETE FROM term; INSERT INTO text (text) VALUES ('delete-all');
`

/** Ways to erase that look right and leave something. The first one is the real one. */
const mutants: Record<string, Mutant> = {
  none: {},
  'the index is forgotten': { purge: () => undefined },
  'rows are deleted, but not overwritten': {
    purge: (file) => {
      const db = new DatabaseSync(file)
      db.exec(`PRAGMA secure_delete = OFF; BEGIN; ${clear} COMMIT`)
      db.close()
      return undefined
    },
  },
  'rows are overwritten, but the write-ahead log is not checkpointed': {
    purge: (file) => {
      const db = new DatabaseSync(file)
      db.exec(
        `PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0; PRAGMA secure_delete = ON; BEGIN; ${clear} COMMIT`,
      )
      return db
    },
  },
  'blobs are forgotten': {
    port: () => ({
      remove: (path) => {
        if (!path.includes('.erasing')) return rmSync(path, { recursive: true, force: true })
        for (const name of readdirSync(path)) if (name !== 'blobs') rmSync(join(path, name), { recursive: true })
      },
    }),
  },
  'the hidden folder is forgotten': {
    port: (port) => ({ remove: (path) => (path.includes('.erasing') ? undefined : port.remove(path)) }),
  },
  'the session is only moved to the trash': { erase: (logs) => (scope, id) => logs.move(scope, id, 'trash') },
  'a session in the trash is forgotten': {
    erase: (logs, erase) => async (scope, id) =>
      (await logs.placeOf(scope, id)) === 'trash' ? undefined : erase(scope, id),
  },
}

/** Plays one story with each mutant and returns those whose leftovers were not found; or 'none' if the real one left any. */
export async function survivingMutants(folderFor: () => Promise<string>, canary: string): Promise<string[]> {
  const surviving: string[] = []
  for (const [name, mutant] of Object.entries(mutants)) {
    const leaves = await leftBy(mutant, await folderFor(), canary)
    if (leaves !== (name !== 'none')) surviving.push(name)
  }
  return surviving
}

export const mutantCount = Object.keys(mutants).length - 1

async function leftBy(mutant: Mutant, folder: string, canary: string): Promise<boolean> {
  const real = nodeFilePort()
  const file = indexFileIn(folder)
  const index = new SessionIndex({ file })
  let open: DatabaseSync | undefined
  const { purge } = mutant
  if (purge) index.purge = async () => void (open = purge(file))
  const options: FileStoreOptions = { folder, port: { ...real, ...mutant.port?.(real) }, index }
  const logs = new FileLogStore(options)
  const erase = logs.erase.bind(logs)
  logs.erase = mutant.erase?.(logs, erase) ?? erase
  const store = new SessionStore(logs, options)
  const session = await store.create({ name: `About ${canary}` })
  await session.appendMessage('user', [text(`Remember ${canary}`), text(`${'x'.repeat(250_000)} ${canary}`)])
  await session.putBlob(Buffer.from(canary))
  await session.close()
  await store.search({ text: canary })
  await store.list()
  await store.delete(session.id)
  await store.list({ place: 'trash' })
  await store.search({ text: canary })
  await store.erase(session.id)
  const found = filesWith(folder, [canary])
  open?.close()
  await store.close()
  return found.length > 0
}
