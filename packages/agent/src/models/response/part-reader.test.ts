import type { LanguageModelV4StreamPart } from '@ai-sdk/provider'
import { describe, expect, test } from 'vitest'
import type { ModelPart } from '../model.ts'
import { PartReader } from './part-reader.ts'
import { anthropicFacts, googleFacts, openaiFacts, type ProviderFacts } from '../provider-facts.ts'

describe('PartReader', () => {
  test('a block is numbered by its beginning, even if others end before it', () => {
    expect(
      read([
        { type: 'text-start', id: '0' },
        { type: 'tool-input-start', id: 'a', toolName: 'read' },
        { type: 'tool-input-delta', id: 'a', delta: '{}' },
        { type: 'text-delta', id: '0', delta: 'Hi' },
        { type: 'tool-call', toolCallId: 'a', toolName: 'read', input: '{}' },
        { type: 'text-end', id: '0' },
      ]),
    ).toEqual([
      { type: 'tool_input_start', part: 1, callId: 'a', name: 'read' },
      { type: 'tool_input_delta', part: 1, text: '{}' },
      { type: 'text_delta', part: 0, text: 'Hi' },
      { type: 'tool_call', part: 1, callId: 'a', name: 'read', input: '{}' },
      { type: 'text_end', part: 0 },
    ])
  })

  test('a reused id of a later block is a new block', () => {
    const block = (delta: string): LanguageModelV4StreamPart[] => [
      { type: 'text-start', id: 'txt-0' },
      { type: 'text-delta', id: 'txt-0', delta },
      { type: 'text-end', id: 'txt-0' },
    ]
    const deltas = read([...block('a'), ...block('b')]).filter(({ type }) => type === 'text_delta')
    expect(deltas).toEqual([
      { type: 'text_delta', part: 0, text: 'a' },
      { type: 'text_delta', part: 1, text: 'b' },
    ])
  })

  test('text, reasoning and a call may have the same id', () => {
    const parts = read([
      { type: 'reasoning-start', id: '0' },
      { type: 'text-start', id: '0' },
      { type: 'tool-input-start', id: '0', toolName: 'read' },
      { type: 'text-delta', id: '0', delta: 'Hi' },
      { type: 'reasoning-delta', id: '0', delta: 'Hm' },
    ])
    expect(parts.map((part) => ('part' in part ? part.part : -1))).toEqual([2, 1, 0])
  })

  test('a call without streamed input has its own number', () => {
    expect(
      read([
        { type: 'text-start', id: '0' },
        { type: 'tool-call', toolCallId: 'a', toolName: 'read', input: '{"path":"a"}' },
      ]),
    ).toEqual([{ type: 'tool_call', part: 1, callId: 'a', name: 'read', input: '{"path":"a"}' }])
  })

  test('the second call with the same id gets another id', () => {
    const call = (input: string): LanguageModelV4StreamPart[] => [
      { type: 'tool-input-start', id: 'a', toolName: 'read' },
      { type: 'tool-call', toolCallId: 'a', toolName: 'read', input },
    ]
    expect(read([...call('{"path":"a"}'), ...call('{"path":"b"}')])).toMatchObject([
      { type: 'tool_input_start', part: 0, callId: 'a' },
      { type: 'tool_call', part: 0, callId: 'a', input: '{"path":"a"}' },
      { type: 'tool_input_start', part: 1, callId: 'a_2' },
      { type: 'tool_call', part: 1, callId: 'a_2', input: '{"path":"b"}' },
    ])
  })

  test('a control token after the name of a tool is removed', () => {
    const toolName = 'read<|channel|>commentary'
    expect(read([{ type: 'tool-call', toolCallId: 'a', toolName, input: '{}' }])).toMatchObject([{ name: 'read' }])
  })

  test('the signature of reasoning is separated from other metadata, wherever it came', () => {
    expect(
      read([
        { type: 'reasoning-start', id: '0' },
        { type: 'reasoning-delta', id: '0', delta: 'Hm' },
        { type: 'reasoning-delta', id: '0', delta: '', providerMetadata: { anthropic: { signature: 'sig' } } },
        { type: 'reasoning-end', id: '0' },
      ]).at(-1),
    ).toEqual({ type: 'reasoning_end', part: 0, signature: 'sig' })
    expect(
      read(
        [
          {
            type: 'reasoning-start',
            id: '0',
            providerMetadata: { openai: { itemId: 'rs_1', reasoningEncryptedContent: null } },
          },
          {
            type: 'reasoning-end',
            id: '0',
            providerMetadata: { openai: { itemId: 'rs_1', reasoningEncryptedContent: 'enc' } },
          },
        ],
        openaiFacts,
      ),
    ).toEqual([{ type: 'reasoning_end', part: 0, signature: 'enc', providerMetadata: { openai: { itemId: 'rs_1' } } }])
  })

  test('an empty value does not clear an earlier signature', () => {
    const nothing = { openai: { reasoningEncryptedContent: null } }
    const parts = read(
      [
        { type: 'reasoning-start', id: '0', providerMetadata: { openai: { reasoningEncryptedContent: 'enc' } } },
        { type: 'reasoning-end', id: '0', providerMetadata: nothing },
      ],
      openaiFacts,
    )
    expect(parts).toEqual([{ type: 'reasoning_end', part: 0, signature: 'enc' }])
  })

  test('redacted reasoning has no text, but its metadata', () => {
    expect(
      read([
        { type: 'reasoning-start', id: '0', providerMetadata: { anthropic: { redactedData: 'xyz' } } },
        { type: 'reasoning-end', id: '0' },
      ]),
    ).toEqual([{ type: 'reasoning_end', part: 0, providerMetadata: { anthropic: { redactedData: 'xyz' } } }])
  })

  test('the metadata of a call comes with its start or with the call itself', () => {
    const signed = { google: { thoughtSignature: 'sig' } }
    const parts = read(
      [
        { type: 'tool-input-start', id: 'a', toolName: 'read', providerMetadata: signed },
        { type: 'tool-call', toolCallId: 'a', toolName: 'read', input: '{}' },
        { type: 'tool-call', toolCallId: 'b', toolName: 'read', input: '{}', providerMetadata: signed },
      ],
      googleFacts,
    )
    expect(parts.slice(1)).toEqual([
      { type: 'tool_call', part: 0, callId: 'a', name: 'read', input: '{}', providerMetadata: signed },
      { type: 'tool_call', part: 1, callId: 'b', name: 'read', input: '{}', providerMetadata: signed },
    ])
  })

  test('files, sources, pings, provider tools and unknown kinds are dropped', () => {
    const dropped = [
      { type: 'stream-start', warnings: [] },
      { type: 'response-metadata', id: 'x' },
      { type: 'ping' },
      { type: 'raw', rawValue: {} },
      { type: 'file', mediaType: 'image/png', data: { type: 'data', data: 'x' } },
      { type: 'source', sourceType: 'url', id: 's', url: 'https://example.com' },
      { type: 'tool-input-start', id: 'w', toolName: 'web_search', providerExecuted: true },
      { type: 'tool-input-delta', id: 'w', delta: '{}' },
      { type: 'tool-call', toolCallId: 'w', toolName: 'web_search', input: '{}', providerExecuted: true },
      { type: 'hologram', beam: 1 },
    ] as LanguageModelV4StreamPart[]
    expect(read(dropped)).toEqual([])
    expect(read([...dropped, { type: 'text-delta', id: '0', delta: 'Hi' }])).toEqual([
      { type: 'text_delta', part: 0, text: 'Hi' },
    ])
  })
})

function read(parts: LanguageModelV4StreamPart[], facts: ProviderFacts = anthropicFacts): ModelPart[] {
  const reader = new PartReader(facts)
  return parts.map((part) => reader.read(part)).filter((part) => part !== undefined)
}
