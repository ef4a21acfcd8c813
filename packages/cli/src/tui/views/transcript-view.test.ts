import { stripVTControlCharacters } from 'node:util'
import { beforeEach, describe, expect, test } from 'vitest'
import { themeFor, type Theme } from '../theme.ts'
import { call, Talk, talkTime } from './testing/talk.ts'
import { TranscriptView } from './transcript-view.ts'

const plain = themeFor({ theme: 'dark', color: false })
const width = 40
let now = talkTime
let drawnLines = 0
/** Counts the rendered lines of user messages. */
const counting: Theme = { ...plain, userMessage: (line) => ((drawnLines += line.startsWith(' ') ? 1 : 0), line) }

beforeEach(() => {
  now = talkTime
  drawnLines = 0
})

function show(
  talk: Talk,
  { rows = 6, onOlder = () => {} }: { rows?: number; onOlder?: () => void } = {},
): TranscriptView {
  const view = new TranscriptView({ theme: counting, now: () => now, onOlder })
  view.update(talk.transcript)
  view.setRows(rows)
  return view
}

/** Without the marks of a search. */
function screen(view: TranscriptView, columns = width): string[] {
  return view.render(columns).map((line) => stripVTControlCharacters(line).trimEnd())
}

function talkOf(count: number, options: { after?: number } = {}): Talk {
  const talk = new Talk(options)
  for (let number = 1; number <= count; number++) talk.user(`message ${number}`)
  return talk
}

test('a row of the screen knows the call of a subagent whose line is drawn there', () => {
  const task = (id: string): ReturnType<typeof call> => call(id, 'task', { description: 'count' })
  const talk = new Talk().user('task count').assistant('- task count', task('a'), call('b', 'bash'), task('c'))
  const view = show(talk.result('a', 'task count').result('c', 'done').user('Thanks'), { rows: 20 })
  const tasks = screen(view).map((row, index) => [row, view.taskAt(index)?.callId])
  expect(tasks.filter(([, id]) => id !== undefined)).toEqual([
    ['✓ task count', 'a'],
    ['✓ task count', 'c'],
  ])
})

test('the prompt that is drawn over the line of a subagent is not that line', () => {
  const talk = new Talk()
    .user('Count')
    .assistant(call('a', 'task', { description: 'count' }))
    .result('a', 'done')
  for (let number = 1; number <= 10; number++) talk.assistant(`answer ${number}`)
  const view = show(talk, { rows: 8 })
  view.showItem('e2')
  expect([screen(view)[0], view.taskAt(0)]).toEqual(['> Count', undefined])
  view.scrollBy(-1)
  expect([screen(view)[1], view.taskAt(1)?.callId]).toEqual(['✓ task count', 'a'])
})

test('the calls of an answer to which the user went back do not wait while the next run is at work', () => {
  const talk = new Talk()
    .record('run_start', { runStart: { runId: 'r', leafId: null } })
    .assistant(call('a', 'bash', { command: 'ls' }))
  const view = show(talk)
  expect(screen(view)).toContain('○ bash ls · waiting')
  view.update(talk.user('Go on').transcript)
  expect(screen(view)).toContain('– bash ls · no result')
})

