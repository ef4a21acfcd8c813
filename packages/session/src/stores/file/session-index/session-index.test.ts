import {
  appendFileSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { writeCheckpoint } from '../../../log/checkpoint.ts'
import type { DiskLine } from '../../../line/line.ts'
import type { ReadableLog } from '../../../log/log-store.ts'
import { replay } from '../../../log/replay.ts'
import { sealLine } from '../../../line/seal-line.ts'
import type { SearchHit, SessionInfo } from '../../../state/session-info.ts'
import { SessionState } from '../../../state/session-state.ts'
import { ReadableFileLog } from '../file-log.ts'
import { IndexDb, indexFileIn } from './index-db.ts'
import type { IndexSource } from './list-index.ts'
import { pathsInFolder } from '../log-paths.ts'
import { nodeFilePort } from '../node-file-port.ts'
import { SessionIndex } from './session-index.ts'

let root: string
let index: SessionIndex
const opened: SessionIndex[] = []

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'tapetree-index-'))
  index = newIndex()
})

afterEach(() => {
  for (const each of opened.splice(0)) each.close()
  rmSync(root, { recursive: true })
})

function newIndex(options: { file?: string; wholeReadBytes?: number } = {}): SessionIndex {
  const made = new SessionIndex({ file: indexFileIn(root), ...options })
  opened.push(made)
  return made
}

/** A new process: it knows only what is in the file. */
function reopened(): SessionIndex {
  index.close()
  index = newIndex()
  return index
}

/** Counts what is opened and what is read. */
class CountingSource implements IndexSource {
  readonly folder: string
  opened: string[] = []
  readsFrom: number[] = []

  constructor(folder: string = root) {
    this.folder = folder
  }

  async openLog(id: string): Promise<ReadableLog> {
    this.opened.push(id)
    const log = new ReadableFileLog(nodeFilePort(), pathsInFolder(join(this.folder, id)))
    const lines = log.lines.bind(log)
    log.lines = (from) => {
      this.readsFrom.push(from)
      return lines(from)
    }
    return log
  }
}

interface Said {
  text: string
  role?: string
  minute?: number
}

const startMs = Date.UTC(2026, 0, 1)

function time(minute: number): string {
  return new Date(startMs + minute * 60_000).toISOString()
}

function pathOf(id: string, folder = root): string {
  return join(folder, id, 'events.jsonl')
}

/** Writes a session: header, writer record and messages, one minute apart. */
function write(
  id: string,
  said: (Said | string)[],
  options: { folder?: string; cwd?: string; minute?: number } = {},
): void {
  const { folder = root, cwd = '/work', minute = 0 } = options
  mkdirSync(join(folder, id), { recursive: true })
  writeFileSync(pathOf(id, folder), '')
  nextSeqs.set(pathOf(id, folder), 1)
  addLine(id, { type: 'session', id, timestamp: time(minute), version: 1, cwd }, folder)
  addLine(
    id,
    { type: 'writer', id: 'w', timestamp: time(minute), writer: { term: 1, host: 'h', process: '1', format: 1 } },
    folder,
  )
  say(id, said, { folder, minute })
}

function say(
  id: string,
  said: (Said | string)[],
  { folder = root, minute = 0 }: { folder?: string; minute?: number } = {},
): void {
  for (const [step, each] of said.entries()) {
    const { text, role = 'user', minute: at = minute + step } = typeof each === 'string' ? { text: each } : each
    addLine(id, { ...message(`e${nextSeq(pathOf(id, folder))}`, text, role), timestamp: time(at) }, folder)
  }
}

function message(id: string, text: string, role = 'user'): DiskLine {
  return {
    type: 'message',
    id,
    parent_id: null,
    timestamp: time(0),
    message: { role, content: [{ type: 'text', text: { content: text } }] },
  }
}

function addLine(id: string, line: DiskLine, folder = root): void {
  const path = pathOf(id, folder)
  appendFileSync(path, `${sealLine(line, nextSeq(path)).text}\n`)
  nextSeqs.set(path, nextSeq(path) + 1)
}

/** Lines in each log, plus one. */
const nextSeqs = new Map<string, number>()

function nextSeq(path: string): number {
  return nextSeqs.get(path) ?? 1
}

async function namesIn(source: IndexSource = new CountingSource()): Promise<string[]> {
  const { sessions } = await index.list(source, {})
  return sessions.map(({ id }) => id)
}

async function rows(source: IndexSource = new CountingSource()): Promise<SessionInfo[]> {
  return (await index.list(source, {})).sessions
}

async function find(text: string, limit?: number, source: IndexSource = new CountingSource()): Promise<string[]> {
  const hits = await index.search(source, { text, ...(limit !== undefined && { limit }) })
  return hits.map(({ sessionId, entryId }) => `${sessionId} ${entryId}`)
}

