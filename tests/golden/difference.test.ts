import { expect, test } from 'vitest'
import { describeDifference } from './difference.ts'

const line = (id: string, words: string): string => JSON.stringify({ type: 'message', id, message: { words } })

test('equal logs differ in nothing', () => {
  expect(describeDifference([line('m1', 'a')], [line('m1', 'a')])).toEqual([])
})

test('of a line that changed only the members are shown that did', () => {
  const before = [line('m1', 'a'), line('m2', 'b'), line('m3', 'c')]
  const after = [line('m1', 'a'), line('m2', 'x'), line('m3', 'c')]
  expect(describeDifference(before, after)).toEqual(['line 2, "message":', '  message.words: "b" became "x"'])
})

test('lines that came or went are shown as they stand', () => {
  const came = '{"type":"usage","id":"u1"}'
  expect(describeDifference([line('m1', 'a')], [came, line('m1', 'a')])).toEqual([`+ ${came}`])
  expect(describeDifference([line('m1', 'a'), came], [line('m1', 'a')])).toEqual([`- ${came}`])
})

test('the order of the members counts', () => {
  const [before, after] = ['{"type":"usage","id":"u1"}', '{"id":"u1","type":"usage"}']
  expect(describeDifference([before], [after])).toEqual([
    'line 1, "usage":',
    '  the same members in another order',
    `  - ${before}`,
    `  + ${after}`,
  ])
})

test('members that came or went are shown as nothing', () => {
  expect(describeDifference(['{"type":"a","list":[]}'], ['{"type":"a","list":[1]}'])).toEqual([
    'line 1, "a":',
    '  list: [] became nothing',
    '  list.0: nothing became 1',
  ])
})
