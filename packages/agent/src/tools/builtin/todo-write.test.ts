import { expect, test } from 'vitest'
import { accessOf, callTool, testContext } from '../../testing/tool-context.ts'
import { todoWriteTool } from './todo-write.ts'

test('the list becomes the plan, and the result repeats it', async () => {
  const context = testContext({ cwd: '/' })
  const items = [
    { text: 'look', status: 'completed' },
    { text: 'change', status: 'in_progress' },
    { text: 'test', status: 'pending' },
  ]
  expect(await callTool(todoWriteTool, { items }, context)).toEqual({ content: '[x] look\n[>] change\n[ ] test' })
  expect(context.records).toEqual([{ type: 'plan', plan: { items } }])
})

test('an empty list clears it', async () => {
  const context = testContext({ cwd: '/' })
  expect(await callTool(todoWriteTool, { items: [] }, context)).toEqual({ content: 'The list is empty.' })
  expect(context.records).toEqual([{ type: 'plan', plan: { items: [] } }])
})

test('an unknown status is not valid', async () => {
  const context = testContext({ cwd: '/' })
  const items = [{ text: 'x', status: 'done' }]
  expect(await callTool(todoWriteTool, { items }, context)).toMatchObject({ isError: true })
  expect(context.records).toEqual([])
})

test('it accesses nothing', () => {
  expect(accessOf(todoWriteTool, { items: [] }, { cwd: '/' })).toEqual([])
  expect(todoWriteTool).toMatchObject({ name: 'todo_write', readOnly: true, replay: 'safe' })
})
