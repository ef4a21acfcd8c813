import { createHash } from 'node:crypto'
import { text, type ToolDefinition } from '@tapetree/session'
import type { OpenRun } from './open-run.ts'

/** Appends what the log must contain before the first message of a run: model, system prompt, tools and changes in the environment. */
export async function prepareRun(open: OpenRun, prompt: string): Promise<void> {
  const { runId, deps, hooks, signal } = open
  const start = { runId, prompt, systemPrompt: deps.systemPrompt() }
  const { systemPrompt, messages } = await hooks.beforeAgentStart(start, signal)
  await ensureSystem(open, systemPrompt)
  const changes = await deps.environmentChanges?.()
  for (const told of changes === undefined ? messages : [changes, ...messages]) {
    await open.append({ type: 'message', message: { role: 'custom', content: [text(told)], runId } })
  }
}

/**
 * Appends the model, thinking level, system prompt and tools of a run, if the log has others. Without `given` the system prompt stays
 * the one in the log.
 */
export async function ensureSystem(open: OpenRun, given?: string): Promise<void> {
  const { deps } = open
  const inForce = await deps.session.getContext({ leafId: open.head })
  const { provider, id: modelId } = open.model
  if (inForce.model?.provider !== provider || inForce.model.modelId !== modelId) {
    await open.append({ type: 'model_change', modelChange: { provider, modelId } })
  }
  const thinkingLevel = deps.thinkingLevel?.()
  if (thinkingLevel !== undefined && thinkingLevel !== (inForce.thinkingLevel ?? 'off')) {
    await open.append({ type: 'thinking_level', thinkingLevel: { thinkingLevel } })
  }
  const prompt = given ?? inForce.system?.prompt ?? deps.systemPrompt()
  const tools = [...open.tools.values()].map(({ name, description, inputSchema }): ToolDefinition => ({
    name,
    description,
    inputSchema,
  }))
  const sha256 = createHash('sha256').update(JSON.stringify({ prompt, tools })).digest('hex')
  if (inForce.system?.sha256 !== sha256) await open.append({ type: 'system', system: { prompt, tools, sha256 } })
}
