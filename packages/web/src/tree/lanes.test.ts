import { expect, test } from 'vitest'
import { drawTree, type TreeEntry } from './lanes.ts'

function entry(id: string, parentId: string | null, more: Partial<TreeEntry> = {}): TreeEntry {
  return { id, parentId, seq: 1, type: 'message', role: 'user', timestamp: '', preview: id, ...more }
}

function places(entries: readonly TreeEntry[], leafId: string | null, showsAll = true): string[] {
  return drawTree(entries, { leafId, showsAll }).rows.map(
    ({ entry: { id }, lane, isCurrent }) => `${id}${lane}${isCurrent ? '*' : ''}`,
  )
}

const forked = [entry('a', null), entry('b', 'a'), entry('c', 'b'), entry('d', 'a'), entry('e', 'd'), entry('f', 'b')]

test('every branch has a lane of its own, and the current one has the first', () => {
  expect(places(forked, 'e')).toEqual(['a0*', 'b1', 'c1', 'd0*', 'e0*', 'f2'])
  expect(places(forked, 'c')).toEqual(['a0*', 'b0*', 'c0*', 'd1', 'e1', 'f2'])
})

test('a lane is used again after the end of its branch', () => {
  const entries = [
    entry('a', null),
    entry('b', 'a'),
    entry('c', 'a'),
    entry('d', 'c'),
    entry('e', 'c'),
    entry('f', 'e'),
  ]
  expect(places(entries, 'f')).toEqual(['a0*', 'b1', 'c0*', 'd1', 'e0*', 'f0*'])
})

test('the short tree has messages of people, labels, summaries, ends and forks, and counts what it leaves out', () => {
  const agent = { role: 'assistant' }
  const entries = [
    entry('ask', null),
    entry('think', 'ask', agent),
    entry('tool', 'think', { role: 'tool' }),
    entry('named', 'tool', { ...agent, label: 'good' }),
    entry('name', 'named', { type: 'label', role: undefined }),
    entry('more', 'named', agent),
    entry('end', 'more', agent),
    entry('sum', 'named', { type: 'compaction', role: undefined }),
  ]
  const { rows } = drawTree(entries, { leafId: 'sum', showsAll: false })
  expect(rows.map((row) => [row.entry.id, row.hiddenCount, row.isLeaf])).toEqual([
    ['ask', 0, false],
    ['named', 2, false],
    ['end', 1, true],
    ['sum', 0, true],
  ])
})

test('edges join each row with the row of its parent', () => {
  expect(drawTree(forked, { leafId: 'e', showsAll: true }).edges).toContainEqual({
    from: 1,
    to: 5,
    fromLane: 1,
    toLane: 2,
    isCurrent: false,
  })
})

test('entries whose parents are not loaded are roots, and a circle of damaged entries ends', () => {
  expect(places([entry('x', 'not loaded'), entry('y', 'x')], 'y')).toEqual(['x0*', 'y0*'])
  expect(places([entry('x', 'y'), entry('y', 'x')], 'y')).toHaveLength(2)
})