describe('a list', () => {
  test('is newest first, by the last message and then by id', async () => {
    write('old', ['hello'], { minute: 1 })
    write('b', ['hello'], { minute: 5 })
    write('a', ['hello'], { minute: 5 })
    write('new', ['hello'], { minute: 9 })
    expect(await namesIn()).toEqual(['new', 'b', 'a', 'old'])
  })

  test('has the row of each session, and its path', async () => {
    write('s1', ['Fix the bug', { text: 'Done.', role: 'assistant' }], { cwd: '/project' })
    addLine('s1', { type: 'session_info', id: 'n', parent_id: 'e4', timestamp: time(5), session_info: { name: 'bug' } })
    const expected: SessionInfo = {
      id: 's1',
      path: join(root, 's1'),
      name: 'bug',
      created: time(0),
      modified: time(1),
      messageCount: 2,
      cwd: '/project',
      firstText: 'Fix the bug',
      status: 'idle',
      queueLength: 0,
      cost: 0,
      damaged: false,
    }
    expect(await rows()).toEqual([expected])
    reopened()
    expect(await rows()).toEqual([expected])
  })

  test('has pages that stay consistent when sessions are added', async () => {
    const ids = Array.from({ length: 25 }, (_, each) => `s${String(each).padStart(2, '0')}`)
    for (const [minute, id] of ids.entries()) write(id, ['x'], { minute })
    const source = new CountingSource()
    const first = await index.list(source, { limit: 10 })
    write('s99', ['new'], { minute: 99 })
    const second = await index.list(source, { limit: 10, cursor: first.cursor ?? '' })
    const third = await index.list(source, { limit: 10, cursor: second.cursor ?? '' })
    const all = [first, second, third].flatMap(({ sessions }) => sessions.map(({ id }) => id))
    expect([all, third.cursor]).toEqual([ids.toReversed(), undefined])
  })

  test('with more sessions than fit in memory is the same, in any order', async () => {
    const ids = Array.from({ length: 1300 }, (_, each) => `s${each}`)
    const minuteOf = (id: string): number => (Number(id.slice(1)) * 7919) % 1300
    for (const id of ids) write(id, [], { minute: minuteOf(id) })
    const newest = ids.toSorted((left, right) => minuteOf(right) - minuteOf(left))
    const source = new CountingSource()
    const page = await index.list(source, { limit: 5 })
    const again = await index.list(source, { limit: 5 })
    const next = await index.list(source, { limit: 5, cursor: page.cursor ?? '' })
    expect([...page.sessions, ...next.sessions].map(({ id }) => id)).toEqual(newest.slice(0, 10))
    expect(again).toEqual(page)
    const few = await index.list(source, { limit: 5, text: 'nothing' })
    expect(few).toEqual({ sessions: [] })
  })

  test('can be narrowed by folder, status and text', async () => {
    write('a', ['Deploy the site'], { cwd: '/one' })
    write('b', ['Water the plants'], { cwd: '/two' })
    addLine('b', { type: 'run_start', id: 'r', timestamp: time(9), run_start: { run_id: 'r' } })
    const source = new CountingSource()
    const idsOf = async (query: object): Promise<string[]> =>
      (await index.list(source, query)).sessions.map(({ id }) => id)
    expect(await idsOf({ cwd: '/one' })).toEqual(['a'])
    expect(await idsOf({ status: 'running' })).toEqual(['b'])
    expect(await idsOf({ text: 'PLANTS' })).toEqual(['b'])
    expect(await idsOf({ text: '/one' })).toEqual(['a'])
  })

  test('reads each log once, and again only those that changed', async () => {
    for (const id of ['a', 'b', 'c']) write(id, ['x'])
    const source = new CountingSource()
    await rows(source)
    expect(source.opened.sort()).toEqual(['a', 'b', 'c'])
    source.opened = []
    reopened()
    await rows(source)
    expect(source.opened).toEqual([])
    say('b', ['more'], { minute: 7 })
    expect((await rows(source))[0]).toMatchObject({ id: 'b', messageCount: 2, modified: time(7) })
    expect(source.opened).toEqual(['b'])
  })

  test('does not read a log again that was only touched or restored', async () => {
    write('a', ['x'])
    const source = new CountingSource()
    const before = await rows(source)
    utimesSync(pathOf('a'), 1, 1)
    source.readsFrom = []
    expect(await rows(source)).toEqual(before)
    copyFileSync(pathOf('a'), `${pathOf('a')}.copy`)
    renameSync(`${pathOf('a')}.copy`, pathOf('a'))
    expect(await rows(source)).toEqual(before)
    expect(source.readsFrom).toEqual([])
    source.opened = []
    await rows(source)
    expect(source.opened).toEqual([])
  })

  test('reads a log again if its last line was replaced by one of the same length', async () => {
    write('a', ['first'])
    await rows()
    write('a', ['other'])
    utimesSync(pathOf('a'), 1, 1)
    expect(await rows()).toMatchObject([{ firstText: 'other' }])
  })

  test('leaves out missing sessions, and shows them again when they are back', async () => {
    write('a', ['x'])
    write('b', ['x'])
    await rows()
    renameSync(join(root, 'a'), join(root, '.a'))
    expect(await namesIn()).toEqual(['b'])
    expect(await namesIn()).toEqual(['b'])
    renameSync(join(root, '.a'), join(root, 'a'))
    expect(await namesIn()).toEqual(['b', 'a'])
    rmSync(join(root, 'a'), { recursive: true })
    rmSync(join(root, 'b'), { recursive: true })
    expect(await namesIn()).toEqual([])
  })

  test('contains only sessions', async () => {
    write('a', ['x'])
    write('.hidden', ['x'])
    mkdirSync(join(root, 'empty'))
    mkdirSync(pathOf('folder'), { recursive: true })
    writeFileSync(join(root, 'file'), '')
    expect(await namesIn()).toEqual(['a'])
  })

  test('of a missing folder is empty; of an unreadable one is an error', async () => {
    expect(await rows(new CountingSource(join(root, '.trash')))).toEqual([])
    writeFileSync(join(root, 'file'), '')
    await expect(rows(new CountingSource(join(root, 'file')))).rejects.toThrow('ENOTDIR')
  })

  test('keeps the sources apart', async () => {
    const trash = join(root, '.trash')
    write('a', ['here'])
    write('a', ['there'], { folder: trash })
    write('b', ['there'], { folder: trash })
    expect(await rows()).toMatchObject([{ id: 'a', firstText: 'here' }])
    expect(await rows(new CountingSource(trash))).toMatchObject([
      { id: 'b', firstText: 'there' },
      { id: 'a', firstText: 'there' },
    ])
    expect(await rows()).toMatchObject([{ id: 'a', firstText: 'here' }])
  })

  test('needs no reads after the root was moved', async () => {
    write('a', ['x'])
    await rows()
    index.close()
    const moved = `${root}-moved`
    renameSync(root, moved)
    const source = new CountingSource(moved)
    const there = newIndex({ file: indexFileIn(moved) })
    expect((await there.list(source, {})).sessions).toMatchObject([{ id: 'a', path: join(moved, 'a') }])
    expect(source.opened).toEqual([])
    renameSync(moved, root)
  })

  test('shows an unreadable log as damaged, and reads it once it is readable', async () => {
    write('a', ['x'])
    const source = new CountingSource()
    const open = source.openLog.bind(source)
    source.openLog = () => Promise.reject(new Error('EACCES'))
    utimesSync(pathOf('a'), 60, 60)
    const modified = new Date(60_000).toISOString()
    expect(await rows(source)).toMatchObject([{ id: 'a', damaged: true, estimated: true, modified, messageCount: 0 }])
    source.openLog = open
    expect(await rows(source)).toMatchObject([{ id: 'a', damaged: false, messageCount: 1 }])
  })

  test('leaves out a log that disappears while it is read', async () => {
    write('a', ['x'])
    const source = new CountingSource()
    source.openLog = async (id) => {
      rmSync(join(root, id), { recursive: true })
      throw new Error('ENOENT')
    }
    expect(await rows(source)).toEqual([])
  })
})

