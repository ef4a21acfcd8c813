import type { ModelReference } from '@tapetree/session'
import type { Model, ThinkingLevel } from '../models/model.ts'
import type { ExtensionHost } from '../extensions/extension-host.ts'
import { RegistryError, type ListedModel } from '../models/registry/model-info.ts'
import type { ModelRegistry } from '../models/registry/model-registry.ts'

/** A source of models. */
export interface ModelSource {
  /** Rejects with a sentence on what is missing, such as the environment variable of a key. */
  open(provider: string, modelId: string): Promise<Model>
  /** The models that `cycle` goes through, in order. */
  choices(): Promise<readonly ModelReference[]>
}

/** The model that a session used last, if it can no longer be opened. `reason` is a sentence for the user. */
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

  /** The missing model of the session that `model` replaces, until the user chooses one. */
  get missing(): MissingModel | undefined {
    return this.#missing
  }

  async set(provider: string, modelId: string): Promise<Model> {
    this.#model = await this.#source.open(provider, modelId)
    this.#missing = undefined
    return this.#model
  }

  /** The next choice that can be opened; the same one if there is no other. */
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
    if (problems.length > 0) throw new Error(`No other model is available. ${problems.join(' ')}`)
    return this.#model
  }
}

/** A source with exactly one model. */
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
  /** The models to cycle through, as the user names them. If empty, every model that has a key. */
  cycle?: readonly string[]
}

/** The models of the registry, and the models that extensions implement. */
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

/** The default model of each provider comes first: a session that names no model starts with the first choice. */
async function defaultsFirst(registry: ModelRegistry): Promise<ListedModel[]> {
  const defaults = new Map(registry.providers.map(({ id, defaultModel }) => [id, defaultModel]))
  const byProvider = Map.groupBy(await registry.list(), ({ provider }) => provider)
  return [...byProvider].flatMap(([provider, models]) => {
    const isDefault = ({ id }: ListedModel): boolean => id === defaults.get(provider)
    return [...models.filter(isDefault), ...models.filter((model) => !isDefault(model))]
  })
}

/** Names only the first few variables, for a new user. */
function noKey(models: readonly ListedModel[]): RegistryError {
  const variables = [...new Set(models.flatMap(({ key }) => (key.type === 'missing' ? [key.variable] : [])))]
  return new RegistryError(
    'missing-key',
    `No model is available: no provider has a key. Set an environment variable such as ${orList(variables.slice(0, 3))}; ` +
      'store a key in the system keyring or credentials.json; or choose a model of a local server.',
  )
}

function orList(names: readonly string[]): string {
  return new Intl.ListFormat('en', { type: 'disjunction' }).format(names)
}
