import type { CommandStorage, SentCommand } from './unacknowledged.ts'

/** The part of IndexedDB that is used; this package also compiles without browser types. */
interface Database {
  createObjectStore(
    name: string,
    options: { autoIncrement: true },
  ): { createIndex(name: string, path: string): unknown }
  transaction(store: string, mode: 'readonly' | 'readwrite'): Transaction
  close(): void
}
interface Transaction extends Listened {
  readonly error: unknown
  objectStore(name: string): ObjectStore
}
interface ObjectStore {
  add(value: Kept): unknown
  delete(key: unknown): unknown
  index(name: string): {
    getAll(key: string): Request<Kept[]>
    getKey(key: string): Request<unknown>
  }
}
interface Request<T> extends Listened {
  readonly result: T
  readonly error: unknown
}
interface Listened {
  addEventListener(type: string, listener: () => void): void
}
export interface IndexedDb {
  open(name: string, version: number): unknown
}

interface Kept {
  sessionId: string
  commandId: string
  command: SentCommand
}

const store = 'unacknowledged'

/** Stores commands across reloads, for all tabs of an origin. */
export function indexedDbStorage(options: { name?: string; indexedDb?: IndexedDb } = {}): CommandStorage {
  const { name = 'tapetree', indexedDb = (globalThis as { indexedDB?: IndexedDb }).indexedDB } = options
  let opened: Promise<Database> | undefined

  async function write(change: (kept: ObjectStore) => void): Promise<void> {
    const transaction = (await open()).transaction(store, 'readwrite')
    change(transaction.objectStore(store))
    await completed(transaction)
  }

  async function open(): Promise<Database> {
    if (!indexedDb) throw new Error('IndexedDB is not available.')
    opened ??= openDatabase(indexedDb, name)
    return opened
  }

  return {
    load: async (sessionId) => {
      const kept = (await open()).transaction(store, 'readonly').objectStore(store)
      const all = await answered(kept.index('session').getAll(sessionId))
      return all.map(({ command }) => command)
    },
    add: async (sessionId, command) => write((kept) => kept.add({ sessionId, commandId: command.id, command })),
    remove: async (_, commandId) =>
      write((kept) => {
        const request = kept.index('command').getKey(commandId)
        request.addEventListener('success', () => {
          if (request.result !== undefined) kept.delete(request.result)
        })
      }),
  }
}

async function openDatabase(indexedDb: IndexedDb, name: string): Promise<Database> {
  const request = indexedDb.open(name, 1) as Request<Database>
  request.addEventListener('upgradeneeded', () => {
    // Auto-incremented keys keep commands in the order they were added.
    const kept = request.result.createObjectStore(store, { autoIncrement: true })
    kept.createIndex('session', 'sessionId')
    kept.createIndex('command', 'commandId')
  })
  return answered(request)
}

async function answered<T>(request: Request<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    request.addEventListener('success', () => resolve(request.result))
    request.addEventListener('error', () => reject(request.error))
  })
}

async function completed(transaction: Transaction): Promise<void> {
  return new Promise((resolve, reject) => {
    transaction.addEventListener('complete', () => resolve())
    transaction.addEventListener('error', () => reject(transaction.error))
    transaction.addEventListener('abort', () => reject(transaction.error))
  })
}