describe('a long log', () => {
  const filler = 'word '.repeat(2000)

  function writeLong(id: string): void {
    write(id, ['The beginning', ...Array<string>(60).fill(filler), 'The end'])
    addLine(id, { type: 'session_info', id: 'n', parent_id: null, timestamp: time(99), session_info: { name: 'long' } })
  }

  test('is read completely within the budget', async () => {
    writeLong('a')
    expect(await rows()).toMatchObject([{ id: 'a', messageCount: 62, name: 'long' }])
    expect((await rows())[0]).not.toHaveProperty('estimated')
  })

  test('is estimated from its start and end first, and completed for a later list', async () => {
    writeLong('a')
    index = newIndex({ wholeReadBytes: 0 })
    const [[row]] = await Promise.all([rows(), rows()])
    expect(row).toMatchObject({
      firstText: 'The beginning',
      name: 'long',
      modified: time(61),
      estimated: true,
      damaged: false,
    })
    expect(row?.messageCount).toBeLessThan(62)
    await vi.waitFor(async () => expect((await rows())[0]).not.toHaveProperty('estimated'))
    expect(await rows()).toMatchObject([{ messageCount: 62, damaged: false }])
  })

  test('is completed by the next process if the first one did not finish', async () => {
    writeLong('a')
    index = newIndex({ wholeReadBytes: 0 })
    await rows()
    reopened()
    await vi.waitFor(async () => expect(await rows()).toMatchObject([{ messageCount: 62 }]))
  })

  test('that disappears or cannot be read stays an estimate', async () => {
    writeLong('a')
    writeLong('b')
    index = newIndex({ wholeReadBytes: 0 })
    const source = new CountingSource()
    const open = source.openLog.bind(source)
    const completing = new Promise<string>((resolve) => {
      source.openLog = async (id) => {
        if (source.opened.length < 2) return open(id)
        rmSync(join(root, id === 'a' ? 'b' : 'a'), { recursive: true, force: true })
        resolve(id)
        throw new Error('EIO')
      }
    })
    expect(await rows(source)).toHaveLength(2)
    const left = await completing
    expect(await rows(source)).toMatchObject([{ id: left, estimated: true }])
  })

  test('is folded from its checkpoint', async () => {
    writeLong('a')
    await checkpoint('a')
    say('a', ['after'], { minute: 70 })
    index = newIndex({ wholeReadBytes: 0 })
    const source = new CountingSource()
    const [row] = await rows(source)
    expect(row).toMatchObject({ messageCount: 63, modified: time(70) })
    expect(source.readsFrom).not.toContain(0)
  })

  test('is read completely if the checkpoint is not enough', async () => {
    writeLong('a')
    addLine('a', { type: 'leaf', id: 'l', timestamp: time(80), leaf: { target_id: null } })
    await checkpoint('a')
    addLine('a', { type: 'leaf', id: 'l2', timestamp: time(81), leaf: { target_id: 'e5' } })
    expect(await rows()).toMatchObject([{ messageCount: 62, damaged: false }])
  })

  test('that fails after its checkpoint is shown as damaged', async () => {
    writeLong('a')
    await checkpoint('a')
    const source = new CountingSource()
    const open = source.openLog.bind(source)
    source.openLog = async (id) => {
      const log = await open(id)
      log.lines = () => {
        throw new Error('EIO')
      }
      return log
    }
    expect(await rows(source)).toMatchObject([{ damaged: true, estimated: true }])
  })

  async function checkpoint(id: string): Promise<void> {
    const log = await new CountingSource().openLog(id)
    const state = new SessionState({ isWhole: true })
    await replay(log, state, { from: 0 })
    await log.close()
    writeFileSync(join(root, id, 'checkpoint.json'), writeCheckpoint(state).changed.get(0) ?? '')
  }
})

