import type { ModelReference } from '@tapetree/session'
import type { Model, ThinkingLevel } from '../models/model.ts'
import type { ExtensionHost } from '../extensions/extension-host.ts'
import { RegistryError, type ListedModel } from '../models/registry/model-info.ts'
import type { ModelRegistry } from '../models/registry/model-registry.ts'

/** Where models come from. */
export interface ModelSource {
  /** Rejects with a sentence on what is missing, such as the name of the variable that should hold a key. */
  open(provider: string, modelId: string): Promise<Model>
  /** What `cycle` goes through, in its order. */
  choices(): Promise<readonly ModelReference[]>
}

/** The model that a session used last and that cannot be opened any more. `reason` is a sentence for the user. */
export interface MissingModel extends ModelReference {
  reason: string
}

export interface ModelChoiceParts {
  source: ModelSource
  model: Model
  thinkingLevel: ThinkingLevel | undefined
  missing?: MissingModel | undefined
}

/** The model and the thinking level that the next run uses. */
export class ModelChoice {
  readonly #source: ModelSource
  #model: Model
  #missing: MissingModel | undefined
  thinkingLevel: ThinkingLevel | undefined

  constructor({ source, model, thinkingLevel, missing }: ModelChoiceParts) {
    this.#source = source
    this.#model = model
    this.#missing = missing
    this.thinkingLevel = thinkingLevel
  }

  get model(): Model {
    return this.#model
  }

  /** The model of the session that `model` stands in for, until somebody chooses one. */
  get missing(): MissingModel | undefined {
    return this.#missing
  }

  async set(provider: string, modelId: string): Promise<Model> {
    this.#model = await this.#source.open(provider, modelId)
    this.#missing = undefined
    return this.#model
  }

  /** The next of the choices that can be opened; the same one where there is no other. */
  async cycle(direction: 'forward' | 'backward'): Promise<Model> {
    const choices = await this.#source.choices()
    const step = direction === 'forward' ? 1 : -1
    const at = choices.findIndex(({ provider, modelId }) => isSame(this.#model, provider, modelId))
    const problems: string[] = []
    for (let i = 1; i <= choices.length; i++) {
      const from = at === -1 && step === -1 ? 0 : at
      const { provider, modelId } = choices[mod(from + step * i, choices.length)] as ModelReference
      if (isSame(this.#model, provider, modelId)) return this.#model
      try {
        return await this.set(provider, modelId)
      } catch (error) {
        problems.push(error instanceof Error ? error.message : String(error))
      }
    }
    if (problems.length > 0) throw new Error(`No other model can be used. ${problems.join(' ')}`)
    return this.#model
  }
}

/** One model, and no other. */
export function onlyModel(model: Model): ModelSource {
  return {
    open: (provider, modelId) =>
      isSame(model, provider, modelId)
        ? Promise.resolve(model)
        : Promise.reject(
            new Error(`There is no model ${provider}/${modelId} here, only ${model.provider}/${model.id}.`),
          ),
    choices: () => Promise.resolve([{ provider: model.provider, modelId: model.id }]),
  }
}

function isSame(model: Model, provider: string, modelId: string): boolean {
  return model.provider === provider && model.id === modelId
}

function mod(value: number, size: number): number {
  return ((value % size) + size) % size
}

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
