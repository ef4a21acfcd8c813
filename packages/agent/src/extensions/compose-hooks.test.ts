import { text, type Message } from '@tapetree/session'
import { describe, expect, test } from 'vitest'
import type { Extension } from './extension.ts'
import { openHost } from './testing/open-host.ts'

const call = { id: 'a', name: 'write', input: { path: 'x' } }
const user = (words: string): Message => ({ role: 'user', content: [text(words)] })

function named(name: string, extension: Extension): { name: string; extension: Extension } {
  return { name, extension }
}

describe('handlers', () => {
  test('run in load order, and within an extension in registration order', async () => {
    const order: string[] = []
    const noting = (name: string): Extension => {
      return (api) => {
        api.on('turnStart', async ({ turn }) => {
          await Promise.resolve()
          order.push(`${name} first ${turn}`)
        })
        api.on('turnStart', () => void order.push(`${name} second`))
      }
    }
    await using opened = await openHost({ extensions: [named('one', noting('one')), named('two', noting('two'))] })
    await opened.hooks.turnStart({ runId: 'r', turn: 3, systemPrompt: '' })
    expect(order).toEqual(['one first 3', 'one second', 'two first 3', 'two second'])
  })

  test('get their context', async () => {
    const seen: unknown[] = []
    const look: Extension = (api) =>
      api.on('sessionStart', (event, { sessionId, cwd }) => void seen.push(event, sessionId, cwd))
    await using opened = await openHost({ extensions: [named('look', look)] })
    await opened.hooks.sessionStart({ sessionId: 'session-1' })
    expect(seen).toEqual([{ sessionId: 'session-1' }, 'session-1', opened.folder.path])
  })

  test('get copies: changes in place do not affect other handlers', async () => {
    const spoil: Extension = (api) =>
      api.on('toolCall', ({ call }) => {
        call.input['path'] = 'spoilt'
      })
    await using opened = await openHost({ extensions: [named('spoil', spoil)] })
    expect(await opened.hooks.toolCall(call)).toBe(call)
    expect(call.input).toEqual({ path: 'x' })
  })
})

describe('results of handlers are combined', () => {
  test('the system prompt passes from one to the next, and every message is kept', async () => {
    const more = (word: string): Extension => {
      return (api) =>
        api.on('beforeAgentStart', ({ systemPrompt, prompt }) => ({
          systemPrompt: `${systemPrompt} ${word}`,
          message: `${word}: ${prompt}`,
        }))
    }
    await using opened = await openHost({ extensions: [named('one', more('one')), named('two', more('two'))] })
    const start = { runId: 'r', prompt: 'go', systemPrompt: 'You are.' }
    expect(await opened.hooks.beforeAgentStart(start)).toEqual({
      systemPrompt: 'You are. one two',
      messages: ['one: go', 'two: go'],
    })
  })

  test('a changed call passes from one to the next', async () => {
    const more = (word: string): Extension => {
      return (api) => api.on('toolCall', ({ call }) => ({ input: { path: `${String(call.input['path'])}${word}` } }))
    }
    await using opened = await openHost({ extensions: [named('one', more('1')), named('two', more('2'))] })
    expect(await opened.hooks.toolCall(call)).toEqual({ ...call, input: { path: 'x12' } })
  })

  test('the first handler that blocks a call is the last one called', async () => {
    const asked: string[] = []
    const blocking = (name: string): Extension => {
      return (api) =>
        api.on('toolCall', () => {
          asked.push(name)
          return { block: `${name} says no` }
        })
    }
    await using opened = await openHost({ extensions: [named('one', blocking('one')), named('two', blocking('two'))] })
    expect([await opened.hooks.toolCall(call), asked]).toEqual(['one says no', ['one']])
  })

  test('a result may be changed in part', async () => {
    const shout: Extension = (api) =>
      api.on('toolResult', ({ output }) => ({ content: JSON.stringify(output.content).toUpperCase() }))
    const excuse: Extension = (api) => api.on('toolResult', () => ({ isError: false }))
    await using opened = await openHost({ extensions: [named('shout', shout), named('excuse', excuse)] })
    expect(await opened.hooks.toolResult(call, { content: 'no', isError: true })).toEqual({
      content: '"NO"',
      isError: false,
    })
  })

  test('an extension that changes the context is named', async () => {
    const add: Extension = (api) =>
      api.on('context', ({ messages }) => ({ messages: [...messages, { role: 'user', content: [] }] }))
    const watch: Extension = (api) => api.on('context', () => undefined)
    await using opened = await openHost({ extensions: [named('watch', watch), named('add', add)] })
    expect(await opened.hooks.context([user('hello')])).toEqual({
      messages: [user('hello'), { role: 'user', content: [] }],
      changedBy: ['add'],
    })
  })

  test('a context with a call without its result is discarded', async () => {
    const drop: Extension = (api) =>
      api.on('context', ({ messages }) => ({ messages: messages.filter(({ role }) => role !== 'tool') }))
    const messages: Message[] = [
      user('go'),
      { role: 'assistant', content: [{ type: 'tool_use', toolUse: call }] },
      { role: 'tool', content: [{ type: 'tool_result', toolResult: { toolUseId: 'a', content: 'ok' } }] },
    ]
    await using opened = await openHost({ extensions: [named('drop', drop)] })
    expect(await opened.hooks.context(messages)).toEqual({ messages, changedBy: [] })
    expect(opened.told()).toEqual([
      'drop (context): Its messages are not valid for any provider. Call a has no result.',
    ])
  })

  test('instructions for a compaction pass from one to the next, and the first extension that cancels is named', async () => {
    const more: Extension = (api) => {
      api.on('beforeCompact', ({ instructions = '' }) => ({ instructions: `${instructions}+` }))
      api.on('beforeCompact', ({ reason }) => (reason === 'manual' ? { cancel: true } : undefined))
    }
    await using opened = await openHost({ extensions: [named('more', more)] })
    expect(await opened.hooks.beforeCompact({ reason: 'threshold', instructions: 'a' })).toEqual({ instructions: 'a+' })
    expect(await opened.hooks.beforeCompact({ reason: 'manual' })).toEqual({ cancelledBy: 'more' })
  })
})

describe('stopping', () => {
  test('no handler is awaited after an abort, and that is not a failure', async () => {
    const stop = new AbortController()
    const wait: Extension = (api) =>
      api.on('turnStart', (_, { signal }) => {
        queueMicrotask(() => stop.abort())
        return new Promise((_, reject) => {
          signal.addEventListener('abort', () => reject(signal.reason as Error))
        })
      })
    await using opened = await openHost({ extensions: [named('wait', wait)] })
    await opened.hooks.turnStart({ runId: 'r', turn: 1, systemPrompt: '' }, stop.signal)
    await opened.host.close()
    expect(opened.told()).toEqual([])
  })
})
