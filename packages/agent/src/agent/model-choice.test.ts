import { describe, expect, test } from 'vitest'
import { catalogueProviders } from '../models/registry/catalogue.ts'
import { createModelRegistry } from '../models/registry/model-registry.ts'
import { registryModels } from './model-choice.ts'

describe('the first choice among the models of the registry', () => {
  test.each(catalogueProviders)('is the default model of $id if only $id has a key', async (provider) => {
    const [keyVariable = ''] = provider.keyVariables
    const registry = createModelRegistry({ env: { [keyVariable]: 'not-a-real-one' } })
    const choices = await registryModels({ registry }).choices()
    expect(choices[0]).toEqual({ provider: provider.id, modelId: provider.defaultModel })
    const listed = (await registry.list()).filter(({ key }) => key.type !== 'missing')
    expect(new Set(choices.map(({ modelId }) => modelId))).toEqual(new Set(listed.map(({ id }) => id)))
    expect(choices).toHaveLength(listed.length)
  })

  test('is the default model of the first provider that has a key', async () => {
    const registry = createModelRegistry({ env: { GROQ_API_KEY: 'a', OPENAI_API_KEY: 'b' } })
    const [first] = await registryModels({ registry }).choices()
    const openai = catalogueProviders.find(({ id }) => id === 'openai')
    expect(first).toEqual({ provider: 'openai', modelId: openai?.defaultModel })
  })

  test('is the first of the models that the user cycles through', async () => {
    const registry = createModelRegistry({ env: { OPENAI_API_KEY: 'b' } })
    const [first] = await registryModels({ registry, cycle: ['openai/gpt-5.5', 'openai/gpt-5.4'] }).choices()
    expect(first).toEqual({ provider: 'openai', modelId: 'gpt-5.5' })
  })
})
