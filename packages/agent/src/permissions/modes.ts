import { defineTool, type Tool, type ToolOutput } from '../tools/tool.ts'
import { z } from 'zod'

const exitPlanName = 'exit_plan'

const accept = { label: 'Accept', description: 'Leave plan mode and carry the plan out.' }
const change = { label: 'Change', description: 'Keep planning. Say what should be different.' }
const refuse = { label: 'Refuse', description: 'Do not do this.' }

/** Ends mode `plan`: the user accepts, changes or refuses the plan. */
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
    // The user may take any time to answer.
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

/**
 * How much is allowed without a request. Deny rules, ask rules and control files apply in every mode, to file tools and
 * to the paths that a command names. Only mode `sandboxed` restricts what an allowed program does by itself.
 *
 * - `ask`: allows everything that only reads; the rest requires a request unless a rule allows it.
 * - `accept-edits`: also allows writing files in the working folder.
 * - `sandboxed`: also allows every command that can do its work in a sandbox, and runs it there. Programs that must leave the sandbox
 * require a request. Without a sandbox it is like `ask`.
 * - `plan`: allows only reading; denies the rest, even if a rule allows it, until the user has accepted a plan.
 * - `auto`: allows everything. A command that cannot be analyzed completely still requires a request if it might break
 * a rule.
 */
export const permissionModes = ['ask', 'accept-edits', 'sandboxed', 'plan', 'auto'] as const
export type PermissionMode = (typeof permissionModes)[number]

/** From the narrowest to the widest. */
const widths: readonly PermissionMode[] = ['plan', 'ask', 'accept-edits', 'sandboxed', 'auto']

export function isWider(mode: PermissionMode, than: PermissionMode): boolean {
  return widths.indexOf(mode) > widths.indexOf(than)
}

export function narrowest(first: PermissionMode, ...others: readonly PermissionMode[]): PermissionMode {
  return others.reduce((narrow, mode) => (isWider(narrow, mode) ? mode : narrow), first)
}

/** The tools that the model is offered. The tool that ends planning is offered only in mode `plan`. */
export function toolsFor(mode: PermissionMode, tools: readonly Tool[]): Tool[] {
  return tools.filter((tool) => (mode === 'plan' ? tool.readOnly : tool.name !== exitPlanName))
}
