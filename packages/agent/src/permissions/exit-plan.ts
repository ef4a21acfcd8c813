import { z } from 'zod'
import { defineTool, type Tool, type ToolOutput } from '../tools/tool.ts'

export const exitPlanName = 'exit_plan'

const accept = { label: 'Accept', description: 'Leave plan mode and carry the plan out.' }
const change = { label: 'Change', description: 'Go on planning. Say what should be different.' }
const refuse = { label: 'Refuse', description: 'Do not do this.' }

/** Ends mode `plan`: the user accepts, changes or refuses what the model would do. */
export function exitPlanTool(options: { onAccepted: () => void | Promise<void> }): Tool {
  return defineTool({
    name: exitPlanName,
    description: [
      'Shows the user your plan and asks whether to carry it out. Call it when the plan is complete.',
      'The plan is Markdown: what you will change, in which files, in which order, and how you will check it.',
      'Do not change anything before it was accepted.',
    ].join('\n'),
    schema: z.strictObject({ plan: z.string().min(1).describe('The whole plan, as Markdown.') }),
    readOnly: true,
    replay: 'safe',
    // The user may take as long as they like.
    deadlineMs: Infinity,
    access: () => [{ type: 'ask' }],
    run: async ({ plan }, context): Promise<ToolOutput> => {
      const { text, isCancelled } = await context.ask({ question: plan, options: [accept, change, refuse] })
      if (isCancelled || text === refuse.label) {
        return { content: 'The user refused the plan. Do not carry it out; ask what they want instead.', isError: true }
      }
      if (text === change.label) return { content: 'The user wants another plan. Ask what should be different.' }
      if (text !== accept.label)
        return { content: `The user wants the plan changed: ${text}\nChange it and show it again.` }
      await options.onAccepted()
      return { content: 'The user accepted the plan. Plan mode is over: carry it out now.' }
    },
  })
}
