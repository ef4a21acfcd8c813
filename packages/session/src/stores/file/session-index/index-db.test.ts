import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { IndexError } from './index-connection.ts'
import { IndexDb, indexFileIn, type Row } from './index-db.ts'
import type { Candidate, Document } from './index-documents.ts'
import { fold, termsOf } from './search-text.ts'

let folder: string
let file: string
const opened: IndexDb[] = []

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'tapetree-index-'))
  file = indexFileIn(folder)
})

afterEach(() => {
  for (const db of opened.splice(0)) db.close()
  rmSync(folder, { recursive: true })
})

function open(): IndexDb {
  const db = IndexDb.open(file)
  opened.push(db)
  return db
}

const anew = { known: undefined, isContinued: false }

function row(id: string, value = '{}'): Row {
  return { id, inode: 2 ** 60, size: 10, mtimeMs: 1.5, modified: '2026-01-01', value }
}

function documents(...texts: string[]): Document[] {
  return texts.map((text, index) => document(index + 1, text))
}

function document(seq: number, text: string, ms = seq * 1000): Document {
  return { seq, at: seq * 100, size: 90, ms, terms: termsOf(fold(text)) }
}

function termsWith(db: IndexDb, source: number, part: string): string[] {
  return [...db.termsWith(source, part)].flat()
}

function found(db: IndexDb, source: number, expression: string): string[] {
  return [...db.candidates(source, expression, Number.MAX_SAFE_INTEGER)].map(({ id, seq }) => `${id} ${seq}`)
}

/** Changes the file behind the index's back. */
function edit(sql: string): void {
  const other = new DatabaseSync(file)
  other.exec(sql)
  other.close()
}

describe('opening', () => {
  test('creates a file that only its owner can read, and companion files with the same mode', () => {
    const before = process.umask(0)
    try {
      open().saveRows(1, [row('a')])
      expect(statSync(file).mode & 0o777).toBe(0o600)
      expect(statSync(`${file}-journal`).mode & 0o777).toBe(0o600)
    } finally {
      process.umask(before)
    }
  })

  test('keeps existing content', () => {
    const first = open()
    first.saveRows(1, [row('a')])
    first.close()
    expect(open().row(1, 'a')).toEqual(row('a'))
  })

  test('fails for a file that is not an index, has another schema, or has no folder', () => {
    writeFileSync(file, 'not a database, and long enough to be looked at: '.repeat(100))
    expect(() => open()).toThrow(IndexError)
    IndexDb.remove(file)
    edit('PRAGMA user_version = 99')
    expect(() => open()).toThrow(IndexError)
    expect(() => IndexDb.open(join(folder, 'none', 'index'))).toThrow(IndexError)
  })

  test('can be rebuilt after removing whatever lies there', () => {
    mkdirSync(file)
    writeFileSync(`${file}-journal`, 'old')
    expect(() => open()).toThrow(IndexError)
    IndexDb.remove(file)
    expect(open().row(1, 'a')).toBeUndefined()
  })

  test('detects a file that was deleted or replaced', () => {
    const db = open()
    expect(db.isInPlace).toBe(true)
    rmSync(file)
    expect(db.isInPlace).toBe(false)
    writeFileSync(`${file}.new`, '')
    writeFileSync(file, '')
    expect(db.isInPlace).toBe(false)
  })

  test('is closed after closing, once or twice', () => {
    const db = open()
    db.close()
    db.close()
    expect(() => db.row(1, 'a')).toThrow(IndexError)
  })
})

describe('an index locked by another connection', () => {
  test('is busy, and reports it quickly', () => {
    const db = open()
    const other = new DatabaseSync(file)
    other.exec('BEGIN EXCLUSIVE')
    const start = performance.now()
    expect(answerOf(() => db.saveRows(1, [row('a')]))).toMatchObject({ isBusy: true })
    expect(answerOf(() => db.row(1, 'a'))).toMatchObject({ isBusy: true })
    expect(answerOf(() => IndexDb.open(file))).toMatchObject({ isBusy: true })
    expect(performance.now() - start).toBeLessThan(1000)
    other.close()
    expect(db.row(1, 'a')).toBeUndefined()
  })
})

