import type { ModelProvider } from './catalogue.ts'
import type { FoundServer, LocalServer } from './local-servers.ts'
import type { ModelInfo } from './model-info.ts'
import { assumedModel } from './provider-additions.ts'

export function localProvider({ id, name, port }: LocalServer): ModelProvider {
  return { id, name, api: 'openai-compatible', baseUrl: `http://127.0.0.1:${port}/v1`, keyVariables: [] }
}

/** What a server does not tell is assumed. */
export function localModels(server: FoundServer): ModelInfo[] {
  const provider = localProvider(server)
  return server.models.map((found) => {
    const assumed = assumedModel(found.id, provider, 'local')
    const contextWindow = found.contextWindow ?? assumed.contextWindow
    return {
      ...assumed,
      ...found,
      contextWindow,
      maxOutputTokens: Math.min(assumed.maxOutputTokens, contextWindow),
    }
  })
}
