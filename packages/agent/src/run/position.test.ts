import { memoryStore, text, type Content, type Session } from '@tapetree/session'
import { expect, test } from 'vitest'
import { foreignApi } from './foreign-agent.ts'
import { positionOf } from './position.ts'

async function foreignAnswer(session: Session, ...content: Content[]): Promise<void> {
  await session.appendMessage('assistant', content, { with: { api: foreignApi } })
}

const call = (id: string): Content => ({ type: 'tool_use', toolUse: { id, name: 'other', input: {} } })

async function openCallsOf(session: Session): Promise<string[]> {
  return (await positionOf(session)).openCalls.map(({ id }) => id)
}

test('a command that the user ran meanwhile does not hide the open calls of a foreign agent', async () => {
  await using session = await memoryStore().create()
  await session.appendMessage('user', [text('go')])
  await foreignAnswer(session, call('1'))
  await foreignAnswer(session, call('2'))
  const bashExecution = { command: 'ls', output: 'a.txt' }
  await session.append({ type: 'message', message: { role: 'bashExecution', content: [], bashExecution } })
  await session.appendMessage('custom', [text('a note')])
  await foreignAnswer(session, text('On it.'))
  expect(await openCallsOf(session)).toEqual(['1', '2'])
})

test('open calls of a foreign agent before the last prompt do not count', async () => {
  await using session = await memoryStore().create()
  await session.appendMessage('user', [text('go')])
  await foreignAnswer(session, call('1'))
  await session.appendMessage('user', [text('again')])
  await foreignAnswer(session, text('On it.'))
  expect(await openCallsOf(session)).toEqual([])
})
