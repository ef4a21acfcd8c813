import type { SessionInfo } from '@tapetree/session'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { SessionPicker, type SessionPickerData } from './session-picker.ts'
import { golden, plainTheme, press } from './testing/panel-driver.ts'

beforeEach(() => vi.useFakeTimers({ now: Date.parse('2026-01-10T12:00:00Z') }))
afterEach(() => vi.useRealTimers())

test('sessions are shown with age, status, cost and first message', async () => {
  await expect(golden(open().picker)).toMatchFileSnapshot('golden/session-picker.txt')
})

test('typing searches names at once, and messages after a pause', () => {
  const { picker, calls, data } = open()
  press(picker, 'parser')
  expect(picker.render(80).join('\n')).not.toContain('Fix the build')
  expect(calls).toEqual([])
  vi.advanceTimersByTime(400)
  expect(calls).toEqual([['search', 'parser']])
  const hit = {
    sessionId: 'b',
    entryId: 'e',
    seq: 3,
    timestamp: '2026-01-09T12:00:00Z',
    role: 'user',
    snippet: 'the \u001b[2Jparser fails',
    matches: [],
  }
  picker.update({ ...data, found: { text: 'parser', hits: [hit] } })
  expect(picker.render(80).join('\n')).toContain('Fix the build: user: … the \u241b[2Jparser fails')
  press(picker, 'down', 'enter')
  expect(calls[1]).toEqual(['open', 'b', 'e'])
})

test('Enter searches at once if no name matches', () => {
  const { picker, calls } = open()
  press(picker, 'zebra', 'enter')
  vi.advanceTimersByTime(400)
  expect(calls).toEqual([['search', 'zebra']])
})

test('a session is opened, forked, renamed and archived; Tab switches between this folder and all', () => {
  const { picker, calls } = open()
  press(picker, 'down', 'enter', 'ctrl+b', 'ctrl+n', ' again', 'enter', 'ctrl+x', 'tab')
  expect(calls).toEqual([
    ['open', 'b', undefined],
    ['fork', 'b'],
    ['rename', 'b', 'Fix the build again'],
    ['archive', 'b'],
    ['scope', 'all'],
  ])
})

test('deleting asks once', () => {
  const { picker, calls } = open()
  press(picker, 'ctrl+k')
  expect(picker.render(80).join('\n')).toContain('Delete “write a parser for dates” with 12 messages? y / n')
  press(picker, 'n', 'ctrl+k', 'y')
  expect(calls).toEqual([['delete', 'a']])
})

test('Escape clears the search, then closes', () => {
  const { picker, calls } = open()
  press(picker, 'x', 'escape', 'escape')
  vi.advanceTimersByTime(400)
  expect(calls).toEqual([['close']])
})

function open() {
  const calls: unknown[][] = []
  const data: SessionPickerData = {
    scope: 'folder',
    sessions: [
      session('a', { firstText: 'write a parser for dates', cost: 0.25, cwd: '/code/project' }),
      session('b', {
        name: 'Fix the build',
        firstText: 'it \u001b[31mfails',
        status: 'requires_action',
        modified: '2026-01-08T12:00:00Z',
      }),
      session('c', { name: 'old', status: 'ended', damaged: true, modified: '2024-01-08T12:00:00Z' }),
    ],
  }
  const picker = new SessionPicker({
    theme: plainTheme,
    data,
    currentId: 'a',
    onOpen: (id, entryId) => calls.push(['open', id, entryId]),
    onScope: (scope) => calls.push(['scope', scope]),
    onSearch: (text) => calls.push(['search', text]),
    onFork: (id) => calls.push(['fork', id]),
    onRename: (id, name) => calls.push(['rename', id, name]),
    onArchive: (id) => calls.push(['archive', id]),
    onDelete: (id) => calls.push(['delete', id]),
    onClose: () => calls.push(['close']),
  })
  return { picker, calls, data }
}

function session(id: string, changes: Partial<SessionInfo>): SessionInfo {
  const modified = '2026-01-10T11:30:00Z'
  return {
    id,
    name: '',
    created: modified,
    modified,
    messageCount: 12,
    status: 'idle',
    queueLength: 0,
    cost: 0,
    damaged: false,
    ...changes,
  }
}