describe('sources', () => {
  test('have a number for each folder and kind, and keep it', () => {
    const db = open()
    const numbers = [db.sourceNumber('', 'list'), db.sourceNumber('', 'search'), db.sourceNumber('.trash', 'list')]
    expect(new Set(numbers).size).toBe(3)
    expect(db.sourceNumber('', 'search')).toBe(numbers[1])
  })

  test('do not see the rows and documents of each other', () => {
    const db = open()
    db.addDocuments(1, [{ row: row('a'), ...anew, documents: documents('apple') }])
    expect([db.row(2, 'a'), found(db, 2, '"apple"'), found(db, 1, '"apple"')]).toEqual([undefined, [], ['a 1']])
    expect(termsWith(db, 2, 'app')).toEqual([])
  })
})

describe('rows', () => {
  test('are returned by range, unchanged', () => {
    const db = open()
    db.saveRows(
      1,
      ['a', 'b', 'c', 'd'].map((id) => row(id)),
    )
    db.dropRows(1, ['c'])
    expect([...db.rowsBetween(1, { after: 'a', through: 'd' })]).toEqual([
      ['b', row('b')],
      ['d', row('d')],
    ])
  })

  test.each([
    "value = 'x'",
    "modified = '2030-01-01'",
    'size = 11',
    'inode = 1',
    'mtime_ms = 2',
    'seal = seal + 1',
    'value = NULL',
  ])('that were edited (%s) are ignored', (change) => {
    const db = open()
    db.saveRows(1, [row('a'), row('b')])
    edit(`UPDATE log SET ${change} WHERE id = 'a'`)
    expect([...db.rowsBetween(1, { after: '', through: '~' }).keys()]).toEqual(['b'])
  })
})

test('rows of logs that are gone are not saved', () => {
  const db = open()
  db.saveRows(1, [row('a'), row('b')], ({ id }) => id === 'b')
  expect([...db.rowsBetween(1, { after: '', through: '~' }).keys()]).toEqual(['b'])
})

