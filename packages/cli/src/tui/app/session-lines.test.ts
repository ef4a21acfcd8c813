import type { SessionInfo } from '@tapetree/session'
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