describe('scrolling', () => {
  test('the end is followed until the user scrolls up, and then the position is kept', () => {
    const talk = talkOf(5)
    const view = show(talk)
    expect(screen(view)).toEqual(['> message 3', '', '> message 4', '', '> message 5', ''])
    view.update(talk.user('message 6').transcript)
    expect(screen(view)).toEqual(['> message 4', '', '> message 5', '', '> message 6', ''])
    view.scrollBy(-3)
    const read = screen(view)
    expect([read, view.isAtEnd, view.rowsAbove, view.rowsBelow]).toEqual([
      ['', '> message 3', '', '> message 4', '', '> message 5'],
      false,
      3,
      3,
    ])
    view.update(talk.user('message 7').transcript)
    expect(screen(view)).toEqual(read)
    view.scrollBy(100)
    expect([screen(view).at(-2), view.isAtEnd]).toEqual(['> message 7', true])
    view.scrollTo('start')
    expect([screen(view)[0], view.rowsAbove]).toEqual(['> message 1', 0])
    view.scrollBy(-5)
    expect(screen(view)[0]).toBe('> message 1')
  })

  test('a short conversation is at the top, and there is nothing to scroll', () => {
    const view = show(talkOf(1), { rows: 4 })
    view.scrollBy(-3)
    expect([screen(view), view.isAtEnd]).toEqual([['> message 1', '', '', ''], true])
  })

  test('another width shows the same message at the top', () => {
    const talk = new Talk()
    for (let number = 1; number <= 50; number++) talk.user(`message ${number} ${'word '.repeat(20)}`)
    const view = show(talk)
    view.scrollTo('end')
    screen(view)
    view.scrollBy(-60)
    const [top] = screen(view).filter((line) => line.startsWith('>'))
    drawnLines = 0
    expect(
      screen(view, 120)
        .find((line) => line.startsWith('>'))
        ?.slice(0, 12),
    ).toBe(top?.slice(0, 12))
    expect(drawnLines).toBeLessThan(20)
  })

  test('an entry can be shown, and text can be found above, repeatedly', () => {
    const talk = talkOf(20)
      .assistant(call('a', 'bash', { command: 'make' }))
      .result('a', `needle\n${'x\n'.repeat(30)}`)
    for (let number = 1; number <= 20; number++) talk.user(`later ${number}`)
    const view = show(talk)
    expect([view.showItem('e3'), screen(view)[0], view.showItem('nowhere')]).toEqual([true, '> message 3', false])
    expect(view.find('MESSAGE 1')).toEqual({ number: 1, count: 11 })
    expect(screen(view)).toContain('> message 19')
    expect(view.find('message 1')).toEqual({ number: 2, count: 11 })
    expect(screen(view)).toContain('> message 18')
    expect(view.find('nothing like it')).toBeUndefined()
    expect([view.find('> x'), view.find('needle')]).toEqual([undefined, { number: 1, count: 1 }])
    expect(screen(view)).toContain('  needle')
    expect([view.find('needle', { wraps: false }), view.find('needle')]).toEqual([undefined, { number: 1, count: 1 }])
  })

  test('all matches in view are marked, also across colors, until the search ends', () => {
    const view = new TranscriptView({ theme: themeFor({ theme: 'dark', color: true }), now: () => now })
    view.setRows(10)
    view.update(new Talk().user('a bird').assistant('The **bi**rd and the Bird.').transcript)
    const marks = (): string[] =>
      Array.from(
        view
          .render(60)
          .join('')
          .matchAll(/\u001b\[7m([^\u001b]*)/g),
        ([, text = '']) => text,
      )
    expect(marks()).toEqual([])
    view.find('bird')
    expect(marks().join('|')).toMatch(/^bird\|bi\|+rd\|Bird$/)
    view.endFind()
    expect(marks()).toEqual([])
  })

  test('older messages are requested when the start comes into view, and appear above', () => {
    let asked = 0
    const view = show(talkOf(10, { after: 50 }), { onOlder: () => asked++ })
    screen(view)
    expect([view.hasOlder, asked]).toEqual([true, 0])
    view.scrollTo('start')
    expect(screen(view).slice(0, 3)).toEqual(['… older messages are above', '', '> message 1'])
    screen(view)
    expect(asked).toBe(1)
    view.scrollBy(2)
    expect(screen(view)[0]).toBe('> message 1')
    const older = new Talk()
    for (let number = 1; number <= 50; number++) older.user(`older ${number}`)
    for (let number = 1; number <= 10; number++) older.user(`message ${number}`)
    view.update(older.transcript)
    expect([screen(view)[0], view.hasOlder]).toEqual(['> message 1', false])
    view.scrollBy(-2)
    expect(screen(view)[0]).toBe('> older 50')
  })
})

describe('cost', () => {
  test('of ten thousand messages only the visible ones are rendered, and each only once', () => {
    const view = show(talkOf(10_000), { rows: 40 })
    screen(view)
    expect(drawnLines).toBe(20)
    screen(view)
    expect(drawnLines).toBe(20)
    for (let page = 0; page < 10; page++) {
      view.scrollBy(-38)
      screen(view)
    }
    expect(drawnLines).toBeLessThan(240)
    view.scrollTo('start')
    screen(view)
    expect(drawnLines).toBeLessThan(300)
    expect([view.rowsAbove, view.rowsBelow > 10_000]).toEqual([0, true])
  })

  test('a new message is rendered alone', () => {
    const talk = talkOf(1000)
    const view = show(talk, { rows: 40 })
    screen(view)
    drawnLines = 0
    view.update(talk.user('one more').transcript)
    screen(view)
    expect(drawnLines).toBe(1)
  })
})

describe('live content', () => {
  test('an answer is shown while it streams, and then as it is in the log', () => {
    const talk = new Talk().user('go').record('run_start', { runStart: { runId: 'r', leafId: null } })
    const view = show(talk, { rows: 8 })
    view.update(talk.live('e3', 'reasoning', 'hm', 0).transcript)
    screen(view)
    now += 4000
    view.update(talk.live('e3', 'text', 'Some **bo', 1).live('e3', 'tool_input', '{"a', 2).transcript)
    expect(screen(view)).toEqual([
      '> go',
      '',
      '▸ Thinking · 2 characters · 4 s',
      '',
      'Some **bo',
      '',
      '○ Preparing a tool call',
      '',
    ])
    view.update(talk.assistant('Some **bold** words.').transcript)
    expect(screen(view).slice(0, 4)).toEqual(['> go', '', 'Some bold words.', ''])
  })

  test('a call shows its output and elapsed time; one that waits for permission says so', () => {
    const talk = new Talk().record('run_start', { runStart: { runId: 'r', leafId: null } })
    const view = show(talk, { rows: 5 })
    view.update(
      talk.assistant(call('a', 'bash', { command: 'make' }), call('b', 'bash', { command: 'rm x' })).transcript,
    )
    talk.record('tool_start', { toolStart: { runId: 'r', callId: 'a', name: 'bash' } })
    view.update(talk.live('a', 'tool_output', 'cc a.c\n\u001b[31mld').transcript)
    now += 2000
    const request = { requestId: 'q', callId: 'b', tool: 'bash', title: 'rm x', options: [] }
    view.update(talk.record('permission_request', { permissionRequest: request }).transcript)
    expect(screen(view)).toEqual(['● bash make · running 2 s', '  cc a.c', '  ld', '? bash rm x · waiting for you', ''])
    view.update(talk.result('a', 'done').transcript)
    expect(screen(view)[0]).toBe('✓ bash make · exit code 0')
  })

  test('an error says what happens next, and a stopped run says so', () => {
    const talk = new Talk().user('go').record('run_start', { runStart: { runId: 'r', leafId: null } })
    const error = { kind: 'overloaded', message: 'Too busy.' }
    talk.record('attempt', { attempt: { runId: 'r', item: 'x', error, content: [] } })
    const view = show(talk)
    expect(screen(view).slice(2, 4)).toEqual(['✗ Too busy. (overloaded)', '  The run continues with a retry.'])
    view.update(talk.record('run_end', { runEnd: { runId: 'r', outcome: 'failed' } }).transcript)
    expect(screen(view).slice(2, 5).join(' ')).toBe(
      '✗ Too busy. (overloaded)   The run has ended. /retry tries again   from here; a new message continues.',
    )
    talk
      .record('run_start', { runStart: { runId: 's', leafId: null } })
      .record('run_end', { runEnd: { runId: 's', outcome: 'aborted' } })
    view.update(talk.transcript)
    expect(screen(view).slice(2, 5)).toEqual([
      '✗ An earlier run failed: Too busy.',
      '– The run was stopped. Everything it did',
      '  is kept.',
    ])
  })

  test('the error of a failed run stays visible after the next prompt, until a run completes', () => {
    const failure = '✗ An earlier run failed: Too busy.'
    const talk = new Talk().user('go').record('run_start', { runStart: { runId: 'r', leafId: null } })
    talk.record('error', { error: { message: 'Too busy.', kind: 'overloaded', runId: 'r' } })
    const view = show(talk.record('run_end', { runEnd: { runId: 'r', outcome: 'failed' } }))
    expect(screen(view)).not.toContain(failure)
    view.update(talk.user('again').record('run_start', { runStart: { runId: 's', leafId: null } }).transcript)
    expect(screen(view)).toContain(failure)
    view.update(talk.record('run_end', { runEnd: { runId: 's', outcome: 'completed' } }).transcript)
    expect(screen(view)).not.toContain(failure)
  })

  test('details unfold everything, and the compaction shows how much it replaces', () => {
    const talk = talkOf(12).entry('compaction', {
      compaction: { summary: 'All of it.', firstKeptEntryId: 'e12', tokensBefore: 5 },
    })
    const view = show(talk)
    expect(screen(view).at(-2)).toBe('▸ 11 messages summarized · 5 tokens bef…')
    view.toggleDetails()
    expect(screen(view).at(-2)).toBe('  All of it.')
  })

  test('code is colored as soon as its grammar is loaded', async () => {
    const { promise, resolve } = Promise.withResolvers<void>()
    const dark = themeFor({ theme: 'dark', color: true })
    const view = new TranscriptView({ theme: dark, now: () => now, onChange: resolve })
    view.update(new Talk().assistant('```js\nreturn\n```').transcript)
    expect(view.render(width)[0]).toBe(`  ${dark.code('return')}`)
    await promise
    expect(view.render(width)[0]).toBe(`  ${dark.syntax['keyword']?.('return')}`)
  })
})

describe('a run', () => {
  test('reads of several answers are one row, and a read that runs is named', () => {
    const talk = new Talk().user('go').record('run_start', { runStart: { runId: 'r', leafId: null } })
    talk.assistant(call('a', 'read', { path: 'a.ts' })).result('a', 'one')
    talk.assistant(call('b', 'read', { path: 'b.ts' })).result('b', 'two')
    const view = show(talk, { rows: 12 })
    expect(screen(view).filter(Boolean)).toEqual(['> go', '✓ Explored read 2 files · a.ts, b.ts'])
    talk.assistant(call('c', 'grep', { pattern: 'needle' }))
    talk.record('tool_start', { toolStart: { runId: 'r', callId: 'c', name: 'grep' } })
    view.update(talk.transcript)
    expect(screen(view).join('\n')).toContain('● Exploring read 2 files, sear… · needle')
    expect(screen(view, 80).join('\n')).toContain('searched 1 time · needle')
    view.toggleDetails()
    expect(screen(view).join('\n')).toMatch(/✓ read a\.ts\n {2}one\n✓ read b\.ts\n {2}two\n● grep needle/)
  })

  test('ends with the time, the changed files and the cost', () => {
    const talk = new Talk().user('go')
    talk.message({ ...answer(call('a', 'edit', { path: 'a.ts', oldText: 'x', newText: 'y' })), usage: { cost: 0.02 } })
    talk.result('a', 'Edited a.ts: 1 replacement.\n\n--- a.ts\n+++ a.ts\n@@ -1 +1,2 @@\n-x\n+y\n+z')
    talk.message({ ...answer({ type: 'text', text: { content: 'Done.' } }), usage: { cost: 0.01 } })
    expect(
      screen(show(talk, { rows: 12 }))
        .filter(Boolean)
        .at(-1),
    ).toBe('– Worked 0 s · 1 file +2 −1 · $0.03')
    // A conversation without work needs no account.
    expect(screen(show(new Talk().user('Hi').assistant('Hello.'), { rows: 12 })).join('\n')).not.toContain('Worked')
  })

  test('the prompt stays in view while its answer scrolls', () => {
    const talk = new Talk().user('first').assistant('short').user('second prompt').assistant('word\n\n'.repeat(20))
    const view = show(talk, { rows: 10 })
    expect(screen(view)[0]).toBe('> second prompt')
    view.scrollTo('start')
    expect(screen(view).filter((row) => row.startsWith('>'))).toEqual(['> first', '> second prompt'])
  })
})

function answer(...content: unknown[]): Record<string, unknown> {
  return { role: 'assistant', content }
}
