import { setTimeout } from 'node:timers/promises'
import { onlyModel, allowAll, type AgentSessionOptions } from '@tapetree/agent'
import { script, scriptedModel } from '@tapetree/agent/testing'

/** An agent that answers each message in a few words, and takes a moment for it. */
export function queueAgent(pass: () => Promise<void> = () => setTimeout(3)): Partial<AgentSessionOptions> {
  const model = scriptedModel([], { otherwise: () => script().text('Well. ').do(pass).text('Done.') })
  return { models: onlyModel(model), tools: () => [], gate: () => allowAll }
}
