import type { ExtensionHost } from '../extensions/extension-host.ts'
import type { ListedModel } from '../models/registry/model-info.ts'
import { RegistryError } from '../models/registry/registry-error.ts'
import type { ModelRegistry } from '../models/registry/model-registry.ts'
import type { ModelSource } from './model-choice.ts'

export interface RegistryModelsOptions {
  registry: ModelRegistry
  extensions?: Pick<ExtensionHost, 'models' | 'openModel'>
  /** The models to cycle through, as the user names them. Empty or absent: every model that has a key. */
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
      const { models } = cycle.length > 0 ? await registry.choose(cycle) : { models: await defaultsFirst(registry) }
      const usable = models.filter(({ key }) => key.type !== 'missing')
      const choices = [...(extensions?.models ?? []), ...usable.map(({ provider, id }) => ({ provider, modelId: id }))]
      if (choices.length === 0) throw noKey(models)
      return choices
    },
  }
}

/** Within each provider its default model comes first: a session that names no model begins with the first choice. */
async function defaultsFirst(registry: ModelRegistry): Promise<ListedModel[]> {
  const defaults = new Map(registry.providers.map(({ id, defaultModel }) => [id, defaultModel]))
  const byProvider = Map.groupBy(await registry.list(), ({ provider }) => provider)
  return [...byProvider].flatMap(([provider, models]) => {
    const isDefault = ({ id }: ListedModel): boolean => id === defaults.get(provider)
    return [...models.filter(isDefault), ...models.filter((model) => !isDefault(model))]
  })
}

/** Said to whoever has just installed it: the variables of those that come first will do. */
function noKey(models: readonly ListedModel[]): RegistryError {
  const variables = [...new Set(models.flatMap(({ key }) => (key.type === 'missing' ? [key.variable] : [])))]
  const named = variables.slice(0, 3).join(', ')
  const others = variables.length > 3 ? ` or that of one of ${variables.length - 3} more` : ''
  return new RegistryError(
    'missing-key',
    `There is no model to use: no provider has a key. Set one of the environment variables ${named}${others}, keep a key with your ` +
      'credentials, or name a model of a server on this machine.',
  )
}
