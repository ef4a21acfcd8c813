import { text } from '@tapetree/session'
import type { TranscriptItem } from '@tapetree/session/view'
import { describe, expect, test } from 'vitest'
import { themeFor } from '../theme.ts'
import type { ItemContext } from './item-context.ts'
import { plainItem } from './plain-item.ts'
import { renderItem } from './render-item.ts'
import { call, Talk, talkTime } from './testing/talk.ts'

const theme = themeFor({ theme: 'dark', color: false })

function draw(talk: Talk, context: Partial<ItemContext> = {}, width = 60): string {
  const items = talk.transcript.path.items.slice()
  return `\n${items.map((item) => drawItem(item, context, width)).join('\n')}\n`
}

function drawItem(item: TranscriptItem, context: Partial<ItemContext>, width: number): string {
  return renderItem(item, { theme, ...context })(width)
    .map((line) => line.replaceAll(/\u001b\[2[58]m/g, '').trimEnd())
    .join('\n')
}

const pixel = 'iVBORw0KGgoAAAANSUhEUgAABLAAAAMgCAYAAAAjZ2H8AAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='

test('a message of the user is shown as typed, with its images', () => {
  const image = { type: 'image', image: { source: { type: 'base64', mediaType: 'image/png', data: pixel } } }
  const talk = new Talk().message({ role: 'user', content: [text('Fix **this**:\n\tfoo 漢字'), image] })
  expect(draw(talk)).toBe(`
> Fix **this**:
      foo 漢字
  [image 1200×800 png]
`)
  const pasted = new Talk().user('line\n'.repeat(100))
  expect(draw(pasted).split('\n').slice(-3)).toEqual(['  line', '  … 70 more lines below', ''])
})

test('an answer shows reasoning on one line, its text as Markdown, and how it ended', () => {
  const reasoning = { type: 'reasoning', reasoning: { text: 'First this.\nThen that.' } }
  const message = { role: 'assistant', content: [reasoning, text('Do **that**.')], durationMs: 83_000 }
  const talk = new Talk().message({ ...message, stopReason: 'aborted' })
  expect(draw(talk)).toBe(`
▸ Thought · 4 words · answer took 1 min 23 s

Do that.

– Stopped here.
`)
  expect(draw(talk, { isUnfolded: true })).toContain(
    '▾ Thought · 4 words · answer took 1 min 23 s\n  First this.\n  Then that.\n',
  )
  const failed = new Talk().message({ role: 'assistant', content: [], error: { kind: 'refused', message: 'No.' } })
  expect(draw(failed)).toBe('\n✗ No. (refused)\n')
})

describe('calls', () => {
  const output = Array.from({ length: 12 }, (_, line) => `line ${line + 1}`).join('\n')

  test('a command in the background shows its state and newest output in place of how it started', () => {
    const started =
      '(no output yet)\n\n[Started in the background as job_1. Read more with job_output, jobId job_1, since 0; stop it with job_kill.]'
    const talk = new Talk()
      .assistant(call('a', 'bash', { command: 'npm start', background: true }))
      .result('a', started)
    const news = { state: 'running', isRunning: true, text: 'listening\n' }
    const jobNews = (id: string): typeof news | undefined => (id === 'job_1' ? news : undefined)
    expect(draw(talk, { jobNews })).toBe('\n● bash npm start · runs in the background\n  listening\n')
    const cut = { ...news, isCut: true }
    expect(draw(talk, { jobNews: () => cut })).toContain('\n  … more lines above\n  listening\n')
    const ended = { state: 'exit code 1', isRunning: false, text: 'out of memory\n' }
    expect(draw(talk, { jobNews: () => ended })).toBe(
      '\n✗ bash npm start · background job: exit code 1\n  out of memory\n',
    )
    const gone = { state: 'gone', isRunning: false, text: undefined }
    for (const unknown of [gone, undefined]) expect(draw(talk, { jobNews: () => unknown })).toContain('(no output yet)')
  })

  test('a plan is its title, and unfolded the whole plan as Markdown', () => {
    const plan = '## Refuse `0`\n\n1. Change the **check**.\n2. Test it.'
    const talk = new Talk().assistant(call('a', 'exit_plan', { plan }))
    const asking = { isLive: true, callNews: () => ({ isAsked: true }) }
    expect(draw(talk, asking)).toBe('\n? Plan Refuse 0 · waiting for you\n')
    expect(draw(talk, { ...asking, isUnfolded: true })).toBe(
      '\n? Plan Refuse 0 · waiting for you\n  Refuse 0\n\n  1. Change the check.\n  2. Test it.\n',
    )
  })

  test('a call shows its state while it waits, asks, runs and is done', () => {
    const talk = new Talk().assistant(call('a', 'bash', { command: 'npm test\nnpm run lint' }))
    const live = { isLive: true, now: () => talkTime + 65_000 }
    expect(draw(talk, live)).toBe('\n○ bash npm test npm run lint · waiting\n')
    expect(draw(talk, { ...live, callNews: () => ({ isAsked: true }) })).toContain(
      '? bash npm test npm run lint · waiting for you',
    )
    talk.record('run_start', { runStart: { runId: 'r', leafId: null } })
    talk.record('tool_start', { toolStart: { runId: 'r', callId: 'a', name: 'bash' } })
    expect(draw(talk, { ...live, callNews: () => ({ output, startedAt: talkTime }) })).toBe(`
● bash npm test npm run lint · running 1 min 5 s
  … 4 more lines above
  line 5
  line 6
  line 7
  line 8
  line 9
  line 10
  line 11
  line 12
`)
    talk.result('a', `${output}\n\n[Exit code 2.]`, true)
    expect(draw(talk)).toBe(`
✗ bash npm test npm run lint · exit code 2
  … 7 more lines above
  line 8
  line 9
  line 10
  line 11
  line 12
`)
    expect(draw(talk, { isUnfolded: true }).split('\n').slice(0, 4)).toEqual([
      '',
      '✗ bash npm test · exit code 2',
      '  npm run lint',
      '  line 1',
    ])
  })

  test('a call that did not run says why, and one without a result says so', () => {
    const talk = new Talk().assistant(
      call('a', 'read', { path: 'a.ts' }),
      call('b', 'fetch', { url: 'https://a.example' }),
    )
    talk.result('a', 'Not run: the user sent a new message first.', true)
    expect(draw(talk)).toBe(`
– read a.ts · skipped: the user sent a new…
– fetch https://a.example · no result
`)
  })

  test('a change is a diff, before it is made and after', () => {
    const talk = new Talk().assistant(
      call('a', 'edit', { path: 'a.ts', oldText: 'old', newText: 'new\nlines' }),
      call('b', 'write', { path: 'b.ts', content: 'one\ntwo\n' }),
    )
    expect(draw(talk, { isLive: true })).toBe(`
○ edit a.ts · +2 −1 · waiting
  - old
  + new
  + lines
○ write b.ts · +2 · waiting
  + one
  + two
`)
    talk.result('a', 'Edited a.ts: 1 replacement.\n\n--- a.ts\n+++ a.ts\n@@ -1,2 +1,3 @@\n-old\n+new\n+lines\n same')
    talk.result('b', 'Created b.ts (2 lines, 8 bytes).')
    expect(draw(talk)).toBe(`
✓ edit a.ts · +2 −1
    1 - old
    1 + new
    2 + lines
    3   same
✓ write b.ts · +2
    1 + one
    2 + two
`)
  })

  test('reads that follow one another are a line while folded, with one for each kind if they differ, unless one failed', () => {
    const talk = new Talk().assistant(
      call('a', 'read', { path: 'a.ts' }),
      call('b', 'read', { path: 'b.ts' }),
      call('c', 'grep', { pattern: 'x' }),
      call('d', 'bash', { command: 'make' }),
    )
    for (const id of ['a', 'b', 'c']) talk.result(id, `output of ${id}`)
    talk.result('d', 'made')
    expect(draw(talk)).toBe(`
✓ Explored read 2 files, searched 1 time
  Read a.ts, b.ts
  Searched x
✓ bash make · exit code 0
  made
`)
    expect(draw(talk, { isUnfolded: true })).toContain('✓ read a.ts\n  output of a\n✓ read b.ts\n  output of b\n')
    const failed = new Talk().assistant(call('a', 'read', { path: 'a.ts' }), call('b', 'ls', { path: '.' }))
    failed.result('a', 'There is no a.ts.', true)
    failed.result('b', 'b.ts')
    expect(draw(failed)).toContain('There is no a.ts.')
  })

  test('the words that changed have a background of their own', () => {
    const input = { path: 'a.ts', oldText: 'hello world', newText: 'hello there' }
    const talk = new Talk().assistant(call('a', 'edit', input))
    const dark = themeFor({ theme: 'dark', color: true })
    const colored = draw(talk, { isLive: true, theme: dark })
    expect(colored).toContain(`${dark.diffRemovedLine('hello ')}${dark.diffRemovedWords('world')}`)
  })

  test('a long changed line is short while it is folded', () => {
    const words = 'word '.repeat(300)
    const talk = new Talk().assistant(
      call('a', 'edit', { path: 'a.ts', oldText: `${words}old`, newText: `${words}new` }),
    )
    expect(draw(talk, { isLive: true }).trim().split('\n')).toHaveLength(5)
  })

  test('plans, questions, tasks and third-party tools show what matters about them', () => {
    const items = [
      { text: 'look', status: 'completed' },
      { text: 'mend', status: 'in_progress' },
      { text: 'test', status: 'pending' },
    ]
    const talk = new Talk().assistant(
      call('a', 'todo_write', { items }),
      call('b', 'ask_user', { question: 'Which one?', options: [] }),
      call('c', 'task', { description: 'Find the cause', prompt: 'Look at everything.' }),
      call('d', 'grep', { pattern: 'TODO', path: 'src' }),
      call('e', 'github_issue', { owner: 'x', number: 5 }),
    )
    talk
      .result('a', '…')
      .result('b', 'The second')
      .result('c', 'It is **there**.')
      .result('d', 'a.ts:1: TODO')
      .result('e', 'ok')
    expect(draw(talk)).toBe(`
✓ Tasks · 1 of 3 done
✓ ask_user Which one?
  → The second
✓ task Find the cause
  It is **there**.
✓ grep TODO in src · 1 line
✓ github_issue {"owner":"x","number":5}
  ok
`)
  })
})

test('commands of the user, summaries, model changes and damage have a line each', () => {
  const found = ['src/a.ts:1:14 error: Type *string* is no number. (ts 2322)', 'src/a.ts: and 1 more']
  const news = ['<diagnostics>', 'There are new errors:', ...found, '</diagnostics>'].join('\n')
  const talk = new Talk()
    .message({
      role: 'bashExecution',
      content: [],
      bashExecution: { command: 'ls', output: 'a\n\u001b[1mb\u001b[0m', exitCode: 0 },
    })
    .message({
      role: 'bashExecution',
      content: [],
      bashExecution: { command: 'top', output: '', cancelled: true, excludeFromContext: true },
    })
    .entry('model_change', { modelChange: { provider: 'p', modelId: 'm' } })
    .entry('thinking_level', { thinkingLevel: { thinkingLevel: 'high' } })
    .entry('system', { system: { prompt: 'Be kind.', tools: [], sha256: 'x' } })
    .entry('compaction', { compaction: { summary: '## Goal\nMend it.', firstKeptEntryId: 'e1', tokensBefore: 90_000 } })
    .entry('branch_summary', { branchSummary: { summary: 'It failed.', fromId: 'e1' } })
    .message({ role: 'custom', content: [text('A *note*.')] })
    .message({ role: 'custom', content: [text(news)] })
    .message({ role: 'custom', content: [text('<environment>\nDate: today\nBranch: main\n</environment>')] })
    .entry('gap', { gap: { reason: 'its checksum is wrong' } })
    .result('orphan', 'late')
    .lose(3)
  expect(draw(talk, { summarized: 12 })).toBe(`
! you ran ls · exit code 0
  a
  b
! you ran top · stopped · not shown to the model
· Model: p/m
· Thinking: high

▸ 12 messages summarized · 90,000 tokens before
▸ Summary of another branch
A note.
▸ 2 errors in src/a.ts

! A line of the log is damaged here: its checksum is wrong
✓ result orphan · its call is not on this branch
  late
! 3 lines of the log are lost here. Run tapetree log verify
  for details.
`)
  expect(draw(talk, { isUnfolded: true })).toContain(
    '▾ Earlier messages summarized · 90,000 tokens before\n  Goal\n\n  Mend it.\n',
  )
  expect(draw(talk, { isUnfolded: true })).toContain(
    '▾ 2 errors in src/a.ts\n  src/a.ts:1:14 error: Type *string* is no number. (ts 2322)\n  src/a.ts: and 1 more\n',
  )
})

test('a screen reader hears the author, and the outcome of a call', () => {
  const talk = new Talk()
    .user('Run\nit')
    .assistant(
      { type: 'reasoning', reasoning: { text: 'hm' } },
      'I **will**.',
      call('a', 'bash', { command: 'make\nall' }),
    )
    .result('a', 'fine')
    .message({ role: 'custom', content: [text('<diagnostics>\nNew:\na.ts:1:1 error: No.\n</diagnostics>')] })
    .lose(1)
  expect(talk.transcript.path.items.slice().flatMap(plainItem)).toEqual([
    'You: Run',
    'it',
    'Agent: I **will**.',
    'Tool bash: make all, exit code 0',
    'fine',
    'Language server: 1 error in a.ts',
    'a.ts:1:1 error: No.',
    'Warning: 1 line of the log is lost here. Run tapetree log verify for details.',
  ])
})

test('a line of a megabyte costs no more than its visible part', () => {
  const talk = new Talk().assistant(call('a', 'bash', { command: 'x'.repeat(1_000_000) }))
  talk.result('a', `first\n${'y'.repeat(1_000_000)}`)
  const lines = draw(talk, {}, 100).split('\n')
  expect(lines[1]).toMatch(/^✓ bash x+… · exit code 0$/)
  expect(lines.slice(2)).toEqual(['  first', `  ${'y'.repeat(98)}`, `  ${'y'.repeat(97)}…`, ''])
  expect(draw(talk, { isUnfolded: true }, 100).split('\n').at(-2)).toMatch(/ y+… 990,000 more characters on this line$/)
})
