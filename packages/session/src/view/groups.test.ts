import fc from 'fast-check'
import { expect, test } from 'vitest'
import { PersistentList } from '../util/persistent-list.ts'
import { groupItems, readsText, type GroupedItems, type TranscriptRow } from './groups.ts'
import type { AssistantItem, AssistantPart, ToolCallPart, TranscriptItem } from './transcript-items.ts'

test('read-only calls that follow one another are one row, also across answers', () => {
  const { rows } = groupItems([
    user('u'),
    answer('a', said('Let me look.'), call('read', { path: 'x' }), call('grep', { pattern: 'y' })),
    answer('b', call('read', { path: 'z' })),
    answer('c', call('bash', { command: 'ls' }), call('ls', { path: '.' })),
    answer('d', said('Done.')),
  ])
  expect(rows.map(told)).toEqual(['user', 'text', 'read grep read', 'bash', 'ls', 'text'])
  expect(rows.map(({ key }) => key)).toEqual(['u', 'a/0', 'a/1', 'c/0', 'c/1', 'd/0'])
})

test('a single read-only call stays a call, and text or reasoning ends a group', () => {
  const { rows } = groupItems([
    answer('a', call('read'), said('hm'), call('read')),
    answer('b', { type: 'reasoning', text: 'more' }, call('find')),
  ])
  expect(rows.map(told)).toEqual(['read', 'text', 'read', 'reasoning', 'find'])
  expect(rows[0]?.type).toBe('part')
})

test('an empty part has no row and does not end a group, and an error has its own row', () => {
  const failed: AssistantItem = { ...answer('b', call('read')), error: { kind: 'overloaded', message: 'Too busy.' } }
  const { rows } = groupItems([answer('a', call('read'), said(' \n')), failed, answer('c'), answer('d', call('read'))])
  expect(rows.map(told)).toEqual(['read read', 'error', 'read'])
})

test('an image of an answer is a row', () => {
  const picture: AssistantPart = { type: 'image', source: { type: 'url', mediaType: 'image/png', data: 'https://x/' } }
  expect(groupItems([answer('a', picture)]).rows.map(told)).toEqual(['image'])
})

test('a group says how much was read', () => {
  const calls = [
    call('read', { path: 'a' }),
    call('read', { path: 'a' }),
    call('read', { path: 'b' }),
    call('grep'),
    call('ls', { path: '.' }),
    call('find'),
    call('find'),
    call('bash'),
  ]
  expect(readsText(calls)).toBe('read 2 files, searched 1 time, listed 1 folder, looked for files 2 times')
  expect(readsText([])).toBe('')
})

test('rows before the first change keep their identity', () => {
  const items = [user('u'), answer('a', said('one')), answer('b', call('read')), answer('c', call('read'))]
  const before = groupItems(items)
  const after = groupItems([...items, answer('d', call('read')), user('v')], before)
  expect(after.rows.map(told)).toEqual(['user', 'text', 'read read read', 'user'])
  expect(after.rows[0]).toBe(before.rows[0])
  expect(after.rows[1]).toBe(before.rows[1])
  expect(groupItems(items, before).rows).toEqual(before.rows)
})

test('grouping step by step gives the same rows as grouping at once, for random changes', () => {
  const part = fc.constantFrom('read', 'grep', 'bash', 'text', 'none')
  const item = fc.oneof(fc.constant('user' as const), fc.array(part, { maxLength: 3 }))
  const change = fc.record({ at: fc.nat(8), keep: fc.boolean(), items: fc.array(item, { maxLength: 5 }) })
  fc.assert(
    fc.property(fc.array(change, { maxLength: 8 }), (changes) => {
      let items: TranscriptItem[] = []
      let grouped: GroupedItems | undefined
      let count = 0
      for (const { at, keep, items: added } of changes) {
        const made = added.map((each) => randomItem(each, `i${count++}`))
        items = [...items.slice(0, at), ...made, ...(keep ? items.slice(at + 1) : [])]
        grouped = groupItems(items, grouped)
        expect(grouped).toEqual(groupItems(items))
      }
    }),
    { numRuns: 500 },
  )
})

test('grouping the items of a transcript step by step gives the same rows as grouping them at once', () => {
  const part = fc.constantFrom('read', 'grep', 'bash', 'text', 'none')
  const item = fc.oneof(fc.constant('user' as const), fc.array(part, { maxLength: 3 }))
  const change = fc.record({ at: fc.nat(), isPush: fc.boolean(), item, goesBack: fc.boolean() })
  fc.assert(
    fc.property(fc.array(item, { maxLength: 70 }), fc.array(change, { maxLength: 12 }), (start, changes) => {
      let count = 0
      let items = PersistentList.empty<TranscriptItem>()
      for (const kind of start) items = items.push(randomItem(kind, `i${count++}`))
      let grouped = groupItems(items)
      const [first, before] = [items, grouped]
      for (const { at, isPush, item: kind, goesBack } of changes) {
        const made = randomItem(kind, `i${count++}`)
        if (goesBack) items = first
        else items = isPush || items.length === 0 ? items.push(made) : items.with(at % items.length, made)
        grouped = groupItems(items, grouped)
        const { rows, starts } = groupItems([...items])
        expect({ rows: grouped.rows, starts: grouped.starts }).toEqual({ rows, starts })
      }
      expect(groupItems(first, before)).toBe(before)
    }),
    { numRuns: 300 },
  )
})

test('adding to a long transcript looks only at its end', () => {
  let looked = 0
  let items = PersistentList.empty<TranscriptItem>()
  for (let index = 0; index < 20_000; index++) {
    const made = answer(`a${index}`, said('x'))
    items = items.push(Object.defineProperty({ ...made }, 'type', { get: () => (looked++, 'assistant') }))
  }
  const before = groupItems(items)
  looked = 0
  expect(groupItems(items.push(user('u')), before).rows).toHaveLength(20_001)
  expect(groupItems(items.with(19_990, user('u')), before).rows).toHaveLength(20_000)
  expect(looked).toBeLessThan(40)
})

function randomItem(kind: 'user' | string[], id: string): TranscriptItem {
  if (kind === 'user') return user(id)
  return answer(id, ...kind.map((name) => (name === 'text' ? said('x') : name === 'none' ? said('') : call(name))))
}

function told(row: TranscriptRow): string {
  if (row.type === 'item') return row.item.type
  if (row.type === 'reads') return row.calls.map(({ name }) => name).join(' ')
  if (row.type === 'error') return 'error'
  return row.part.type === 'tool_call' ? row.part.name : row.part.type
}

const base = { seq: 1, timestamp: '2026-11-16T00:00:00Z' }

function user(id: string): TranscriptItem {
  return { ...base, type: 'user', id, content: [] }
}

function answer(id: string, ...parts: AssistantPart[]): AssistantItem {
  return { ...base, type: 'assistant', id, parts }
}

function said(text: string): AssistantPart {
  return { type: 'text', text }
}

function call(name: string, input: Record<string, unknown> = {}): ToolCallPart {
  return { type: 'tool_call', callId: 'c', name, input, status: 'completed' }
}
