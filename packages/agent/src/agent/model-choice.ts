import type { ModelReference } from '@tapetree/session'
import type { Model, ThinkingLevel } from '../models/model.ts'

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
