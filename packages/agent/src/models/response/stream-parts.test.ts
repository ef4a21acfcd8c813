import { describe, expect, test } from 'vitest'
import { finishOf, type Ending } from './stream-parts.ts'

describe('finishOf', () => {
  test.each(['stop', 'tool-calls', 'length', 'other'] as const)('%s keeps its name', (unified) => {
    expect(finish({ reason: { unified, raw: undefined } })).toBe(unified)
  })

  test('an answer with calls ends with `tool-calls`, even if the server reports `stop`', () => {
    expect(finish({ hasCalls: true })).toBe('tool-calls')
    expect(finish({ hasCalls: true, reason: { unified: 'length', raw: 'length' } })).toBe('length')
  })

  test.each([
    ['content-filter', 'refusal', 'refused'],
    ['interrupted', undefined, 'network'],
    ['error', undefined, 'overloaded'],
    ['error', 'MALFORMED_FUNCTION_CALL', 'overloaded'],
    ['other', 'UNEXPECTED_TOOL_CALL', 'overloaded'],
    ['other', 'error', 'overloaded'],
    ['other', 'network_error', 'network'],
    ['other', 'insufficient_system_resource', 'overloaded'],
  ] as const)('%s (%s) is a failure: %s', (unified, raw, kind) => {
    expect(() => finish({ reason: { unified, raw } })).toThrow(expect.objectContaining({ kind }))
  })

  test('more input than the window is an overflow only at hosts that silently drop input', () => {
    const usage = { inputTokens: 1001, outputTokens: 50 }
    expect(() => finish({ usage, cutsSilently: true })).toThrow(expect.objectContaining({ kind: 'context-overflow' }))
    expect(finish({ usage: { ...usage, inputTokens: 1000 }, cutsSilently: true })).toBe('stop')
    // The usage of an answer with several steps on the server is their sum.
    expect(finish({ usage })).toBe('stop')
  })

  test('a paused turn is continued, unless it has calls', () => {
    const reason = { unified: 'stop', raw: 'pause_turn' } as const
    expect(finish({ reason })).toBe('pause')
    expect(finish({ reason, hasCalls: true })).toBe('tool-calls')
  })

  test('no room for an answer is an overflow, but a short output limit is not', () => {
    const reason = { unified: 'length', raw: 'length' } as const
    expect(() => finish({ reason, usage: { inputTokens: 950, outputTokens: 0 } })).toThrow(
      expect.objectContaining({ kind: 'context-overflow' }),
    )
    expect(finish({ reason, usage: { inputTokens: 100, outputTokens: 0 } })).toBe('length')
    expect(finish({ reason, usage: { inputTokens: 950, outputTokens: 3 } })).toBe('length')
    expect(finish({ reason, usage: {} })).toBe('length')
  })
})

function finish(given: Partial<Ending>): string {
  return finishOf({
    provider: 'acme',
    reason: { unified: 'stop', raw: 'stop' },
    usage: { inputTokens: 10, outputTokens: 5 },
    limits: { contextTokens: 1000, outputTokens: 100 },
    hasCalls: false,
    ...given,
  })
}
