import type { ExtensionHost } from '../extensions/extension-host.ts'
import type { ModelRegistry } from '../registry/model-registry.ts'
import type { ModelSource } from './model-choice.ts'

export interface RegistryModelsOptions {
  registry: ModelRegistry
  extensions?: Pick<ExtensionHost, 'models' | 'openModel'>
  /** What is cycled through, as the user names them; everything that has a key where there is none. */
  cycle?: readonly string[]
}

/** The models of the registry, and those that extensions speak to themselves. */
export function registryModels({ registry, extensions, cycle = [] }: RegistryModelsOptions): ModelSource {
  return {
    open: async (provider, modelId) => {
      const own = extensions?.openModel(provider, modelId)
      if (own) return own
      const { model } = await registry.open({ provider, id: modelId })
      return model
    },
    choices: async () => {
      const { models } = cycle.length > 0 ? await registry.choose(cycle) : { models: await registry.list() }
      const usable = models.filter(({ key }) => key.type !== 'missing')
      return [...(extensions?.models ?? []), ...usable.map(({ provider, id }) => ({ provider, modelId: id }))]
    },
  }
}
