import { memoryStore, text } from '@tapetree/session'
import type { Entry } from '@tapetree/session/format'
import { assistant, call, toolResult, user } from '@tapetree/session/testing'
import { expect, test } from 'vitest'
import { callArgument } from './content-text.ts'
import { describeEntry } from './describe-entry.ts'

test('an entry is described in the terms of the glossary, and by its subject', async () => {
  await using session = await memoryStore().create({})
  await user(session, ' go on\n')
  await assistant(
    session,
    'yes',
    call('c1', 'grep', { path: 'src', pattern: 'x' }),
    call('c2', 'todo_write', { items: [] }),
  )
  await toolResult(session, 'c1', 'nothing')
  await session.appendMessage('bashExecution', [], { with: { bashExecution: { command: 'ls', output: '' } } })
  await session.appendMessage('custom', [text('news')])
  const lines = ['a.ts:1:1 error: No.', 'a.ts:2:1 error: No.']
  const news = ['<diagnostics>', 'There are new errors:', ...lines, '</diagnostics>']
  await session.appendMessage('custom', [text(news.join('\n'))])
  await session.append({ type: 'thinking_level', thinkingLevel: { thinkingLevel: 'high' } })
  const told: string[] = []
  const tell = ({ entry, children }: { entry: Entry; children: readonly { entry: Entry }[] }): void => {
    const { kind, words } = describeEntry(entry)
    told.push(`${kind}: ${words}`)
    for (const child of children) tell(child as Parameters<typeof tell>[0])
  }
  for (const root of await session.getTree()) tell(root)
  expect(told).toEqual([
    'user: go on',
    'assistant: yes [grep x in src] [todo_write]',
    'tool result: nothing',
    'command: ls',
    'custom: news',
    'language server: 2 errors in a.ts',
    'thinking level: high',
  ])
})

test('a call is described by its command, path or job, and otherwise by all arguments', () => {
  const argument = (input: Record<string, unknown>): string => callArgument({ name: 'any', input })
  expect(
    [{ content: 'x', path: 'a' }, { jobId: 'j1', wait: 5 }, { only: 'this' }, { a: 1, b: 'c' }, {}].map(argument),
  ).toEqual(['a', 'j1', 'this', '{"a":1,"b":"c"}', ''])
})

test('a plan is described by its title, without the signs of Markdown', () => {
  const argument = (plan: string): string => callArgument({ name: 'exit_plan', input: { plan } })
  expect(
    ['## A `timeout` of **0** ##\n\n1. Change it', '\n\n1. Change `it`\n2. Test', 'Plain\ntext', ''].map(argument),
  ).toEqual(['A timeout of 0', 'Change it', 'Plain', ''])
})
