import { assistant, call, toolResult, user } from '@tapetree/session/testing'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { SessionHome } from '../../testing/session-home.ts'

let home: SessionHome
let id: string

beforeEach(async () => {
  home = await SessionHome.make()
  id = await home.session(async (session) => {
    await user(session, 'go \u001b]0;title\u0007\nnow')
    await assistant(session, 'reading', call('c1', 'read', { path: 'a.txt' }))
    await toolResult(session, 'c1', 'line\n'.repeat(30))
    await assistant(session, 'done')
  })
})

afterEach(() => home[Symbol.asyncDispose]())

function withoutTimes(out: string): string[] {
  return out.split('\n').map((line) => line.replace(/^\d\d:\d\d:\d\d /, ''))
}

test('without a terminal every event is printed at once, on one or more lines', async () => {
  const { out, code } = await home.run(['play', id])
  expect(code).toBe(0)
  const lines = withoutTimes(out)
  expect(lines.slice(0, 6)).toEqual([
    `start ${home.cwd}`,
    'user go ␛]0;title␇',
    '         now',
    'agent reading',
    'call read a.txt',
    'result line',
  ])
  expect(lines.slice(-3)).toEqual(['         … 11 more lines', 'agent done', ''])
})

test('playback starts at a number, an id or a time', async () => {
  const events = (await home.run(['play', id, '--json'])).out
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as unknown)
  const last = events.at(-1) as { line_id: string; seq: number; timestamp: string }
  for (const from of [String(last.seq), last.line_id]) {
    expect(withoutTimes((await home.run(['play', id, '--from', from])).out)).toEqual(['agent done', ''])
  }
  expect((await home.run(['play', id, '--from', '2999-01-01'])).out).toBe('')
  expect((await home.run(['play', id, '--from', 'nowhere'])).code).toBe(5)
  expect((await home.run(['play', id, '--speed', 'quick'])).code).toBe(2)
})

test('on a terminal it shows its position, and keys move it', async () => {
  const { out, code } = await home.run(['play', id, '--speed', '2'], { isTTY: true, columns: 80, stdin: '+++++++' })
  expect(code).toBe(0)
  expect(out).toContain('▶ 0/6')
  expect(out).toContain('6/6')
  expect(out).toContain('agent')
  expect((await home.run(['play', id], { isTTY: true, stdin: 'q' })).code).toBe(0)
  expect((await home.run(['play', id], { isTTY: true, stdin: '\u0003' })).code).toBe(130)
})
