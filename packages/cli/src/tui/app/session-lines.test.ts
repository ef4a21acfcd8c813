import type { SessionInfo } from '@tapetree/session'
import type { Entry } from '@tapetree/session/format'
import { expect, test } from 'vitest'
import { startChat } from '../testing/chat-driver.ts'

function info(id: string, more: Partial<SessionInfo>): SessionInfo {
  const rest = { messageCount: 1, status: 'idle', queueLength: 0, damaged: false } as const
  return { id, name: '', created: '', modified: '', cost: 0, ...rest, ...more }
}

test('the cost in the footer includes subagents, even while they work', async () => {
  const child = { parentSession: 'first', subagent: true } as const
  await using chat = startChat({
    arrange: (handle, source) => {
      handle.setState('usage', { turns: 1, toolCalls: 0, runMs: 0, tokens: 10, cost: 1 })
      source.sessions = [
        info('child', { ...child, cost: 0.5 }),
        info('fork', { parentSession: 'first', cost: 100 }),
        info('of-another', { ...child, parentSession: 'second', cost: 100 }),
      ]
    },
  })
  const { terminal, handle, source, clock } = chat
  await terminal.waitFor('$1.50')
  source.sessions = [...source.sessions, info('next', { ...child, cost: 0.25 })]
  clock.now += 10_000
  handle.startRun()
  handle.assistant({ type: 'tool_use', toolUse: { id: 'c', name: 'task', input: { description: 'count' } } })
  await terminal.waitFor('$1.75')
  expect(terminal.screen().join('\n')).not.toContain('$1.50')
})

test('a subagent has a line with what it does, and its request names it', async () => {
  const child = { parentSession: 'first', subagent: true, name: 'Count the files', status: 'running' } as const
  await using chat = startChat({
    size: { columns: 100, rows: 30 },
    arrange: (handle, source) => {
      source.sessions = [info('child', { ...child, cost: 0.5, messageCount: 3 })]
      const toolUse = { id: 'k', name: 'bash', input: { command: 'ls -l' } }
      const usage = { inputTokens: 1900, outputTokens: 100 }
      const message = { role: 'assistant', content: [{ type: 'tool_use', toolUse }], usage } as const
      const entry = { type: 'message', id: 'e1', seq: 1, parentId: null, timestamp: '', message } as unknown as Entry
      source.nodes = [{ entry, children: [] }]
      handle.user('go')
      handle.startRun()
      handle.assistant({ type: 'tool_use', toolUse: { id: 'c', name: 'task', input: { description: child.name } } })
      handle.record({ type: 'tool_start', toolStart: { runId: 'run-1', callId: 'c', name: 'task' } })
    },
  })
  const { terminal, handle } = chat
  await terminal.waitFor('task Count the files · [bash ls -l] · 3 messages · 2k tokens · $0.50')
  handle.requestPermission({
    requestId: 'p',
    callId: 'child/k',
    tool: 'bash',
    title: 'Run in /work: ls -l',
    options: [],
  })
  await terminal.waitFor('The subagent “Count the files” asks.')
})

test('the task list is pinned above the composer while something on it is open', async () => {
  await using chat = startChat({ size: { columns: 80, rows: 30 } })
  const { terminal, handle } = chat
  handle.record({
    type: 'plan',
    plan: {
      items: [
        { text: 'Read it', status: 'completed' },
        { text: 'Change it', status: 'in_progress' },
        { text: 'Test it', status: 'pending' },
      ],
    },
  })
  const screen = await terminal.waitFor('Tasks: 1 of 3 done')
  expect(screen).toMatch(/Tasks: 1 of 3 done\n ▸ Change it\n ○ Test it\n─/)
  handle.record({ type: 'plan', plan: { items: [{ text: 'Read it', status: 'completed' }] } })
  await terminal.waitFor((shown) => !shown.includes('Tasks:'))
})