describe('documents', () => {
  test('are found, newest first, with the position of their line', () => {
    const db = open()
    db.addDocuments(1, [{ row: row('a'), ...anew, documents: documents('apple', 'pear', 'apple pie') }])
    const all: Candidate[] = [...db.candidates(1, '"apple"', Number.MAX_SAFE_INTEGER)]
    expect(all).toEqual([
      { rowid: 3, id: 'a', seq: 3, at: 300, size: 90, ms: 3000, reachMs: 3000 },
      { rowid: 1, id: 'a', seq: 1, at: 100, size: 90, ms: 1000, reachMs: 3000 },
    ])
    expect([...db.candidates(1, '"apple"', 3)]).toEqual([all[1]])
    expect(found(db, 1, '')).toEqual(['a 3', 'a 2', 'a 1'])
  })

  test('may be many in one log', () => {
    const db = open()
    const many = documents(...Array.from({ length: 600 }, (_, index) => `word${index}`))
    db.addDocuments(1, [{ row: row('a'), ...anew, documents: many }])
    expect([found(db, 1, '"word0"'), found(db, 1, '"word599"'), found(db, 1, '')]).toEqual([
      ['a 1'],
      ['a 600'],
      many.map(({ seq }) => `a ${seq}`).reverse(),
    ])
  })

  test('have an upper bound on the age of earlier ones', () => {
    const db = open()
    db.addDocuments(1, [
      { row: row('a'), ...anew, documents: [document(1, 'x', 5000)] },
      { row: row('b'), ...anew, documents: [document(1, 'x', 2000)] },
    ])
    expect([...db.candidates(1, '"x"', 99)].map(({ reachMs }) => reachMs)).toEqual([5000, 5000])
  })

  test('continue a log only from the position that the caller expects', () => {
    const db = open()
    db.addDocuments(1, [{ row: row('a', '1'), ...anew, documents: documents('one') }])
    db.addDocuments(1, [{ row: row('a', '2'), known: '1', isContinued: true, documents: [document(2, 'two')] }])
    db.addDocuments(1, [{ row: row('a', '2'), known: '1', isContinued: true, documents: [document(2, 'two')] }])
    expect([found(db, 1, ''), db.row(1, 'a')?.value]).toEqual([['a 2', 'a 1'], '2'])
  })

  test('are replaced if a log is indexed from the start', () => {
    const db = open()
    db.addDocuments(1, [{ row: row('a', '1'), ...anew, documents: documents('one', 'two') }])
    db.addDocuments(1, [{ row: row('a', '1'), known: '1', isContinued: false, documents: documents('three') }])
    expect([found(db, 1, '"one"'), found(db, 1, '"three"')]).toEqual([[], ['a 1']])
  })

  test('of dropped logs are not found, and are purged when they are the majority', () => {
    const db = open()
    const search = db.sourceNumber('', 'search')
    const many = documents(...Array.from({ length: 10_000 }, () => 'same'))
    db.addDocuments(search, [
      { row: row('a'), ...anew, documents: many },
      { row: row('b'), ...anew, documents: documents('same') },
      { row: row('c'), ...anew, documents: documents('same') },
    ])
    expect(db.dropDocuments(search, ['b'])).toBe(false)
    expect(found(db, search, '"same"')).toHaveLength(10_001)
    expect(db.dropDocuments(search, ['a'])).toBe(true)
    expect([found(db, search, '"same"'), db.row(search, 'c'), termsWith(db, search, 'same')]).toEqual([
      [],
      undefined,
      [],
    ])
    db.addDocuments(search, [{ row: row('c'), ...anew, documents: documents('same') }])
    expect([found(db, search, '"same"'), termsWith(db, search, 'same')]).toEqual([['c 1'], ['same']])
  })

  test('are added all or not at all', () => {
    const db = open()
    const bad = {
      ...document(2, 'two'),
      terms: { words: new Set([Symbol('no word') as never]), pairs: new Set<string>() },
    }
    const addition = { row: row('a'), ...anew, documents: [document(1, 'one'), bad] }
    expect(() => db.addDocuments(1, [addition])).toThrow(IndexError)
    expect([found(db, 1, '"one"'), db.row(1, 'a')]).toEqual([[], undefined])
    db.addDocuments(1, [{ row: row('a'), ...anew, documents: documents('one') }])
    expect(termsWith(db, 1, 'one')).toEqual(['one'])
  })

  test('are not added if the database rolls back by itself', () => {
    const db = open()
    edit(`CREATE TRIGGER refuse BEFORE INSERT ON log BEGIN SELECT RAISE(ROLLBACK, 'no'); END`)
    expect(() => db.addDocuments(1, [{ row: row('a'), ...anew, documents: documents('one') }])).toThrow(IndexError)
    expect(found(db, 1, '"one"')).toEqual([])
  })

  test('cannot be added without the row table', () => {
    const db = open()
    edit('DROP TABLE log')
    const addition = { row: row('a'), ...anew, documents: documents('one') }
    expect(answerOf(() => db.addDocuments(1, [addition]))).toMatchObject({ isBusy: false })
  })

  test('with unreadable positions break the index', () => {
    const db = open()
    db.addDocuments(1, [{ row: row('a'), ...anew, documents: documents('one') }])
    edit(`UPDATE batch SET places = 'x'`)
    expect(() => found(db, 1, '"one"')).toThrow(IndexError)
    edit(`DELETE FROM batch`)
    expect(found(db, 1, '"one"')).toEqual([])
  })

  test('are merged step by step, and completely if many segments have piled up', () => {
    const db = open()
    expect([db.tidy(), db.beginCompacting()]).toEqual([false, false])
    for (let index = 0; index < 20; index++)
      db.addDocuments(1, [{ row: row(`s${index}`), ...anew, documents: documents(`word${index} common`) }])
    expect(db.beginCompacting()).toBe(true)
    while (db.tidy());
    expect(db.beginCompacting()).toBe(false)
    expect([found(db, 1, '"word7"'), found(db, 1, '"common"').length]).toEqual([['s7 1'], 20])
  })
})

