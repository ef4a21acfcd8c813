import { describe, expect, test } from 'vitest'
import { indexedDbStorage, type IndexedDb } from './indexed-db-storage.ts'
import type { SentCommand } from './unacknowledged.ts'

const command = (id: string): SentCommand => ({ id, op: 'prompt', args: { text: id } })

describe('commands in IndexedDB', () => {
  test('survive a reload, for each session in the order they were added', async () => {
    const indexedDb = new SmallIndexedDb()
    const before = indexedDbStorage({ indexedDb })
    await before.add('s', command('b'))
    await before.add('t', command('other'))
    await before.add('s', command('a'))
    await before.add('s', command('c'))
    await before.remove('s', 'a')
    await before.remove('s', 'never-there')
    const after = indexedDbStorage({ indexedDb })
    expect(await after.load('s')).toEqual([command('b'), command('c')])
    expect(await after.load('t')).toEqual([command('other')])
  })

  test('cannot be stored without IndexedDB', async () => {
    await expect(indexedDbStorage().add('s', command('a'))).rejects.toThrow('IndexedDB is not available')
  })
})

type Row = Record<string, unknown>

/** The part of IndexedDB that the storage uses; it answers asynchronously like the real one. */
class SmallIndexedDb implements IndexedDb {
  readonly #rows = new Map<number, Row>()
  readonly #indexes = new Map<string, string>()
  #lastKey = 0
  #isNew = true

  open(): unknown {
    const request = new Telling()
    request.result = this.#database()
    queueMicrotask(() => {
      if (this.#isNew) request.tell('upgradeneeded')
      this.#isNew = false
      request.tell('success')
    })
    return request
  }

  #database(): unknown {
    const createIndex = (name: string, path: string): void => void this.#indexes.set(name, path)
    return { createObjectStore: () => ({ createIndex }), transaction: () => this.#transaction() }
  }

  #transaction(): unknown {
    const transaction = Object.assign(new Telling(), { objectStore: () => this.#store() })
    setImmediate(() => transaction.tell('complete'))
    return transaction
  }

  #store(): unknown {
    return {
      add: (row: Row) => void this.#rows.set(++this.#lastKey, structuredClone(row)),
      delete: (key: number) => void this.#rows.delete(key),
      index: (name: string) => {
        const path = this.#indexes.get(name) ?? ''
        const found = (value: string): [number, Row][] => [...this.#rows].filter(([, row]) => row[path] === value)
        return {
          getAll: (value: string) => answer(() => found(value).map(([, row]) => row)),
          getKey: (value: string) => answer(() => found(value)[0]?.[0]),
        }
      },
    }
  }
}

class Telling {
  result: unknown
  readonly error = null
  readonly #listeners = new Map<string, () => void>()

  addEventListener(type: string, listener: () => void): void {
    this.#listeners.set(type, listener)
  }

  tell(type: string): void {
    this.#listeners.get(type)?.()
  }
}

function answer(result: () => unknown): Telling {
  const request = new Telling()
  queueMicrotask(() => {
    request.result = result()
    request.tell('success')
  })
  return request
}
