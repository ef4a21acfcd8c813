import { text } from '@tapetree/session'
import { expect, test } from 'vitest'
import { script, scriptedModel } from '../testing/scripted-model.ts'
import { summarize } from './summarize.ts'

const signal = new AbortController().signal

test('makes one call, without tools and thinking, and returns the text, the usage with its cost and the reference', async () => {
  const usage = { inputTokens: 100, outputTokens: 5 }
  const answer = script().reasoning('hm').text(' the ', 'summary\n').usage({ inputTokens: 1 }).usage(usage)
  const model = scriptedModel(answer, { costOf: ({ inputTokens = 0 }) => inputTokens / 1000 })
  const summary = await summarize({ model, system: 'sum up', prompt: 'all of it', maxOutputTokens: 50, signal })
  expect(summary).toEqual({
    text: 'the summary',
    usage: { ...usage, cost: 0.1 },
    reference: model.prepare(model.requests[0]!).reference,
  })
  expect(model.requests).toEqual([
    {
      system: 'sum up',
      tools: [],
      messages: [{ role: 'user', content: [text('all of it')] }],
      thinkingLevel: 'off',
      maxOutputTokens: 50,
    },
  ])
})

test('a summary that reached the maximum length says so', async () => {
  const model = scriptedModel(script().text('half of').finish('length'))
  const summary = await summarize({ model, system: '', prompt: 'x', maxOutputTokens: 50, signal })
  expect(summary.text).toBe('half of\n\n(The summary was cut off here at its maximum length.)')
})

test('an empty answer gives an empty text', async () => {
  const model = scriptedModel(script().reasoning('hm').finish('length'))
  expect(await summarize({ model, system: '', prompt: 'x', maxOutputTokens: 50, signal })).toMatchObject({ text: '' })
})

test('an error of the model is rethrown', async () => {
  const model = scriptedModel(script().text('so').error('rate-limited', 'slow down', { retryAfterMs: 7 }))
  await expect(summarize({ model, system: '', prompt: 'x', maxOutputTokens: 50, signal })).rejects.toMatchObject({
    kind: 'rate-limited',
    retryAfterMs: 7,
  })
})

test('an abort rejects with its reason, and an abort before the call sends nothing', async () => {
  const controller = new AbortController()
  const model = scriptedModel(script().text('so').cancel().text('on'), {
    onCancel: () => controller.abort(new Error('enough')),
  })
  const request = { model, system: '', prompt: 'x', maxOutputTokens: 50, signal: controller.signal }
  await expect(summarize(request)).rejects.toThrow('enough')
  await expect(summarize(request)).rejects.toThrow('enough')
  expect(model.requests).toHaveLength(1)
})
