import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { History } from './history.ts'

let folder: string

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'tapetree-history-'))
})

afterAll(() => rm(folder, { recursive: true }))

test('history is restored, and other users cannot read it', async () => {
  const file = join(folder, 'state', 'history.jsonl')
  const history = new History(file)
  await history.add('one\ntwo')
  await history.add('one\ntwo')
  await history.add('three')
  expect((await stat(file)).mode & 0o777).toBe(0o600)
  const again = new History(file)
  again.load()
  expect(again.entries).toEqual(['one\ntwo', 'three'])
})

test('a torn line loses only itself', async () => {
  const file = join(folder, 'torn.jsonl')
  await writeFile(file, '"whole"\n"tor\n7\n"last"\n')
  const history = new History(file)
  history.load()
  expect(history.entries).toEqual(['whole', 'last'])
})

test('the file stays bounded', async () => {
  const file = join(folder, 'long.jsonl')
  await writeFile(file, Array.from({ length: 2000 }, (_, index) => `"old ${index}"\n`).join(''))
  const history = new History(file)
  history.load()
  await history.add('new')
  const lines = (await readFile(file, 'utf8')).trimEnd().split('\n')
  expect([lines.length, lines.at(-1), history.entries.length]).toEqual([1000, '"new"', 1000])
})

test('entries of other terminals stay when the file is shortened', async () => {
  const file = join(folder, 'shared.jsonl')
  await writeFile(file, Array.from({ length: 1990 }, (_, index) => `"old ${index}"\n`).join(''))
  const terminals = [new History(file), new History(file), new History(file)]
  for (const terminal of terminals) terminal.load()
  const typed = Array.from({ length: 60 }, (_, index) => `typed ${index}`)
  await Promise.all(typed.map(async (text, index) => terminals[index % terminals.length]?.add(text)))
  const next = new History(file)
  next.load()
  expect(next.entries.filter((text) => text.startsWith('typed')).sort()).toEqual(typed.sort())
  expect(next.entries.length).toBeLessThanOrEqual(1000)
})
