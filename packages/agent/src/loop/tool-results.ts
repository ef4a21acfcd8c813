import type { ToolUse } from '@tapetree/session'
import type { ToolOutput } from '../tools/tool.ts'
import type { LoopContext } from './loop-context.ts'

/** What the model is told about calls that were not carried out to their end. */
export const words = {
  aborted: 'Not run: the user stopped the run.',
  skipped: 'Not run: the user sent a new message first.',
  interrupted: 'Stopped because the user sent a new message. It may have taken effect in part.',
  stopped: 'Stopped by the user. It may have taken effect in part.',
  limited: (limit: string) => `Not run: ${limit}`,
  unknown: (name: string, known: Iterable<string>) => `There is no tool ${name}. There are: ${[...known].join(', ')}.`,
  failed: (error: unknown) => `The tool failed: ${error instanceof Error ? error.message : String(error)}`,
  overdue: (ms: number) =>
    `The tool did not return within ${Math.round(ms / 1000)} s, and was given up. It may still take effect.`,
  cutOff: (name: string, isLength: boolean) =>
    `Your call of ${name} was not carried out: its input ended before it was whole` +
    `${isLength ? ', because the answer reached its greatest length' : ''}. Send it again${isLength ? ', in smaller parts' : ''}.`,
}

/** Appends the result of a call; durable when it resolves. */
export async function answerCall(call: ToolUse, output: ToolOutput, context: LoopContext): Promise<void> {
  const { content, isError } = output
  const toolResult = { toolUseId: call.id, content, ...(isError && { isError }) }
  await context.append({
    type: 'message',
    message: { role: 'tool', content: [{ type: 'tool_result', toolResult }], runId: context.runId },
  })
}
