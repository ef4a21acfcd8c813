import { systemClock } from '@tapetree/agent/run'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { Pairing } from './pairing.ts'
import { DatabaseDocument, type DocumentTable } from './shared-document.ts'
import { TokenStore } from './token-store.ts'

let closing = new AbortController()
afterEach(() => {
  closing.abort()
  closing = new AbortController()
})

/** A table with one document, in which another process writes `between` the read and the write of the next change. */
class FakeTable implements DocumentTable {
  row: { version: number; content: string } | undefined
  between: (() => Promise<unknown>) | undefined

  async read(): Promise<{ version: number; content: string } | undefined> {
    return this.row
  }

  async write(content: string, version: number): Promise<boolean> {
    const { between } = this
    this.between = undefined
    await between?.()
    if ((this.row?.version ?? 0) !== version) return false
    this.row = { version: version + 1, content }
    return true
  }
}

const open = (table: DocumentTable, name = 'tokens'): Promise<DatabaseDocument> =>
  DatabaseDocument.open({ name, table, clock: systemClock, closing: closing.signal })

describe('a document in a database', () => {
  test('keeps the changes of several processes, also of concurrent ones', async () => {
    const table = new FakeTable()
    const [left, right] = [await open(table), await open(table)]
    const add = (document: DatabaseDocument, word: string): Promise<void> =>
      document.change((content) => [...(content === undefined ? [] : [content]), word].join(' '))
    await add(left, 'one')
    table.between = () => add(right, 'two')
    await add(left, 'three')
    expect(left.content()).toBe('one two three')
    await vi.waitFor(() => expect(right.content()).toBe('one two three'), { timeout: 20_000 })
    expect(right.version()).toBe(left.version())
  })

  test('is not written if nothing changes', async () => {
    const table = new FakeTable()
    await (await open(table)).change(() => undefined)
    expect(table.row).toBeUndefined()
  })
})

describe('servers that share their tokens', () => {
  test('accept each other’s tokens, and drop those that another one has revoked', async () => {
    const table = new FakeTable()
    const [left, right] = [
      await TokenStore.open({ file: await open(table), first: null }),
      await TokenStore.open({ file: await open(table), first: null }),
    ]
    const { token, record } = await left.create({ tenant: 'default', role: 'drive' })
    await vi.waitFor(() => expect(right.verify(token)).toMatchObject({ id: record.id }), { timeout: 20_000 })
    const revoked: string[] = []
    left.onRevoked((id) => revoked.push(id))
    expect(await right.revoke(record.id, 'default')).toBe(true)
    await vi.waitFor(() => expect(left.verify(token)).toBeUndefined(), { timeout: 20_000 })
    expect(revoked).toEqual([record.id])
  })

  test('exchange a code of another one, and only once', async () => {
    const [tokenTable, codeTable] = [new FakeTable(), new FakeTable()]
    const server = async (): Promise<Pairing> =>
      new Pairing(
        await TokenStore.open({ file: await open(tokenTable), first: null }),
        systemClock,
        await open(codeTable, 'pairing'),
      )
    const [left, right] = [await server(), await server()]
    const { code } = left.begin({ tenant: 'default', role: 'view' })
    await vi.waitFor(() => expect(right.preview(code)).toMatchObject({ role: 'view' }), { timeout: 20_000 })
    const exchanged = await Promise.all([left.exchange(code), right.exchange(code), right.exchange(code)])
    expect(exchanged.map(({ type }) => type).toSorted()).toEqual(['paired', 'unknown', 'unknown'])
    expect((await left.exchange(code)).type).toBe('unknown')
  })

  test('exchange a code that was just made, before it is in the database', async () => {
    const codeTable = new FakeTable()
    const slow = Promise.withResolvers<void>()
    codeTable.between = () => slow.promise
    const pairing = new Pairing(
      await TokenStore.open({ file: await open(new FakeTable()), first: null }),
      systemClock,
      await open(codeTable, 'pairing'),
    )
    const { code } = pairing.begin({ tenant: 'default', role: 'view' })
    const both = Promise.all([pairing.exchange(code), pairing.exchange(code)])
    slow.resolve()
    expect((await both).map(({ type }) => type).toSorted()).toEqual(['paired', 'unknown'])
  })
})
