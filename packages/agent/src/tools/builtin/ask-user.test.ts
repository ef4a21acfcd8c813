import { expect, test } from 'vitest'
import { accessOf, callTool, testContext } from '../../testing/tool-context.ts'
import { askUserTool } from './ask-user.ts'

test('the answer is the result', async () => {
  const context = testContext({ cwd: '/', answer: { text: 'Postgres', isCancelled: false } })
  const options = [{ label: 'Postgres', description: 'a server' }, { label: 'SQLite' }]
  expect(await callTool(askUserTool, { question: 'Which database?', options }, context)).toEqual({
    content: 'Postgres',
  })
  expect(context.questions).toEqual([{ question: 'Which database?', options }])
})

test('without options the user answers with free text', async () => {
  const context = testContext({ cwd: '/', answer: { text: 'call it Ada', isCancelled: false } })
  expect(await callTool(askUserTool, { question: 'What name?' }, context)).toEqual({ content: 'call it Ada' })
  expect(context.questions).toEqual([{ question: 'What name?', options: [] }])
})

test('a cancelled question is reported', async () => {
  const context = testContext({ cwd: '/', answer: { text: '', isCancelled: true } })
  expect((await callTool(askUserTool, { question: 'Well?' }, context)).content).toMatch(/^The user did not answer/)
})

test('two options with the same label are invalid', async () => {
  const context = testContext({ cwd: '/' })
  const input = { question: 'Which?', options: [{ label: 'a' }, { label: 'a' }] }
  expect(await callTool(askUserTool, input, context)).toMatchObject({ isError: true })
  expect(context.questions).toEqual([])
})

test('it needs no permission, has no deadline and may be asked again', () => {
  expect(accessOf(askUserTool, { question: 'x' }, { cwd: '/' })).toEqual([{ type: 'ask' }])
  expect(askUserTool).toMatchObject({ name: 'ask_user', readOnly: true, replay: 'safe', deadlineMs: Infinity })
})
