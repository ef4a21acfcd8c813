import { calcPrice } from '@pydantic/genai-prices'
import { describe, expect, test } from 'vitest'
import { knownModels } from '../known-models.ts'
import { thinkingLevels } from '../model.ts'
import { costAt } from '../model-prices.ts'
import { catalogueModels, catalogueProviders, loadCataloguePrices } from './catalogue.ts'
import { modelIdPattern } from './provider-additions.ts'

const today = new Date('2026-11-15T12:00:00Z')

describe('the catalogue', () => {
  test('every row belongs to a listed provider, and no model is listed twice', () => {
    const providers = catalogueProviders.map(({ id }) => id)
    const references = knownModels.map(({ provider, id }) => `${provider}/${id}`)
    expect([...new Set(knownModels.map(({ provider }) => provider))].filter((id) => !providers.includes(id))).toEqual(
      [],
    )
    expect(new Set(references).size).toBe(references.length)
    expect(catalogueProviders.flatMap(catalogueModels)).toHaveLength(knownModels.length)
  })

  test.each(catalogueProviders)('$id has models, a base URL and a key variable', (provider) => {
    expect(catalogueModels(provider).length).toBeGreaterThan(0)
    expect(new URL(provider.baseUrl).protocol).toBe('https:')
    expect(provider.baseUrl).not.toMatch(/\/$/)
    for (const variable of provider.keyVariables) expect(variable).toMatch(/^[A-Z_]+_API_KEY$/)
  })

  test.each(catalogueProviders)('the default model of $id is in the catalogue, at a medium price', async (provider) => {
    const [model, ...others] = catalogueModels(provider).filter(({ id }) => id === provider.defaultModel)
    expect(others).toEqual([])
    const prices = (await loadCataloguePrices()).pricesOf(provider, model?.id ?? '', today)
    expect(prices?.input).toBeLessThanOrEqual(2)
    expect(prices?.output).toBeLessThanOrEqual(10)
  })

  test.each(knownModels.filter(({ prices }) => prices))(
    '$provider/$id has plausible prices: output costs at most 20 times as much as input',
    ({ prices }) => {
      expect((prices?.output ?? 0) / (prices?.input ?? 0)).toBeLessThanOrEqual(20)
    },
  )

  test.each(knownModels)('$provider/$id has plausible limits', (model) => {
    expect(model.id).toMatch(modelIdPattern)
    expect(model.name).toMatch(/^[\w .:-]+$/)
    expect(model.contextTokens).toBeGreaterThanOrEqual(64_000)
    expect(model.contextTokens).toBeLessThanOrEqual(10_000_000)
    expect(model.outputTokens).toBeGreaterThanOrEqual(4096)
    expect(model.outputTokens).toBeLessThanOrEqual(model.contextTokens)
    expect(model.thinking).toEqual(thinkingLevels.filter((level) => model.thinking.includes(level)))
    if (model.prices) {
      expect(model.prices.output).toBeGreaterThanOrEqual(model.prices.input)
      expect(model.prices.cacheRead ?? 0).toBeLessThanOrEqual(model.prices.input)
      for (const tier of model.prices.tiers ?? []) expect(tier.input).toBeGreaterThan(model.prices.input)
    }
  })
})

describe('catalogue prices', () => {
  test('all but a few models have prices', async () => {
    const prices = await loadCataloguePrices()
    const without = catalogueProviders.flatMap((provider) =>
      catalogueModels(provider).filter(({ id }) => !prices.pricesOf(provider, id, today)),
    )
    expect(without.map(({ id }) => id)).toEqual([
      'gemma-4-26b-a4b-it',
      'gemma-4-31b-it',
      'glm-5.2-highspeed',
      'glm-5.3-highspeed',
    ])
  })

  test('the cost of a usage matches the library, on both sides of every tier', async () => {
    const prices = await loadCataloguePrices()
    for (const provider of catalogueProviders) {
      const taken = knownModels.filter((known) => known.provider === provider.id && !known.prices)
      for (const { id } of taken) {
        const found = prices.pricesOf(provider, id, today)
        if (!found) continue
        for (const input of [1000, 200_000, 200_001, 271_999, 272_000, 900_000]) {
          const usage = { input_tokens: input, cache_read_tokens: 500, cache_write_tokens: 300, output_tokens: 700 }
          const theirs = calcPrice(usage, id, { providerId: provider.pricesId ?? '', timestamp: today })
          const ours = costAt(found, {
            inputTokens: input,
            cacheReadTokens: 500,
            cacheWriteTokens: 300,
            outputTokens: 700,
          })
          expect(ours, `${provider.id}/${id} with ${input} tokens`).toBeCloseTo(theirs?.total_price ?? Number.NaN, 9)
        }
      }
    }
  })

  test('prices depend on the date and the time of day', async () => {
    const prices = await loadCataloguePrices()
    const inputAt = (providerId: string, id: string, date: string): number | undefined => {
      const provider = catalogueProviders.find((each) => each.id === providerId)
      return provider && prices.pricesOf(provider, id, new Date(date))?.input
    }
    expect(inputAt('google', 'gemini-3.8-flash', '2026-12-31T12:00:00Z')).toBe(0.75)
    expect(inputAt('google', 'gemini-3.8-flash', '2027-01-02T12:00:00Z')).toBe(1.5)
    expect(inputAt('deepseek', 'deepseek-v4-pro', '2026-11-15T02:00:00Z')).toBe(1.32)
    expect(inputAt('deepseek', 'deepseek-v4-pro', '2026-11-15T20:00:00Z')).toBe(0.66)
  })

  test('newer prices in our table take precedence', async () => {
    const prices = await loadCataloguePrices()
    const [anthropic] = catalogueProviders
    expect(anthropic && prices.pricesOf(anthropic, 'claude-sonnet-5-5', today)).toMatchObject({ cacheRead: 0.1 })
  })
})
