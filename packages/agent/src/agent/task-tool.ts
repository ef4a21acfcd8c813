import { newId } from '@tapetree/session'
import { z } from 'zod'
import { defineTool, type Tool, type ToolContext, type ToolOutput } from '../tools/tool.ts'
import { promptFile } from '../prompt/prompt-file.ts'
import { taskToolName, type Subagents } from './subagents.ts'

const schema = z
  .strictObject({
    description: z.string().min(1).max(200).describe('What it is about, in three to seven words, for the user.'),
    prompt: z.string().min(1).describe('The whole task: the subagent sees nothing else.'),
    tools: z.array(z.string()).optional().describe('The tools that it may use; all of yours if absent.'),
  })
  // Every call has a subagent of its own, whatever ids the model gives to its calls.
  .transform((input) => ({ ...input, childId: newId() }))

/** Lets a subagent do something. After a crash the subagent goes on where it was. */
export function taskTool(subagents: Subagents): Tool {
  const work = async (input: z.output<typeof schema>, childId: string, context: ToolContext): Promise<ToolOutput> => {
    const { text, end } = await subagents.work(childId, input, context.signal)
    if (end.outcome === 'completed') return { content: text === '' ? 'The subagent said nothing.' : text }
    const why = end.message ?? end.reason ?? 'it was stopped'
    const said = text === '' ? '' : `\nIt had said so far:\n${text}`
    return { content: `The subagent did not come to its end: ${why}${said}`, isError: true }
  }
  return defineTool({
    name: taskToolName,
    description: promptFile('task'),
    schema,
    // Its calls are judged one by one; several tasks may go on side by side.
    readOnly: true,
    replay: 'reattach',
    deadlineMs: Infinity,
    access: () => [],
    start: ({ childId }) => ({ childSession: childId }),
    run: (input, context) => work(input, input.childId, context),
    reattach: (input, { childSession }, context) => work(input, childSession ?? input.childId, context),
  })
}
