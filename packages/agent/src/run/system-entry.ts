import { createHash } from 'node:crypto'
import type { ToolDefinition } from '@tapetree/session'
import type { AgentParts } from './agent-parts.ts'
import type { LoopContext } from './loop-context.ts'

/**
 * Makes the log say which model, thinking level, system prompt and tools a run uses, where it does not say so already. Without a
 * prompt it is the one in force.
 */
export async function ensureSystem(
  context: LoopContext & { readonly head: string | null },
  parts: AgentParts,
  given?: string,
): Promise<void> {
  const inForce = await parts.session.getContext({ leafId: context.head })
  const { provider, id: modelId } = context.model
  if (inForce.model?.provider !== provider || inForce.model.modelId !== modelId) {
    await context.append({ type: 'model_change', modelChange: { provider, modelId } })
  }
  const thinkingLevel = parts.thinkingLevel?.()
  if (thinkingLevel !== undefined && thinkingLevel !== (inForce.thinkingLevel ?? 'off')) {
    await context.append({ type: 'thinking_level', thinkingLevel: { thinkingLevel } })
  }
  const prompt = given ?? inForce.system?.prompt ?? parts.systemPrompt()
  const tools = [...context.tools.values()].map(({ name, description, inputSchema }): ToolDefinition => ({
    name,
    description,
    inputSchema,
  }))
  const sha256 = createHash('sha256').update(JSON.stringify({ prompt, tools })).digest('hex')
  if (inForce.system?.sha256 !== sha256) await context.append({ type: 'system', system: { prompt, tools, sha256 } })
}
