import { describe, expect, test } from 'vitest'
import type { SessionInfo } from '../state/session-info.ts'
import { memoryStore } from './memory/memory-store.ts'
import { user } from '../testing/builders.ts'
import { pageOf } from './list-page.ts'
import { fold } from './file/session-index/search-text.ts'
import { rangesOf } from './search-hits.ts'
import { snippetOf } from './search-log.ts'

describe('a page of sessions', () => {
  test('filters by folder, status and text in name, first message or folder', () => {
    const rows = [
      row('a', { cwd: '/x', name: 'Alpha' }),
      row('b', { cwd: '/y', firstText: 'about beta', status: 'running' }),
      row('c', {}),
    ]
    const ids = (query: Parameters<typeof pageOf>[1]): string[] => pageOf(rows, query).sessions.map(({ id }) => id)
    expect(ids({ cwd: '/x' })).toEqual(['a'])
    expect(ids({ status: 'running' })).toEqual(['b'])
    expect(ids({ text: 'ALPHA' })).toEqual(['a'])
    expect(ids({ text: 'beta' })).toEqual(['b'])
    expect(ids({ text: '/Y' })).toEqual(['b'])
    expect(ids({ text: 'nothing' })).toEqual([])
  })

  test('is sorted newest first and has a cursor while there are more', () => {
    const rows = ['1', '2', '3'].map((id) => row(id, { modified: `2026-01-0${id}` }))
    const first = pageOf(rows, { limit: 2 })
    expect(first.sessions.map(({ id }) => id)).toEqual(['3', '2'])
    const second = pageOf(rows, { limit: 2, cursor: first.cursor as string })
    expect(second.sessions.map(({ id }) => id)).toEqual(['1'])
    expect(second.cursor).toBeUndefined()
    expect(pageOf([], {}).sessions).toEqual([])
  })
})

describe('search by reading', () => {
  test('shows text around the match, on one line', () => {
    const text = `${'before '.repeat(20)}needle\n\n${'after '.repeat(40)}`
    const snippet = snippetOf(text, text.indexOf('needle'))
    expect(snippet).toMatch(/^….*needle after.*…$/)
    expect(snippet).not.toContain('\n')
    expect(snippetOf('short', 0)).toBe('short')
  })

  test('returns the newest hits first, up to the limit', async () => {
    const store = memoryStore()
    const session = await store.create()
    for (let index = 0; index < 60; index++) await user(session, `needle ${index}`)
    const hits = await store.search({ text: 'NEEDLE' })
    expect(hits.length).toBe(50)
    expect((await store.search({ text: 'needle 7', limit: 1 })).length).toBe(1)
  })

  test('marks every word at its position, in any case and any script, and overlapping ones once', () => {
    const lower = (text: string): string => text.toLowerCase()
    expect(rangesOf('A needle, NEEDLES 🌳 needle', ['needle'], lower)).toEqual([
      { start: 2, end: 8 },
      { start: 10, end: 16 },
      { start: 21, end: 27 },
    ])
    expect(rangesOf('İstanbul', ['i'], lower)).toEqual([{ start: 0, end: 1 }])
    expect(rangesOf('foobar', ['foob', 'obar'], lower)).toEqual([{ start: 0, end: 6 }])
    expect(rangesOf('text', ['absent', ''], lower)).toEqual([])
    const accented = 'Cafe\u0301 ﬁne'
    const ranges = rangesOf(accented, ['cafe', 'fi'], fold)
    expect(ranges.map(({ start, end }) => accented.slice(start, end))).toEqual(['Cafe\u0301', 'ﬁ'])
  })

  test('returns the role of a message, also for a summary', async () => {
    const session = await memoryStore().create()
    const store = memoryStore()
    const other = await store.create()
    const kept = await user(other, 'words')
    await other.appendCompaction('a summary of words', kept, 1)
    expect((await store.search({ text: 'words' })).map(({ role }) => role).toSorted()).toEqual(['compaction', 'user'])
    await session.close()
  })
})

function row(id: string, info: Partial<SessionInfo>): SessionInfo {
  return {
    id,
    name: '',
    created: '',
    modified: '',
    messageCount: 0,
    status: 'idle',
    queueLength: 0,
    cost: 0,
    damaged: false,
    ...info,
  }
}
