import { createHash } from 'node:crypto'
import type { ToolDefinition } from '@tapetree/session'
import type { AgentParts } from './agent-parts.ts'
import type { LoopContext } from '../loop/loop-context.ts'

/** Makes the log say which model, system prompt and tools a run uses, where it does not say so already. */
export async function ensureSystem(
  context: LoopContext & { readonly head: string | null },
  parts: AgentParts,
): Promise<void> {
  const inForce = await parts.session.getContext({ leafId: context.head })
  const { provider, id: modelId } = context.model
  if (inForce.model?.provider !== provider || inForce.model.modelId !== modelId) {
    await context.append({ type: 'model_change', modelChange: { provider, modelId } })
  }
  const prompt = parts.systemPrompt()
  const tools = [...context.tools.values()].map(({ name, description, inputSchema }): ToolDefinition => ({
    name,
    description,
    inputSchema,
  }))
  const sha256 = createHash('sha256').update(JSON.stringify({ prompt, tools })).digest('hex')
  if (inForce.system?.sha256 !== sha256) await context.append({ type: 'system', system: { prompt, tools, sha256 } })
}