describe('words with a part', () => {
  test('are returned shortest first, in batches, with a sign if there are more', () => {
    const db = open()
    const words = Array.from({ length: 600 }, (_, index) => `${'x'.repeat(index % 40)}needle${index}`)
    db.addDocuments(1, [{ row: row('a'), ...anew, documents: documents(words.join(' ')) }])
    const terms = termsWith(db, 1, 'need')
    expect([terms.length, terms[0]]).toEqual([513, 'needle0'])
  })

  test('are searched one range after another', () => {
    const db = open()
    const words = Array.from({ length: 25_000 }, (_, index) => `w${String(index).padStart(5, '0')}`)
    db.addDocuments(1, [{ row: row('a'), ...anew, documents: documents(words.join(' ')) }])
    expect([...db.termsWith(1, '999')]).toHaveLength(2)
    const more = words.map((word) => `x${word}`).join(' ')
    db.addDocuments(1, [{ row: row('b'), ...anew, documents: documents(more) }])
    expect([...db.termsWith(1, 'xw24999')]).toEqual([[], [], ['xw24999']])
    expect(termsWith(db, 1, '999')).toHaveLength(2 * words.filter((word) => word.includes('999')).length)
    expect(termsWith(db, 2, '999')).toEqual([])
    expect(termsWith(db, 1, 'w24999')).toEqual(['w24999', 'xw24999'])
  })
})

test('a write by another connection changes the version', () => {
  const db = open()
  const { version } = db
  db.saveRows(1, [row('a')])
  expect(db.version).toBe(version)
  edit(`DELETE FROM log`)
  expect(db.version).not.toBe(version)
})

test('terms of several sources, and more than the cache holds, are all learned', () => {
  const db = open()
  for (const source of [1, 2, 1])
    db.addDocuments(source, [{ row: row(`s${Math.random()}`), ...anew, documents: documents('same word') }])
  expect([termsWith(db, 1, 'word'), termsWith(db, 2, 'word')]).toEqual([['word'], ['word']])
  const many = Array.from({ length: 200_001 }, (_, index) => `n${index}`).join(' ')
  db.addDocuments(1, [{ row: row('many'), ...anew, documents: documents(many, 'same last') }])
  expect(termsWith(db, 1, 'last')).toEqual(['last'])
})

test('the file name includes the schema', () => {
  expect(indexFileIn('/root')).toBe(join('/root', 'index-1.sqlite'))
})

test('an index that is truncated anywhere fails or answers, and never hangs', () => {
  open().saveRows(
    1,
    Array.from({ length: 100 }, (_, index) => row(`s${index}`, 'x'.repeat(100))),
  )
  const bytes = readFileSync(file)
  for (let size = 0; size < bytes.length; size += 1500) {
    for (const db of opened.splice(0)) db.close()
    writeFileSync(file, bytes.subarray(0, size))
    const answer = answerOf(() => [...open().rowsBetween(1, { after: '', through: '~' }).values()])
    const isRight = Array.isArray(answer) && answer.every((each: Row) => each.value === 'x'.repeat(100))
    expect(isRight || answer instanceof IndexError).toBe(true)
  }
})

/** The result of the work, or the error that it throws. */
function answerOf(work: () => unknown): unknown {
  try {
    return work()
  } catch (error) {
    return error
  }
}
