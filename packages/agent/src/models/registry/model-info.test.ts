import { describe, expect, test } from 'vitest'
import { cycleModels, type KeyState, type ListedModel } from './model-info.ts'

const models = [model('a'), model('b', { type: 'missing', variable: 'B_API_KEY' }), model('c'), model('d')]

describe('cycleModels', () => {
  test('goes to the next model with a key, and reports the skipped ones', () => {
    const { next, skipped, note } = cycleModels(models, { provider: 'a', id: 'model' })
    expect([next?.provider, skipped.map(({ provider }) => provider)]).toEqual(['c', ['b']])
    expect(note).toBe('Skipped b/model: B_API_KEY is not set.')
  })

  test('goes backward the same way, and wraps around', () => {
    const names = (direction: 'forward' | 'backward'): (string | undefined)[] => {
      const visited: (string | undefined)[] = []
      let current: ListedModel | undefined = model('a')
      for (let step = 0; step < 4; step++) {
        current = cycleModels(models, current, direction).next
        visited.push(current?.provider)
      }
      return visited
    }
    expect(names('forward')).toEqual(['c', 'd', 'a', 'c'])
    expect(names('backward')).toEqual(['d', 'c', 'a', 'd'])
  })

  test('starts at an end if the current model is not in the list', () => {
    expect(cycleModels(models, { provider: 'z', id: 'model' }, 'forward').next?.provider).toBe('a')
    expect(cycleModels(models, undefined, 'backward').next?.provider).toBe('d')
  })

  test('has no next model if no other model has a key', () => {
    const { next, note } = cycleModels(models.slice(0, 2), { provider: 'a', id: 'model' })
    expect(next).toBeUndefined()
    expect(note).toContain('B_API_KEY')
    expect(cycleModels([model('a')], { provider: 'a', id: 'model' })).toEqual({
      next: undefined,
      skipped: [],
      note: undefined,
    })
    expect(cycleModels([], undefined).next).toBeUndefined()
  })

  test('names only the first few skipped models', () => {
    const keyless = Array.from({ length: 5 }, (_, index) => model(`k${index}`, { type: 'missing', variable: 'K' }))
    expect(cycleModels(keyless, undefined).note).toBe('Skipped k0/model, k1/model, k2/model and 2 more: K is not set.')
  })
})

function model(provider: string, key: KeyState = { type: 'not-needed' }): ListedModel {
  const limits = { contextWindow: 100_000, maxOutputTokens: 10_000 }
  return { provider, id: 'model', name: provider, ...limits, thinkingLevels: [], images: false, source: 'user', key }
}
