import { createHash } from 'node:crypto'
import { newId, text, type Context, type ToolDefinition } from '@tapetree/session'
import type { EntryDraft } from '@tapetree/session/format'
import type { PromptChanges } from './hooks.ts'
import type { OpenRun } from './open-run.ts'

/** An entry whose id is known before it is appended. */
export type NamedDraft = EntryDraft & { id: string }

export interface Preparation {
  /** What the log must contain before the first message of a run, and does not yet: model, system prompt, tools and changes in the environment. */
  drafts: NamedDraft[]
  /** What extensions made of the prompt. */
  prompt?: PromptChanges['prompt']
}

export async function preparationOf(open: OpenRun, prompt: string): Promise<Preparation> {
  const { runId, deps, hooks, signal } = open
  // It has its own prompt and tools.
  if (deps.foreign) return { drafts: (await systemChanges(open, '')).filter(({ type }) => type === 'model_change') }
  const start = { runId, prompt, systemPrompt: deps.systemPrompt() }
  const { systemPrompt, messages, prompt: changed } = await hooks.beforeAgentStart(start, signal)
  const system = await systemChanges(open, systemPrompt)
  const changes = await deps.environmentChanges?.()
  const told = (changes === undefined ? messages : [changes, ...messages]).map((words) => saidTo(words, open))
  return { drafts: [...system, ...told], ...(changed && { prompt: changed }) }
}

/** Tells extensions of a turn, and appends what they change. */
export async function tellTurn(open: OpenRun, hook: 'turnStart' | 'turnEnd'): Promise<void> {
  const { runId, turn, hooks, signal } = open
  open.systemPrompt ??= (await contextOf(open)).system?.prompt ?? ''
  const { systemPrompt, messages } = await hooks[hook]({ runId, turn, systemPrompt: open.systemPrompt }, signal)
  if (signal.aborted) return
  const system = systemPrompt === undefined ? [] : await systemChanges(open, systemPrompt)
  const drafts = [...system, ...messages.map((words) => saidTo(words, open))]
  if (drafts.length > 0) await open.appendAll(drafts.map((draft) => ({ draft })))
}

async function contextOf(open: OpenRun): Promise<Context> {
  return open.deps.session.getContext({ leafId: await open.storedHead() })
}

function saidTo(words: string, { runId }: OpenRun): NamedDraft {
  return { id: newId(), type: 'message', message: { role: 'custom', content: [text(words)], runId } }
}

/**
 * The model, thinking level, system prompt and tools of a run, if the log has others. Without `given` the system prompt stays
 * the one in the log.
 */
export async function systemChanges(open: OpenRun, given?: string): Promise<NamedDraft[]> {
  const { deps } = open
  const drafts: NamedDraft[] = []
  const inForce = await contextOf(open)
  const { provider, id: modelId } = open.model
  if (inForce.model?.provider !== provider || inForce.model.modelId !== modelId) {
    drafts.push({ id: newId(), type: 'model_change', modelChange: { provider, modelId } })
  }
  const thinkingLevel = deps.thinkingLevel?.()
  if (thinkingLevel !== undefined && thinkingLevel !== (inForce.thinkingLevel ?? 'off')) {
    drafts.push({ id: newId(), type: 'thinking_level', thinkingLevel: { thinkingLevel } })
  }
  const prompt = given ?? inForce.system?.prompt ?? deps.systemPrompt()
  open.systemPrompt = prompt
  const tools = [...open.tools.values()].map(({ name, description, inputSchema }): ToolDefinition => ({
    name,
    description,
    inputSchema,
  }))
  const sha256 = createHash('sha256').update(JSON.stringify({ prompt, tools })).digest('hex')
  if (inForce.system?.sha256 !== sha256) {
    drafts.push({ id: newId(), type: 'system', system: { prompt, tools, sha256 } })
  }
  return drafts
}
