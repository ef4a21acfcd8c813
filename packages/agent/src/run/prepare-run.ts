import { text } from '@tapetree/session'
import { noHooks } from './hooks.ts'
import type { AgentParts } from './agent-parts.ts'
import type { RunContext } from './run-context.ts'
import { ensureSystem } from './system-entry.ts'

/** What the log must say before the message that a run begins with: the model, the prompt, the tools, and what has changed around it. */
export async function prepareRun(context: RunContext, parts: AgentParts, prompt: string): Promise<void> {
  const { runId } = context
  const hooks = parts.hooks ?? noHooks
  const start = { runId, prompt, systemPrompt: parts.systemPrompt() }
  const { systemPrompt, messages } = await hooks.beforeAgentStart(start, context.signal)
  await ensureSystem(context, parts, systemPrompt)
  const news = await parts.news?.()
  for (const told of news === undefined ? messages : [news, ...messages]) {
    await context.append({ type: 'message', message: { role: 'custom', content: [text(told)], runId } })
  }
}
