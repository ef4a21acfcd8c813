import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { IndexFile } from './index-file.ts'
import { Slices } from './slices.ts'

let folder: string
let path: string
let slices: Slices
let index: IndexFile

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'tapetree-index-file-'))
  path = join(folder, 'index.db')
  slices = new Slices()
  index = new IndexFile(path, slices)
})

afterEach(() => {
  index.close()
  rmSync(folder, { recursive: true })
})

const use = (): Promise<number | undefined> =>
  index.use({ folder, kind: 'list' }, (part) => Promise.resolve(part?.source))

test('an index that does not exist is removed without rows', async () => {
  expect(await index.remove()).toEqual(new Map())
  expect(existsSync(path)).toBe(false)
})

test('a broken index is removed without rows, open or not', async () => {
  await use()
  writeFileSync(path, 'not a database')
  expect(await index.remove()).toEqual(new Map())
  expect(existsSync(path)).toBe(false)
  await use()
  index.close()
  writeFileSync(path, 'not a database')
  expect(await new IndexFile(path, slices).remove()).toEqual(new Map())
  expect(existsSync(path)).toBe(false)
})

test('removing waits for the transaction of another connection', async () => {
  await use()
  const other = new DatabaseSync(path)
  other.exec('BEGIN EXCLUSIVE')
  const removed = index.remove()
  // The first attempt is synchronous and finds the index busy.
  other.exec('ROLLBACK')
  other.close()
  await removed
  expect(existsSync(path)).toBe(false)
})

test('a closed store removes nothing', async () => {
  await use()
  slices.close()
  await expect(index.remove()).rejects.toMatchObject({ code: 'session-closed' })
  expect(existsSync(path)).toBe(true)
})