describe('an index file', () => {
  const file = (): string => indexFileIn(root)
  let expected: { rows: SessionInfo[]; hits: string[] }

  beforeEach(async () => {
    for (let each = 0; each < 40; each++)
      write(`s${each}`, [`Some words about topic${each}`, 'and common ones'], { minute: each })
    expected = { rows: await rows(), hits: await find('common', 99) }
    index.close()
  })

  /** The answers of a new process, whichever query comes first. */
  async function answers(first: 'list' | 'search'): Promise<typeof expected> {
    index = newIndex()
    const early = first === 'list' ? await rows() : undefined
    const hits = await find('common', 99)
    const answer = { rows: early ?? (await rows()), hits }
    index.close()
    return answer
  }

  function edit(sql: string): void {
    const db = new DatabaseSync(file(), { defensive: false })
    db.exec(sql)
    db.close()
  }

  test('is the only file, and private', () => {
    expect([expected.rows.length, expected.hits.length]).toEqual([40, 40])
    expect(statSync(file()).mode & 0o777).toBe(0o600)
  })

  const damages: Record<string, () => void> = {
    'was deleted': () => rmSync(file()),
    'is empty': () => truncateSync(file(), 0),
    'is all zeros': () => writeFileSync(file(), Buffer.alloc(statSync(file()).size)),
    'is no database': () => writeFileSync(file(), 'hello '.repeat(5000)),
    'lost its last byte': () => truncateSync(file(), statSync(file()).size - 1),
    'lost its second half': () => truncateSync(file(), statSync(file()).size / 2),
    'has only its first page': () => truncateSync(file(), 4096),
    'has less than a header': () => truncateSync(file(), 50),
    'is longer than it was': () => appendFileSync(file(), Buffer.alloc(10_000, 7)),
    'has a journal that is not its own': () => writeFileSync(`${file()}-journal`, Buffer.alloc(5000, 1)),
    'has a write-ahead log that is not its own': () => writeFileSync(`${file()}-wal`, Buffer.alloc(5000, 1)),
    'is a folder': () => {
      rmSync(file())
      mkdirSync(join(file(), 'x'), { recursive: true })
    },
    'is of a newer schema': () => edit('PRAGMA user_version = 2'),
    'is of no schema': () => edit('PRAGMA user_version = 0'),
    'has lost its rows': () => edit('DELETE FROM log'),
    'has lost a table': () => edit('DROP TABLE log; DROP TABLE batch'),
    'has tables of another shape': () => edit('DROP TABLE log; CREATE TABLE log (id TEXT)'),
    'has rows that were edited': () => edit(`UPDATE log SET value = replace(value, 'topic', 'lie')`),
    'has rows in another order': () => edit(`UPDATE log SET modified = '2000' || id`),
    'has rows that were swapped': () =>
      edit(
        `UPDATE log SET value = (SELECT value FROM log AS other WHERE other.source = log.source AND other.id = 's1')`,
      ),
    'has sessions that are not there': () =>
      edit(`INSERT INTO log SELECT source, 'ghost', 1, 1, 1, '3000', value, seal FROM log WHERE id = 's1'`),
    'has numbers that are none': () => edit(`UPDATE log SET size = 9e999, inode = 'x'`),
    'has lost its full-text index': () => edit('DELETE FROM text_data'),
    'has a full-text index of rubbish': () => edit(`UPDATE text_data SET block = randomblob(100)`),
    'has places of rubbish': () => edit(`UPDATE batch SET places = '[1,'`),
  }

  test.each(Object.entries(damages))('that %s only costs time', async (_, damage) => {
    copyFileSync(file(), `${file()}.intact`)
    damage()
    expect(await answers('list')).toEqual(expected)
    IndexDb.remove(file())
    copyFileSync(`${file()}.intact`, file())
    damage()
    expect(await answers('search')).toEqual(expected)
    expect(await answers('list')).toEqual(expected)
  })

  test('from before some changes is updated', async () => {
    copyFileSync(file(), join(root, 'older.sqlite'))
    say('s3', ['a newer word'], { minute: 200 })
    rmSync(join(root, 's4'), { recursive: true })
    write('s99', ['also newer'], { minute: 300 })
    index = newIndex()
    const [now, hits] = [await rows(), await find('newer')]
    index.close()
    copyFileSync(join(root, 'older.sqlite'), file())
    index = newIndex()
    expect([await rows(), await find('newer')]).toEqual([now, hits])
    expect(await find('topic4')).toEqual([])
  })

  test('with rows of missing sessions drops them', async () => {
    const before = readFileSync(pathOf('s3'))
    say('s3', ['taken back'], { minute: 200 })
    index = newIndex()
    expect([(await rows())[0]?.id, await find('taken')]).toEqual(['s3', ['s3 e5']])
    index.close()
    writeFileSync(pathOf('s3'), before)
    index = newIndex()
    expect(await rows()).toEqual(expected.rows)
    expect(await find('taken')).toEqual([])
    expect(await find('topic3', 1)).toEqual(['s39 e3'])
  })

  test('with flipped bytes never gives a wrong list', async () => {
    const bytes = readFileSync(file())
    for (let at = 100; at < bytes.length; at += Math.ceil(bytes.length / 40)) {
      const damaged = Buffer.from(bytes)
      for (let each = at; each < at + 64 && each < damaged.length; each++) damaged[each] = (damaged[each] ?? 0) ^ 0x55
      writeFileSync(file(), damaged)
      index = newIndex()
      expect(await rows()).toEqual(expected.rows)
      index.close()
    }
  })

  test('that is read-only is rebuilt', async () => {
    const manyWords = Array.from({ length: 5000 }, (_, each) => `many${each}`).join(' ')
    for (const first of ['list', 'search'] as const) {
      for (let each = 0; each < 10; each++) write(`${first}${each}`, [`common ${manyWords}`], { minute: 99 + each })
      edit(`CREATE TRIGGER refuse BEFORE INSERT ON log BEGIN SELECT RAISE(ABORT, 'no'); END`)
      const answer = await answers(first)
      const count = first === 'list' ? 50 : 60
      expect([answer.rows.length, answer.rows[0]?.id, answer.hits.length]).toEqual([count, `${first}9`, count])
    }
    const source = new CountingSource()
    index = newIndex()
    await rows(source)
    expect(source.opened).toEqual([])
  })

  test('that is deleted or replaced while open is rebuilt', async () => {
    index = newIndex()
    await rows()
    rmSync(file())
    expect(await rows()).toEqual(expected.rows)
    expect(existsSync(file())).toBe(true)
    writeFileSync(`${file()}.new`, 'rubbish')
    renameSync(`${file()}.new`, file())
    expect(await find('common', 99)).toEqual(expected.hits)
    expect(await rows()).toEqual(expected.rows)
  })

  test('that two calls find broken at the same time is rebuilt once', async () => {
    index = newIndex()
    await rows()
    edit('DROP TABLE batch; DROP TABLE log')
    expect(await Promise.all([rows(), find('common', 99), rows()])).toEqual([
      expected.rows,
      expected.hits,
      expected.rows,
    ])
  })

  test('that cannot be created is not used', async () => {
    index = newIndex({ file: join(root, 'none', 'index.sqlite') })
    expect(await rows()).toEqual(expected.rows)
    expect(await find('common', 99)).toEqual(expected.hits)
    for (let each = 0; each < 30; each++) utimesSync(pathOf(`s${each}`), 1, 1)
    const source = new CountingSource()
    expect(await find('common', 2, source)).toEqual(expected.hits.slice(0, 2))
    expect(source.opened).not.toContain('s29')
  })

  test('that is broken and cannot be removed is not used', async () => {
    index = newIndex()
    await rows()
    edit('DROP TABLE log')
    const removing = vi.spyOn(IndexDb, 'remove').mockImplementation(() => {
      throw new Error('EPERM')
    })
    expect(await rows()).toEqual(expected.rows)
    removing.mockRestore()
  })

  describe('that another process locks', () => {
    let other: DatabaseSync

    beforeEach(() => {
      other = new DatabaseSync(file())
      index = newIndex()
    })

    afterEach(() => {
      other.close()
    })

    test.each(['BEGIN EXCLUSIVE', 'BEGIN IMMEDIATE'])(
      '(%s) causes no delay, and is used again when it is free',
      async (lock) => {
        other.exec(lock)
        say('s3', ['while it was held, topic3'], { minute: 200 })
        rmSync(join(root, 's4'), { recursive: true })
        const source = new CountingSource()
        const start = performance.now()
        const now = await rows(source)
        const hits = await find('held')
        expect(performance.now() - start).toBeLessThan(2000)
        expect([now.length, now[0]?.id, hits]).toEqual([39, 's3', ['s3 e5']])
        expect(await find('topic3', 3)).toEqual(['s3 e5', 's39 e3', 's38 e3'])
        expect(await find('topic3', 99)).toHaveLength(12)
        other.exec('COMMIT')
        expect([await rows(source), await find('held')]).toEqual([now, hits])
        source.opened = []
        await rows(source)
        expect(source.opened).toEqual([])
      },
    )

    test('is opened once it is free', async () => {
      other.exec('BEGIN EXCLUSIVE')
      const before = await rows()
      other.exec('COMMIT')
      expect([before, await rows()]).toEqual([expected.rows, expected.rows])
    })

    test('and changes is read again', async () => {
      expect(await find('topic7')).toEqual(['s7 e3'])
      const second = newIndex()
      say('s8', ['from elsewhere'], { minute: 300 })
      expect(await second.search(new CountingSource(), { text: 'elsewhere' })).toHaveLength(1)
      const source = new CountingSource()
      expect(await find('elsewhere', 9, source)).toEqual(['s8 e5'])
      expect(source.readsFrom).toEqual([])
    })
  })
})

