import { text } from '@tapetree/session'
import { describe, expect, test } from 'vitest'
import type { Model, ModelPart } from '../models/model.ts'
import { openHost, type OpenedHost } from './testing/open-host.ts'

function provider(stream: string): { files: Record<string, string> } {
  return {
    files: {
      'echo.ts': `export default (api: any) => api.registerProvider({
        id: 'echo',
        models: [{ id: 'echo-1', limits: { contextTokens: 1000, outputTokens: 100 } }],
        async *stream(request: any, { signal }: any) { ${stream} },
      })`,
    },
  }
}

const request = {
  system: '',
  tools: [],
  messages: [{ role: 'user' as const, content: [text('hello')] }],
  thinkingLevel: 'off' as const,
}

function model({ host }: OpenedHost): Model {
  return host.openModel('echo', 'echo-1')!
}

async function all(parts: AsyncIterable<ModelPart>): Promise<ModelPart[]> {
  const list: ModelPart[] = []
  for await (const part of parts) list.push(part)
  return list
}

describe('a model of an extension', () => {
  test('returns the answer of the extension', async () => {
    await using opened = await openHost(
      provider(`
        yield { type: 'text_delta', part: 0, text: request.modelId + ' heard ' }
        yield { type: 'text_delta', part: 0, text: request.messages[0].content[0].text.content }
        yield { type: 'finish', reason: 'stop' }`),
    )
    expect(opened.host.models).toEqual([{ provider: 'echo', modelId: 'echo-1' }])
    const prepared = model(opened).prepare(request)
    expect(prepared.reference).toMatchObject({ adapter: 'extension', sha256: expect.stringMatching(/^[0-9a-f]{64}$/) })
    expect(await all(prepared.stream(new AbortController().signal))).toEqual([
      { type: 'text_delta', part: 0, text: 'echo-1 heard ' },
      { type: 'text_delta', part: 0, text: 'hello' },
      { type: 'finish', reason: 'stop' },
    ])
  })

  test.for<[string, string, string, string]>([
    ['that throws fails', `throw new Error('no route')`, 'unknown', 'no route'],
    [
      'that names an error kind fails with it',
      `throw Object.assign(new Error('slow down'), { kind: 'rate-limited' })`,
      'rate-limited',
      'slow down',
    ],
    [
      'that ends too early is incomplete',
      `yield { type: 'text_delta', part: 0, text: 'a' }`,
      'network',
      'The answer of echo/echo-1 is incomplete.',
    ],
  ])('%s', async ([, source, kind, message]) => {
    await using opened = await openHost(provider(source))
    const parts = model(opened).prepare(request).stream(new AbortController().signal)
    await expect(all(parts)).rejects.toMatchObject({ name: 'ModelError', kind, message })
    expect(opened.told()).toEqual([])
  })

  test('that returns an invalid or empty answer fails', async () => {
    await using nonsense = await openHost(provider(`yield { type: 'song' }`))
    const parts = model(nonsense).prepare(request).stream(new AbortController().signal)
    await expect(all(parts)).rejects.toMatchObject({ name: 'ModelError', kind: 'unknown' })
    expect(nonsense.problems).toMatchObject([{ extension: 'echo', hook: 'model' }])
    await using silent = await openHost(provider(`for (;;);`))
    const waiting = all(model(silent).prepare(request).stream(new AbortController().signal))
    const failed = expect(waiting).rejects.toMatchObject({ name: 'ModelError', kind: 'network' })
    expect(await silent.clock.skip()).toBe(300_000)
    await failed
  })

  test('is stopped with the run', async () => {
    await using opened = await openHost(
      provider(`
        yield { type: 'text_delta', part: 0, text: 'a' }
        await new Promise(() => undefined)`),
    )
    const stop = new AbortController()
    const parts = model(opened).prepare(request).stream(stop.signal)
    const reading = (async () => {
      for await (const _ of parts) stop.abort()
    })()
    await expect(reading).rejects.toMatchObject({ name: 'AbortError' })
  })
})
