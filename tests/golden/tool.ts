import type { CheckedCall, Tool, ToolContext, ToolOutput } from '@tapetree/agent'

type Work = (context: ToolContext) => Promise<ToolOutput> | ToolOutput

export interface ToolParts
  extends Partial<Pick<Tool, 'readOnly' | 'replay' | 'deadlineMs'>>, Partial<Omit<CheckedCall, 'access' | 'run'>> {
  access?: () => CheckedCall['access']
}

/** A tool that takes any input and whose work is the scenario's. */
export function tool(name: string, work: Work = done, parts: ToolParts = {}): Tool {
  const { readOnly = false, replay = 'never', deadlineMs = 600_000, access = () => [], ...callParts } = parts
  return {
    name,
    description: `scripted ${name}`,
    inputSchema: { type: 'object' },
    readOnly,
    replay,
    deadlineMs,
    check: () => ({ ...callParts, access: access(), run: async (context) => work(context) }),
  }
}

function done({ callId }: ToolContext): ToolOutput {
  return { content: `${callId} is done` }
}

/** Resolves when the call is told to stop. */
export function stopped({ signal }: ToolContext): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve()
    else signal.addEventListener('abort', () => resolve(), { once: true })
  })
}

export function never(): Promise<never> {
  return new Promise(() => undefined)
}