describe('a search', () => {
  test('finds words, prefixes and parts of words, ignoring case and accents', async () => {
    write('a', ['Die Größe der Übersetzung', 'nothing here'])
    for (const text of [
      'größe',
      'GROSSE'.toLowerCase() === 'grosse' ? 'Größe' : '',
      'grö',
      'röße',
      'ubersetzung',
      'setz',
      'die der',
    ])
      expect([text, await find(text)]).toEqual([text, ['a e3']])
    expect(await find('ie')).toEqual([])
    expect(await find('missing')).toEqual([])
  })

  test.each([
    ['Chinese', '我们需要全文搜索功能', ['全文搜索', '搜索', '文', '搜索功能']],
    ['Japanese', 'データベースの検索システム', ['検索', 'データ', 'ベースの検', 'ム', 'ﾃﾞｰﾀ']],
    ['Korean', '데이터베이스 검색 기능', ['검색', '베이스', '능', '검색 데이터']],
    ['Thai', 'ฐานข้อมูลการค้นหา', ['ข้อมูล', 'ค้นหา']],
    ['mixed', 'SQLiteの全文検索 v3 🚀', ['sqliteの全', '検索', 'の', '🚀', 'lite']],
  ])('finds %s text by any part', async (_, text, parts) => {
    write('a', [text, 'plain'])
    for (const part of parts) expect([part, await find(part)]).toEqual([part, ['a e3']])
  })

  test('only returns entries with the words next to each other', async () => {
    write('a', ['日本の英語と本語の日', 'foo and bar', 'the 日本語 of foo_bar'])
    expect(await find('日本語')).toEqual(['a e5'])
    expect(await find('foo_bar')).toEqual(['a e5'])
  })

  test('requires all words in one entry', async () => {
    write('a', ['red apple', 'green apple', 'red pear'])
    expect(await find('red apple')).toEqual(['a e3'])
    expect(await find('apple red nothing')).toEqual([])
  })

  test('returns the session, time, role and text', async () => {
    write('a', ['one', { text: 'The answer is two', role: 'assistant' }])
    addLine('a', {
      type: 'compaction',
      id: 'c',
      parent_id: 'e4',
      timestamp: time(7),
      compaction: { summary: 'They answer questions' },
    })
    addLine('a', { type: 'branch_summary', id: 'b', parent_id: 'e4', branch_summary: { summary: 'No answer yet' } })
    const hits: SearchHit[] = await index.search(new CountingSource(), { text: 'answer' })
    expect(hits).toEqual([
      {
        sessionId: 'a',
        entryId: 'c',
        seq: 5,
        timestamp: time(7),
        role: 'compaction',
        snippet: 'They answer questions',
        matches: [{ start: 5, end: 11 }],
      },
      {
        sessionId: 'a',
        entryId: 'e4',
        seq: 4,
        timestamp: time(1),
        role: 'assistant',
        snippet: 'The answer is two',
        matches: [{ start: 4, end: 10 }],
      },
      {
        sessionId: 'a',
        entryId: 'b',
        seq: 6,
        timestamp: '',
        role: 'branch_summary',
        snippet: 'No answer yet',
        matches: [{ start: 3, end: 9 }],
      },
    ])
  })

  test('returns the newest first, across sessions', async () => {
    write('a', [
      { text: 'word', minute: 1 },
      { text: 'word', minute: 30 },
    ])
    write('b', [
      { text: 'word', minute: 2 },
      { text: 'word', minute: 20 },
      { text: 'word', minute: 20 },
    ])
    write('c', [{ text: 'word', minute: 20 }])
    utimesSync(pathOf('a'), 1, 1)
    const all = ['a e4', 'c e3', 'b e5', 'b e4', 'b e3', 'a e3']
    expect(await find('word')).toEqual(all)
    expect(await find('word', 1)).toEqual(all.slice(0, 1))
    expect(await find('word', 3)).toEqual(all.slice(0, 3))
  })

  test('returns the newest first, for any number of hits', async () => {
    const minutes = Array.from({ length: 900 }, (_, each) => (each * 7919) % 900)
    for (let session = 0; session < 3; session++)
      write(
        `s${session}`,
        minutes.slice(session * 300, session * 300 + 300).map((minute) => ({ text: `common word${minute}`, minute })),
      )
    const hits = await index.search(new CountingSource(), { text: 'common', limit: 7 })
    expect(hits.map(({ snippet }) => snippet)).toEqual(
      [899, 898, 897, 896, 895, 894, 893].map((minute) => `common word${minute}`),
    )
    expect(await index.search(new CountingSource(), { text: 'common' })).toHaveLength(50)
  })

  test('stops when no newer hit is possible', async () => {
    const many = Array.from({ length: 300 }, () => 'common')
    write('old', many, { minute: 0 })
    await find('common')
    write('new', many, { minute: 5000 })
    await find('common')
    const source = new CountingSource()
    await find('common', 10, source)
    expect(new Set(source.opened)).toEqual(new Set(['new']))
  })

  test('stops after too many false candidates', async () => {
    write('a', ['foo_bar', ...Array.from({ length: 2100 }, () => 'foo bar')])
    expect(await find('foo_bar')).toEqual([])
    expect(await find('foo bar', 1)).toEqual(['a e2103'])
  })

  test('treats nothing in a query as syntax', async () => {
    write('a', ['say "hello" OR NOT (words) NEAR* ^x -y a:b {c} + \' ; --'])
    for (const text of [
      '"',
      '"hello"',
      'OR',
      'NOT',
      '(words)',
      'NEAR*',
      '^x',
      '-y',
      'a:b',
      '{c}',
      '+',
      "'",
      ';',
      '--',
      '"hello" OR',
    ])
      expect([text, await find(text)]).toEqual([text, ['a e3']])
    for (const text of ['*"', 'words:', '\0', '"" ""', 'text MATCH x'])
      expect([text, await find(text)]).toEqual([text, []])
  })

  test('for an empty query finds nothing', async () => {
    write('a', ['x'])
    expect([await find(''), await find('  '), await find('x', 0)]).toEqual([[], [], []])
  })

  test('finds a part that very many words contain', async () => {
    write('a', [Array.from({ length: 600 }, (_, each) => `n${each}needle${each}`).join(' '), 'xneedle', 'needles'])
    expect(await find('needle')).toEqual(['a e5', 'a e4', 'a e3'])
  })

  test('keeps the sources apart', async () => {
    const trash = new CountingSource(join(root, '.trash'))
    write('a', ['secret plan'])
    write('b', ['other plan'], { folder: trash.folder })
    expect([await find('plan'), await find('plan', 9, trash), await find('secret', 9, trash)]).toEqual([
      ['a e3'],
      ['b e3'],
      [],
    ])
  })

  test('reads only new lines', async () => {
    write('a', ['first words'])
    write('b', ['other words'])
    const source = new CountingSource()
    expect(await find('words', 9, source)).toEqual(['b e3', 'a e3'])
    const end = statSync(pathOf('a')).size
    say('a', ['later words'], { minute: 5 })
    source.readsFrom = []
    expect(await find('words', 9, source)).toEqual(['a e4', 'b e3', 'a e3'])
    expect(source.readsFrom).toEqual([end])
    source.readsFrom = []
    reopened()
    expect(await find('words', 9, source)).toHaveLength(3)
    expect(source.readsFrom).toEqual([])
  })

  test('reads a replaced log from the start', async () => {
    write('a', ['first words', 'second words'])
    await find('words')
    write('a', ['third words', 'fourth words', 'fifth words'])
    expect([await find('words'), await find('first'), await find('fifth')]).toEqual([
      ['a e5', 'a e4', 'a e3'],
      [],
      ['a e5'],
    ])
  })

  test('returns nothing that the log does not contain, whatever the index says', async () => {
    write('a', ['one', 'two'])
    await find('one')
    const { mtime } = statSync(pathOf('a'))
    const text = readFileSync(pathOf('a'), 'utf8')
    writeFileSync(pathOf('a'), text.replace('two', 'TWO').replace('one', 'six'))
    utimesSync(pathOf('a'), mtime, mtime)
    expect([await find('one'), await find('two')]).toEqual([[], []])
    writeFileSync(pathOf('a'), text.replaceAll('"seq":3', '"seq":9'))
    utimesSync(pathOf('a'), mtime, mtime)
    expect(await find('one')).toEqual([])
  })

  test('does not find deleted sessions', async () => {
    write('a', ['words'])
    write('b', ['words'])
    await find('words')
    rmSync(join(root, 'b'), { recursive: true })
    mkdirSync(join(root, 'empty'))
    expect(await find('words')).toEqual(['a e3'])
    expect(await find('words')).toEqual(['a e3'])
  })

  test('rebuilds when most indexed documents are gone', async () => {
    write('kept', ['words'])
    writeLines('big', 10_001)
    expect(await find('words')).toEqual(['kept e3'])
    rmSync(join(root, 'big'), { recursive: true })
    const source = new CountingSource()
    expect(await find('words', 9, source)).toEqual(['kept e3'])
    expect(source.readsFrom).toEqual([0])
  })

  test('indexes a very long log in ranges, and continues after an interruption', async () => {
    writeLines('big', 3000)
    const source = new CountingSource()
    const open = source.openLog.bind(source)
    source.openLog = async (id) => {
      const log = await open(id)
      const lines = log.lines.bind(log)
      log.lines = (from) => {
        if (from > 0) throw new Error('killed')
        return lines(from)
      }
      return log
    }
    // Until it is indexed completely, it is read.
    expect(await find('entry2999', 9, source)).toHaveLength(1)
    expect(await find('entry77', 99, source)).toHaveLength(11)
    source.openLog = open
    source.readsFrom = []
    expect(await find('entry2999', 9, source)).toHaveLength(1)
    expect(source.readsFrom).toHaveLength(1)
    expect(source.readsFrom[0]).toBeGreaterThan(100_000)
    expect(new Set(await find('entry', 5000, source)).size).toBe(3000)
  })

  test('reads a plain log', async () => {
    mkdirSync(join(root, 'plain'))
    const lines = [
      { type: 'session', id: 'plain', timestamp: time(0), version: 1, cwd: '/' },
      { ...message('m1', 'plain words') },
    ]
    writeFileSync(pathOf('plain'), lines.map((line) => `${JSON.stringify(line)}\n`).join(''))
    expect(await find('plain words')).toEqual(['plain m1'])
  })

  test('skips an unreadable log', async () => {
    write('a', ['words'])
    write('b', ['words'])
    const source = new CountingSource()
    const open = source.openLog.bind(source)
    source.openLog = (id) => (id === 'a' ? Promise.reject(new Error('EIO')) : open(id))
    expect(await find('words', 9, source)).toEqual(['b e3'])
    source.openLog = open
    expect(await find('words', 9, source)).toEqual(['b e3', 'a e3'])
    source.openLog = () => Promise.reject(new Error('EIO'))
    expect(await find('words', 9, source)).toEqual([])
  })

  test('that runs concurrently finds each entry once', async () => {
    for (let each = 0; each < 20; each++) write(`s${each}`, ['words'])
    const found = await Promise.all([find('words'), find('words'), find('nothing'), find('words')])
    expect(found.map((hits) => new Set(hits).size)).toEqual([20, 20, 0, 20])
    expect(await find('words', 99)).toHaveLength(20)
  })

  test('yields to other work while it builds the index', async () => {
    for (let each = 0; each < 40; each++) writeLines(`s${each}`, 100)
    let turns = 0
    const timer = setInterval(() => turns++, 1)
    await find('words')
    clearInterval(timer)
    expect(turns).toBeGreaterThan(5)
  })

  test('merges after many small changes', async () => {
    write('a', ['word0'])
    for (let each = 1; each < 30; each++) {
      say('a', [`word${each}`], { minute: each })
      expect(await find(`word${each}`, 1)).toEqual([`a e${each + 3}`])
    }
    expect(await find('word')).toHaveLength(30)
  })

  test('merges an index with many segments', async () => {
    const tidying = vi.spyOn(IndexDb.prototype, 'tidy').mockReturnValue(false)
    const compacting = vi.spyOn(IndexDb.prototype, 'beginCompacting')
    write('a', ['word0'])
    for (let each = 1; each < 17; each++) {
      say('a', [`word${each}`], { minute: each })
      await find('word')
    }
    tidying.mockRestore()
    vi.spyOn(IndexDb.prototype, 'tidy').mockReturnValueOnce(false).mockReturnValueOnce(true)
    say('a', ['word17'], { minute: 17 })
    const found = await find('word')
    const [last] = compacting.mock.results.slice(-1)
    vi.restoreAllMocks()
    expect([found.length, last?.value]).toEqual([18, true])
  })

  function writeLines(id: string, count: number): void {
    write(id, [])
    const lines = Array.from(
      { length: count },
      (_, each) => sealLine(message(`m${each}`, `entry${each} of${each}`), each + 3).text,
    )
    appendFileSync(pathOf(id), `${lines.join('\n')}\n`)
  }
})

describe('after closing', () => {
  test('no query is answered', async () => {
    write('a', ['words'])
    await rows()
    index.close()
    index.close()
    await expect(rows()).rejects.toMatchObject({ code: 'session-closed' })
    await expect(find('words')).rejects.toMatchObject({ code: 'session-closed' })
  })

  test('running work stops', async () => {
    for (let each = 0; each < 200; each++) write(`s${each}`, ['some words to find'])
    const calls = [rows(), find('words'), rows()]
    await new Promise((resolve) => setImmediate(resolve))
    index.close()
    expect(await Promise.allSettled(calls)).toMatchObject(calls.map(() => ({ reason: { code: 'session-closed' } })))
  })

  test('running work without an index stops', async () => {
    for (let each = 0; each < 200; each++) write(`s${each}`, ['some words to find'])
    index = newIndex({ file: join(root, 'none', 'index.sqlite') })
    const call = find('words')
    await new Promise((resolve) => setTimeout(resolve, 5))
    index.close()
    await expect(call).rejects.toMatchObject({ code: 'session-closed' })
  })
})
