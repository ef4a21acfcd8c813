import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { localScope, SessionStore, type Session, type SessionStoreOptions } from '@tapetree/session'
import { MemoryLogStore, type WritableLog } from '@tapetree/session/log-store'
import { openFileStore } from '@tapetree/session/stores/file'
import { describe, onTestFinished } from 'vitest'
import { temporaryFolder } from './temporary-folder.ts'

/** Where sessions are kept for the length of one test. */
export interface Place {
  /** A store on this place: a second one stands for a later process. */
  store: (options?: SessionStoreOptions) => SessionStore
  /** A session that consists of these lines, just as they stand. */
  load: (lines: readonly string[]) => Promise<Session>
}

/** Runs the scenarios in memory and in files. */
export function inEveryStore(scenarios: (place: () => Place) => void): void {
  describe('in memory', () => {
    scenarios(memoryPlace)
  })
  describe('in files', () => {
    scenarios(() => filePlace(temporaryFolder()))
  })
}

export function filePlace(folder: string): Place {
  const store = (options: SessionStoreOptions = {}): SessionStore => closing(openFileStore({ ...options, folder }))
  return {
    store,
    load: async (lines) => {
      const path = join(folder, 'elsewhere', 'loaded.jsonl')
      mkdirSync(join(folder, 'elsewhere'), { recursive: true })
      writeFileSync(path, lines.map((line) => `${line}\n`).join(''))
      return closing(await store().load(path))
    },
  }
}

function memoryPlace(): Place {
  const port = new MemoryLogStore()
  const store = (options?: SessionStoreOptions): SessionStore => closing(new SessionStore(port, options))
  return {
    store,
    load: async ([header = '', ...body]) => {
      const asIs = (text: string): { seq: number; crc: string; text: string } => ({ seq: 0, crc: '', text })
      await port.create(localScope, 'loaded', asIs(header))
      const claim = await port.claim(localScope, 'loaded')
      const { log } = claim as { log: WritableLog }
      await log.append(body.map(asIs), { term: log.term ?? 1, head: 1, durability: 'durable' })
      await log.close()
      return store().load('loaded')
    },
  }
}

function closing<T extends { close(): Promise<void> }>(closable: T): T {
  onTestFinished(() => closable.close())
  return closable
}
