import { referenceOf, type ListedModel, type ModelRegistry } from '@tapetree/agent'
import type { OfferedModel } from '../session-source.ts'

/** All that can be chosen, those of servers on this machine with them. */
export async function offeredModels(registry: ModelRegistry): Promise<OfferedModel[]> {
  await registry.discover()
  return (await registry.list()).map(offered)
}

function offered(model: ListedModel): OfferedModel {
  const { provider, id, name, contextWindow, thinkingLevels, key } = model
  return {
    reference: referenceOf(model),
    provider,
    modelId: id,
    name,
    ...(contextWindow !== undefined && { contextTokens: contextWindow }),
    thinkingLevels,
    isUsable: key.type !== 'missing',
  }
}
