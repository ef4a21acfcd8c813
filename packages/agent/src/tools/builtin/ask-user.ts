import { z } from 'zod'
import { descriptionOf } from './description.ts'
import { defineTool } from '../tool.ts'

const maxOptions = 8

const schema = z.object({
  question: z.string().min(1).max(4000).describe('One question, understandable without the conversation.'),
  options: z
    .array(
      z.object({
        label: z.string().min(1).max(200).describe('A few words.'),
        description: z.string().max(1000).optional().describe('What choosing it means.'),
      }),
    )
    .max(maxOptions)
    .refine((options) => new Set(options.map(({ label }) => label)).size === options.length, {
      error: 'Two options have the same label.',
    })
    .optional()
    .describe('Answers to choose from. The user may also answer in their own words.'),
})

export const askUserTool = defineTool({
  name: 'ask_user',
  description: descriptionOf('ask-user'),
  schema,
  readOnly: true,
  // Finds the pending question again.
  replay: 'safe',
  // A person has no time limit.
  deadlineMs: Infinity,
  access: () => [{ type: 'ask' }],
  run: async ({ question, options = [] }, context) => {
    const answer = await context.ask({
      question,
      options: options.map(({ label, description }) => ({ label, ...(description !== undefined && { description }) })),
    })
    if (answer.isCancelled) return { content: 'The user did not answer the question. Continue without it, or stop.' }
    return { content: answer.text }
  },
})
