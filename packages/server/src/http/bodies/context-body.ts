import { checkRequest, type Model, type RequestCheck } from '@tapetree/agent'
import type { contextSchema, entryRequestSchema } from '@tapetree/client'
import type { Context, ContextMessage, Session } from '@tapetree/session'
import type { z } from 'zod'
import { RequestProblem } from '../../util/problem-error.ts'
import { toWire, messageOnWire } from './wire-entry.ts'

/** Returns undefined or rejects if the model is not available. */
export type OpenModel = (model: { provider: string; modelId: string }) => Promise<Model | undefined>

type ContextBody = z.infer<typeof contextSchema>

export function contextOnWire(entryId: string | null, context: Context): ContextBody {
  const { system, model, thinkingLevel, provenance, repairs } = context
  return {
    entry_id: entryId,
    messages: context.messages.map(messageWithReason),
    system: system && {
      entry_id: provenance.systemId,
      prompt: system.prompt,
      tools: toWire(system.tools) as unknown[],
      sha256: system.sha256,
    },
    model: model && { entry_id: provenance.modelId, provider: model.provider, model_id: model.modelId },
    thinking_level: thinkingLevel === null ? null : { entry_id: provenance.thinkingLevelId, level: thinkingLevel },
    repairs,
  }
}

/** The request that led to an answer. Rejects for an entry that no model produced. */
export async function requestOf(
  session: Session,
  entryId: string,
  openModel: OpenModel,
): Promise<z.infer<typeof entryRequestSchema>> {
  const entry = await session.getEntry(entryId)
  if (entry.type !== 'message' || !entry.request) {
    throw new RequestProblem(404, 'no-request', `Entry ${entryId} is not an answer of a model.`)
  }
  const { sha256, adapter, adapterVersion, params, leafId } = entry.request
  const { provider = '', model = '', thinkingLevel } = entry.message
  const context = await session.getContext({ leafId })
  const reference = { provider, modelId: model }
  // A model without its key cannot be opened; the request may still be valid.
  const opened = await openModel(reference).catch(() => undefined)
  const outcome = (await checkRequest(session, entryId, { model: () => opened })) ?? 'unknown-model'
  return {
    entry_id: entryId,
    recorded: { sha256, adapter, adapter_version: adapterVersion, ...(params && { params }), leaf_id: leafId },
    model: { provider, model_id: model, thinking_level: thinkingLevel ?? null },
    is_exact: params?.['changedBy'] === undefined,
    verified: outcome === 'same',
    reason: outcomes[outcome],
    context: contextOnWire(leafId, context),
  }
}

const outcomes: Record<RequestCheck['outcome'], string> = {
  same: 'The request rebuilt from the log has the recorded hash.',
  different:
    'The request rebuilt from the log has a different hash: the log, or the code that builds requests, has changed since.',
  changed: 'An extension changed the request, so the log alone cannot reproduce it.',
  'unknown-model': 'This server cannot open the model that answered, so it cannot rebuild the request.',
}

function messageWithReason({ entryId, message, made }: ContextMessage): ContextBody['messages'][number] {
  const reason = made ?? 'path'
  return { entry_id: entryId, reason, because: sentences[reason](message.role), message: messageOnWire(message) }
}

const sentences: Record<ContextBody['messages'][number]['reason'], (role: string) => string> = {
  path: (role) => `This ${role} message is on the path to the entry.`,
  summary: () => 'This summary replaces the messages before it.',
  'missing-result': () => 'A call on the path has no result, and models require one for each.',
  'orphan-result': () => 'The call of this result is no longer in the context.',
}
