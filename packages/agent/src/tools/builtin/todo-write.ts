import { z } from 'zod'
import { descriptionOf } from './description.ts'
import { defineTool } from '../tool.ts'

const maxItems = 100

const schema = z.object({
  items: z
    .array(
      z.object({
        text: z.string().min(1).max(1000).describe('The task.'),
        status: z.enum(['pending', 'in_progress', 'completed']),
      }),
    )
    .max(maxItems)
    .describe('The whole list. It replaces the previous one.'),
})

export const todoWriteTool = defineTool({
  name: 'todo_write',
  description: descriptionOf('todo-write'),
  schema,
  readOnly: true,
  replay: 'safe',
  access: () => [],
  run: async ({ items }, context) => {
    await context.append({ type: 'plan', plan: { items } })
    if (items.length === 0) return { content: 'The list is empty.' }
    return { content: items.map(({ text, status }) => `${marks[status]} ${text}`).join('\n') }
  },
})

const marks = { pending: '[ ]', in_progress: '[>]', completed: '[x]' }
