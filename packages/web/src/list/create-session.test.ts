import type { RestClient, SessionSummary } from '@tapetree/client'
import { expect, test } from 'vitest'
import { sessionCreator } from './create-session.ts'

test('pressing Create again after a lost answer opens the same session', async () => {
  const commands: unknown[] = []
  const createSession: RestClient['createSession'] = async (_, { commandId } = {}) => {
    commands.push(commandId)
    if (commands.length === 1) throw new Error('The answer was lost.')
    return { id: `of ${commandId}` } as SessionSummary
  }
  const create = sessionCreator({ createSession })
  await expect(create({ prompt: 'Hello.' })).rejects.toThrow('lost')
  expect(await create({ prompt: 'Hello.' })).toBe(`of ${String(commands[0])}`)
  expect(await create({ prompt: 'Another.' })).not.toBe(`of ${String(commands[0])}`)
})
