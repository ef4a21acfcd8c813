import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { toModelError } from '../../models/response/provider-error.ts'
import type { anthropicRules } from './anthropic-rules.ts'
import type { geminiRules } from './gemini-rules.ts'
import { startFakeProvider, type FakeApi, type FakeHost, type FakeProvider } from './index.ts'
import type { openaiChatRules } from './openai-chat-rules.ts'
import type { openaiResponsesRules } from './openai-responses-rules.ts'

type Json = Record<string, unknown>

/** A request that breaks a rule, and a similar one that complies. */
interface Pair {
  breaks: Json
  keeps: Json
  /** `claude-opus-5`, `gpt-5.5`, `gemini-3.1-pro-preview` or `any` if absent. */
  model?: string
  host?: FakeHost
}

const user = (content: unknown): Json => ({ role: 'user', content })
const assistant = (content: unknown, more: Json = {}): Json => ({ role: 'assistant', content, ...more })
const saying = (text: unknown): Json => ({ type: 'text', text })
const longest = (length: number): string => 'a'.repeat(length)
const schema = { type: 'object', properties: { path: { type: 'string' } } }

// Anthropic
const use = (id: string, more: Json = {}): Json => ({ type: 'tool_use', id, name: 'read', input: {}, ...more })
const used = (id: string, more: Json = {}): Json => ({ type: 'tool_result', tool_use_id: id, content: 'A', ...more })
const thought = { type: 'thinking', thinking: 'Hm.', signature: 'c2ln' }
const claudeTool = (name: string, more: Json = {}): Json => ({ name, input_schema: schema, ...more })
const marked = { cache_control: { type: 'ephemeral' } }
const claude = (messages: Json[], more: Json = {}): Json => ({ max_tokens: 4096, messages, ...more })
const claudeTurn = (...blocks: Json[]): Json[] => {
  const results = blocks.filter(({ type }) => type === 'tool_use').map(({ id }) => used(String(id)))
  return [user('go'), assistant(blocks), user(results.length > 0 ? results : 'more')]
}
const hello = [user('go')]
const budget = { thinking: { type: 'enabled', budget_tokens: 2048 } }
const image = (source: Json): Json[] => [user([{ type: 'image', source: { type: 'base64', ...source } }])]

const anthropicPairs: Record<keyof typeof anthropicRules, Pair> = {
  'max-tokens': { breaks: { messages: hello }, keeps: claude(hello) },
  'messages-not-empty': { breaks: claude([]), keeps: claude(hello) },
  'first-message-is-user': { breaks: claude([assistant('Hi.'), ...hello]), keeps: claude(hello) },
  'last-message-is-user': {
    breaks: claude([...hello, assistant('I')]),
    keeps: claude([...hello, assistant('I'), ...hello]),
  },
  'no-trailing-space': {
    model: 'claude-sonnet-4-5',
    breaks: claude([...hello, assistant('I ')]),
    keeps: claude([...hello, assistant('I')]),
  },
  role: { breaks: claude([...hello, { role: 'tool', content: 'A' }]), keeps: claude([...hello, user('more')]) },
  'content-not-empty': { breaks: claude([user([])]), keeps: claude([user([saying('go')])]) },
  'text-is-string': { breaks: claude([user([saying(1)])]), keeps: claude([user([saying('1')])]) },
  'text-not-empty': {
    breaks: claude([user([used('a', { content: [saying('')] }), saying('')])]),
    keeps: claude(hello),
  },
  'text-not-blank': { breaks: claude([user([saying('\n\n')])]), keeps: claude([user([saying('\n\ngo')])]) },
  'image-media-type': {
    breaks: claude(image({ media_type: 'image/tiff', data: 'AAAA' })),
    keeps: claude(image({ media_type: 'image/webp', data: 'AAAA' })),
  },
  'image-size': {
    breaks: claude(image({ media_type: 'image/png', data: longest(7_000_000) })),
    keeps: claude(image({ media_type: 'image/png', data: longest(6_900_000) })),
  },
  'tool-name': {
    breaks: claude(hello, { tools: [claudeTool('files.read')] }),
    keeps: claude(hello, { tools: [claudeTool('files_read')] }),
  },
  'tool-names-unique': {
    breaks: claude(hello, { tools: [claudeTool('read'), claudeTool('read')] }),
    keeps: claude(hello, { tools: [claudeTool('read'), claudeTool('write')] }),
  },
  'input-schema-is-object': {
    breaks: claude(hello, { tools: [claudeTool('read', { input_schema: { type: 'string' } })] }),
    keeps: claude(hello, { tools: [{ type: 'web_search_20250305', name: 'web_search' }] }),
  },
  'no-top-level-combinator': {
    breaks: claude(hello, { tools: [claudeTool('read', { input_schema: { type: 'object', anyOf: [schema] } })] }),
    keeps: claude(hello, {
      tools: [claudeTool('read', { input_schema: { type: 'object', properties: { path: { anyOf: [] } } } })],
    }),
  },
  'tool-use-id': { breaks: claude(claudeTurn(use('call:a'))), keeps: claude(claudeTurn(use('call_a'))) },
  'tool-use-ids-unique': {
    breaks: claude([...hello, assistant([use('a'), use('a')]), user([used('a')])]),
    keeps: claude([...claudeTurn(use('a')), assistant([use('a')]), user([used('a')])]),
  },
  'tool-use-name': {
    breaks: claude(claudeTurn(use('a', { name: 'read file' }))),
    keeps: claude(claudeTurn(use('a', { name: 'read-file' }))),
  },
  'tool-use-input-is-object': {
    breaks: claude(claudeTurn(use('a', { input: '{}' }))),
    keeps: claude(claudeTurn(use('a', { input: { path: 'a' } }))),
  },
  'every-call-has-its-result': {
    breaks: claude([...hello, assistant([use('a'), use('b')]), user([used('a')])]),
    keeps: claude([...hello, assistant([use('a'), use('b')]), user([used('b'), used('a')])]),
  },
  'every-result-has-its-call': {
    breaks: claude([...claudeTurn(use('a')), assistant('Done.'), user([used('a')])]),
    keeps: claude(claudeTurn(use('a'))),
  },
  'one-result-per-call': {
    breaks: claude([...hello, assistant([use('a')]), user([used('a'), used('a')])]),
    keeps: claude([...hello, assistant([use('a')]), user([used('a')])]),
  },
  'results-come-first': {
    breaks: claude([...hello, assistant([use('a')]), user([saying('Wait.'), used('a')])]),
    keeps: claude([...hello, assistant([use('a')]), user([used('a'), saying('Wait.')])]),
  },
  'failed-result-has-content': {
    breaks: claude([...hello, assistant([use('a')]), user([used('a', { is_error: true, content: '' })])]),
    keeps: claude([...hello, assistant([use('a')]), user([used('a', { content: '' })])]),
  },
  'server-tool-has-result': {
    breaks: claude(claudeTurn({ type: 'server_tool_use', id: 's', name: 'web_search', input: {} }, saying('Hm.'))),
    keeps: claude(
      claudeTurn(
        { type: 'server_tool_use', id: 's', name: 'web_search', input: {} },
        { type: 'web_search_tool_result', tool_use_id: 's', content: [] },
      ),
    ),
  },
  'server-result-has-call': {
    breaks: claude(claudeTurn({ type: 'web_search_tool_result', tool_use_id: 's', content: [] })),
    keeps: claude(
      claudeTurn(
        { type: 'server_tool_use', id: 's', name: 'web_search', input: {} },
        { type: 'web_search_tool_result', tool_use_id: 's', content: [] },
      ),
    ),
  },
  'thinking-is-signed': {
    breaks: claude(claudeTurn({ type: 'thinking', thinking: 'Hm.' }, saying('Hi.'))),
    keeps: claude(claudeTurn(thought, saying('Hi.'))),
  },
  'redacted-thinking-has-data': {
    breaks: claude(claudeTurn({ type: 'redacted_thinking' }, saying('Hi.'))),
    keeps: claude(claudeTurn({ type: 'redacted_thinking', data: 'ZGF0YQ' }, saying('Hi.'))),
  },
  'last-block-not-thinking': {
    breaks: claude(claudeTurn(saying('Hi.'), thought)),
    keeps: claude(claudeTurn(thought, saying('Hi.'))),
  },
  'turn-begins-with-thinking': {
    model: 'claude-sonnet-4-5',
    breaks: claude(claudeTurn(saying('I look.'), use('a')), budget),
    keeps: claude([...claudeTurn(use('a')), assistant('Done.'), user('more')], budget),
  },
  'at-most-4-cache-marks': {
    breaks: claude([user([1, 2, 3, 4].map((each) => ({ ...saying(`${each}`), ...marked })))], {
      system: [{ ...saying('Be brief.'), ...marked }],
    }),
    keeps: claude([user([1, 2, 3].map((each) => ({ ...saying(`${each}`), ...marked })))], {
      system: [{ ...saying('Be brief.'), ...marked }],
    }),
  },
  'no-cache-control-on-thinking': {
    breaks: claude(claudeTurn({ ...thought, ...marked }, saying('Hi.'))),
    keeps: claude(claudeTurn(thought, { ...saying('Hi.'), ...marked })),
  },
  'no-cache-control-on-empty-text': {
    breaks: claude([user([saying('go'), { ...saying(''), ...marked }])]),
    keeps: claude([user([{ ...saying('go'), ...marked }])]),
  },
  'thinking-budget-at-least-1024': {
    model: 'claude-sonnet-4-5',
    breaks: claude(hello, { thinking: { type: 'enabled', budget_tokens: 512 } }),
    keeps: claude(hello, { thinking: { type: 'enabled', budget_tokens: 1024 } }),
  },
  'max-tokens-above-budget': {
    model: 'claude-sonnet-4-5',
    breaks: claude(hello, { thinking: { type: 'enabled', budget_tokens: 4096 } }),
    keeps: claude(hello, { thinking: { type: 'enabled', budget_tokens: 4095 } }),
  },
  'no-budget-thinking': {
    model: 'claude-opus-5-5',
    breaks: claude(hello, budget),
    keeps: claude(hello, { thinking: { type: 'adaptive' } }),
  },
  'no-adaptive-thinking': {
    model: 'claude-sonnet-4-5',
    breaks: claude(hello, { thinking: { type: 'adaptive' } }),
    keeps: claude(hello, budget),
  },
  'no-disabled-thinking': {
    model: 'claude-sonnet-5-5',
    breaks: claude(hello, { thinking: { type: 'disabled' } }),
    keeps: claude(hello, { thinking: { type: 'between_tools' } }),
  },
  'effort-without-thinking': {
    breaks: claude(hello, { thinking: { type: 'disabled' }, output_config: { effort: 'max' } }),
    keeps: claude(hello, { thinking: { type: 'disabled' }, output_config: { effort: 'high' } }),
  },
  'no-temperature-with-thinking': {
    breaks: claude(hello, { thinking: { type: 'adaptive' }, temperature: 0.5 }),
    keeps: claude(hello, { thinking: { type: 'disabled' }, temperature: 0.5 }),
  },
  'no-top-k-with-thinking': {
    breaks: claude(hello, { thinking: { type: 'adaptive' }, top_k: 5 }),
    keeps: claude(hello, { thinking: { type: 'disabled' }, top_k: 5 }),
  },
  'no-forced-tool-with-thinking': {
    breaks: claude(hello, { thinking: { type: 'adaptive' }, tool_choice: { type: 'any' } }),
    keeps: claude(hello, { thinking: { type: 'adaptive' }, tool_choice: { type: 'auto' } }),
  },
}

// OpenAI Responses
const call = (id: string, more: Json = {}): Json => ({
  type: 'function_call',
  call_id: id,
  name: 'read',
  arguments: '{}',
  ...more,
})
const output = (id: string, more: Json = {}): Json => ({
  type: 'function_call_output',
  call_id: id,
  output: 'A',
  ...more,
})
const reasoning = { type: 'reasoning', id: 'rs_1', summary: [], encrypted_content: 'ZW5j' }
const response = (input: unknown, more: Json = {}): Json => ({ input, store: false, ...more })
const responseTool = (name: string): Json => ({ type: 'function', name, parameters: schema })

const openaiPairs: Record<keyof typeof openaiResponsesRules, Pair> = {
  'input-not-empty': { breaks: response([]), keeps: response('go') },
  role: { breaks: response([{ role: 'tool', content: 'A' }]), keeps: response([{ role: 'developer', content: 'A' }]) },
  'content-not-empty': { breaks: response([user([])]), keeps: response([user([{ type: 'input_text', text: 'go' }])]) },
  'part-type': {
    breaks: response([...hello, assistant([{ type: 'input_text', text: 'Hi.' }])]),
    keeps: response([...hello, assistant([{ type: 'output_text', text: 'Hi.' }])]),
  },
  'item-ids-unique': {
    breaks: response([...hello, assistant('A', { id: 'msg_1' }), assistant('B', { id: 'msg_1' })]),
    keeps: response([...hello, assistant('A', { id: 'msg_1' }), assistant('B', { id: 'msg_2' })]),
  },
  'item-id-length': {
    breaks: response([...hello, assistant('A', { id: `msg_${longest(61)}` })]),
    keeps: response([...hello, assistant('A', { id: `msg_${longest(60)}` })]),
  },
  'item-id-prefix': {
    breaks: response([...hello, call('a', { id: 'call_1' }), output('a')]),
    keeps: response([...hello, call('a', { id: 'fc_1' }), output('a')]),
  },
  'no-reference-without-store': {
    breaks: response([...hello, { type: 'item_reference', id: 'msg_1' }]),
    keeps: response([...hello, { type: 'item_reference', id: 'msg_1' }], { store: true }),
  },
  'call-ids-unique': {
    breaks: response([...hello, call('a'), call('a'), output('a')]),
    keeps: response([...hello, call('a'), call('b'), output('a'), output('b')]),
  },
  'call-id-length': {
    breaks: response([...hello, call(longest(65)), output(longest(65))]),
    keeps: response([...hello, call(longest(64)), output(longest(64))]),
  },
  'function-name': {
    breaks: response([...hello, call('a', { name: 'files.read' }), output('a')]),
    keeps: response([...hello, call('a', { name: 'files_read' }), output('a')]),
  },
  'arguments-is-string': {
    breaks: response([...hello, call('a', { arguments: {} }), output('a')]),
    keeps: response([...hello, call('a'), output('a')]),
  },
  'arguments-is-json-object': {
    breaks: response([...hello, call('a', { arguments: '{"path": "a' }), output('a')]),
    keeps: response([...hello, call('a', { arguments: '{"path": "a"}' }), output('a')]),
  },
  'every-call-has-its-output': {
    breaks: response([...hello, call('a'), ...hello]),
    keeps: response([...hello, call('a'), output('a'), ...hello]),
  },
  'every-output-has-its-call': {
    breaks: response([...hello, output('a')]),
    keeps: response([...hello, call('a'), output('a')]),
  },
  'output-after-call': {
    breaks: response([...hello, output('a'), call('a')]),
    keeps: response([...hello, call('a'), output('a')]),
  },
  'one-output-per-call': {
    breaks: response([...hello, call('a'), output('a'), output('a')]),
    keeps: response([...hello, call('a'), output('a')]),
  },
  'output-type': {
    breaks: response([...hello, call('a'), output('a', { output: null })]),
    keeps: response([...hello, call('a'), output('a', { output: [{ type: 'input_text', text: 'A' }] })]),
  },
  'output-length': {
    breaks: response([...hello, call('a'), output('a', { output: longest(10_485_761) })]),
    keeps: response([...hello, call('a'), output('a', { output: longest(10_485_760) })]),
  },
  'reasoning-has-summary': {
    breaks: response([...hello, { ...reasoning, summary: undefined }, assistant('Hi.')]),
    keeps: response([...hello, reasoning, assistant('Hi.')]),
  },
  'reasoning-is-encrypted': {
    breaks: response([...hello, { ...reasoning, encrypted_content: null }, assistant('Hi.')]),
    keeps: response([...hello, { ...reasoning, encrypted_content: null }, assistant('Hi.')], { store: true }),
  },
  'reasoning-has-its-following-item': {
    breaks: response([...hello, reasoning, user('more')]),
    keeps: response([...hello, reasoning, call('a'), output('a')]),
  },
  'tool-name': {
    breaks: response(hello, { tools: [responseTool(longest(65))] }),
    keeps: response(hello, { tools: [responseTool(longest(64))] }),
  },
  'at-most-128-tools': {
    breaks: response(hello, { tools: Array.from({ length: 129 }, (_, place) => responseTool(`tool_${place}`)) }),
    keeps: response(hello, { tools: Array.from({ length: 128 }, (_, place) => responseTool(`tool_${place}`)) }),
  },
  'include-is-known': {
    breaks: response(hello, { include: ['reasoning'] }),
    keeps: response(hello, { include: ['reasoning.encrypted_content'] }),
  },
  'no-encrypted-content-without-reasoning': {
    model: 'gpt-4.1',
    breaks: response(hello, { include: ['reasoning.encrypted_content'] }),
    keeps: response(hello, { include: ['message.output_text.logprobs'] }),
  },
  'no-temperature-with-reasoning': {
    breaks: response(hello, { temperature: 0.5 }),
    keeps: response(hello, { temperature: 0.5, reasoning: { effort: 'none' } }),
  },
  'max-output-tokens-at-least-16': {
    breaks: response(hello, { max_output_tokens: 15 }),
    keeps: response(hello, { max_output_tokens: 16 }),
  },
  'prompt-cache-key-length': {
    breaks: response(hello, { prompt_cache_key: longest(65) }),
    keeps: response(hello, { prompt_cache_key: longest(64) }),
  },
}

// Gemini
const turn = (role: string, ...parts: Json[]): Json => ({ role, parts })
const functionCall = (more: Json = {}): Json => ({
  functionCall: { name: 'read', args: {}, ...more },
  thoughtSignature: 'c2ln',
})
const functionResponse = (more: Json = {}): Json => ({ functionResponse: { name: 'read', response: {}, ...more } })
const asked = turn('user', { text: 'go' })
const contents = (...turns: Json[]): Json => ({ contents: turns })
const declaring = (...declarations: Json[]): Json => ({
  ...contents(asked),
  tools: [{ functionDeclarations: declarations }],
})

const geminiPairs: Record<keyof typeof geminiRules, Pair> = {
  'contents-not-empty': { breaks: contents(), keeps: contents(asked) },
  'first-turn-is-user': { breaks: contents(turn('model', { text: 'Hi.' }), asked), keeps: contents(asked) },
  role: {
    breaks: contents(asked, turn('assistant', { text: 'Hi.' })),
    keeps: contents(asked, turn('model', { text: 'Hi.' })),
  },
  'parts-not-empty': { breaks: contents(turn('user')), keeps: contents(asked) },
  'part-has-one-kind-of-data': {
    breaks: contents(turn('user', { thought: true })),
    keeps: contents(asked, turn('model', { text: 'Hm.', thought: true }), asked),
  },
  'text-not-empty': {
    breaks: contents(turn('user', { text: '' })),
    keeps: contents(asked, turn('model', { text: '', thoughtSignature: 'c2ln' }), asked),
  },
  'calls-by-model': {
    breaks: contents(asked, turn('user', functionCall()), turn('user', functionResponse())),
    keeps: contents(asked, turn('model', functionCall()), turn('user', functionResponse())),
  },
  'function-name': {
    breaks: contents(
      asked,
      turn('model', functionCall({ name: '1read' })),
      turn('user', functionResponse({ name: '1read' })),
    ),
    keeps: contents(
      asked,
      turn('model', functionCall({ name: '_read' })),
      turn('user', functionResponse({ name: '_read' })),
    ),
  },
  'args-is-object': {
    breaks: contents(asked, turn('model', functionCall({ args: '{}' })), turn('user', functionResponse())),
    keeps: contents(asked, turn('model', functionCall({ args: { path: 'a' } })), turn('user', functionResponse())),
  },
  'response-is-object': {
    breaks: contents(asked, turn('model', functionCall()), turn('user', functionResponse({ response: 'A' }))),
    keeps: contents(
      asked,
      turn('model', functionCall()),
      turn('user', functionResponse({ response: { output: 'A' } })),
    ),
  },
  'as-many-responses-as-calls': {
    breaks: contents(asked, turn('model', functionCall(), functionCall()), turn('user', functionResponse())),
    keeps: contents(
      asked,
      turn('model', functionCall(), functionCall()),
      turn('user', functionResponse(), functionResponse()),
    ),
  },
  'response-after-call': {
    breaks: contents(asked, turn('model', { text: 'Hi.' }), turn('user', functionResponse())),
    keeps: contents(asked, turn('model', functionCall()), turn('user', functionResponse())),
  },
  'response-name-of-its-call': {
    breaks: contents(asked, turn('model', functionCall()), turn('user', functionResponse({ name: 'write' }))),
    keeps: contents(asked, turn('model', functionCall()), turn('user', functionResponse())),
  },
  'response-id-of-its-call': {
    breaks: contents(asked, turn('model', functionCall({ id: 'a' })), turn('user', functionResponse({ id: 'b' }))),
    keeps: contents(asked, turn('model', functionCall({ id: 'a' })), turn('user', functionResponse({ id: 'a' }))),
  },
  'call-after-user-or-response': {
    breaks: contents(
      asked,
      turn('model', { text: 'Hm.' }),
      turn('model', functionCall()),
      turn('user', functionResponse()),
    ),
    keeps: contents(asked, turn('model', { text: 'Hm.' }, functionCall()), turn('user', functionResponse())),
  },
  'first-call-is-signed': {
    breaks: contents(asked, turn('model', { functionCall: { name: 'read' } }), turn('user', functionResponse())),
    // Only the current turn counts.
    keeps: contents(
      asked,
      turn('model', { functionCall: { name: 'read' } }),
      turn('user', functionResponse()),
      turn('model', { text: 'Done.' }),
      asked,
    ),
  },
  'declared-name': { breaks: declaring({ name: 'read file' }), keeps: declaring({ name: 'read.file' }) },
  'declared-names-unique': {
    breaks: declaring({ name: 'read' }, { name: 'read' }),
    keeps: declaring({ name: 'read' }, { name: 'write' }),
  },
  'schema-keyword': {
    breaks: declaring({
      name: 'read',
      parameters: { type: 'object', properties: { path: { type: 'string', const: 'a' } } },
    }),
    keeps: declaring({ name: 'read', parametersJsonSchema: { type: 'object', additionalProperties: false } }),
  },
  'one-thinking-setting': {
    breaks: {
      ...contents(asked),
      generationConfig: { thinkingConfig: { thinkingBudget: 1024, thinkingLevel: 'high' } },
    },
    keeps: { ...contents(asked), generationConfig: { thinkingConfig: { thinkingLevel: 'high' } } },
  },
  'thinking-level': {
    model: 'gemini-2.5-flash',
    breaks: { ...contents(asked), generationConfig: { thinkingConfig: { thinkingLevel: 'high' } } },
    keeps: { ...contents(asked), generationConfig: { thinkingConfig: { thinkingBudget: 0 } } },
  },
}

// Chat Completions
const toolCall = (id: string, more: Json = {}, called: Json = {}): Json => ({
  id,
  type: 'function',
  function: { name: 'read', arguments: '{}', ...called },
  ...more,
})
const answered = (id: string, content: unknown = 'A'): Json => ({ role: 'tool', tool_call_id: id, content })
const calling = (calls: Json[], more: Json = {}): Json => assistant(null, { tool_calls: calls, ...more })
const chat = (messages: Json[], more: Json = {}): Json => ({ messages, ...more })
const chatTurn = (more: Json = {}, called: Json = {}, message: Json = {}): Json =>
  chat([user('go'), calling([toolCall('abcdefghi', more, called)], message), answered('abcdefghi')])

const chatPairs: Record<keyof typeof openaiChatRules, Pair> = {
  'messages-not-empty': { breaks: chat([]), keeps: chat(hello) },
  role: {
    breaks: chat([...hello, { role: 'function', content: 'A' }]),
    keeps: chat([{ role: 'system', content: 'A' }, ...hello]),
  },
  'user-says-something': { breaks: chat([user('')]), keeps: chat([user([saying('go')])]) },
  'part-type': {
    breaks: chat([user([{ type: 'input_text', text: 'go' }])]),
    keeps: chat([user([saying('go'), { type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA' } }])]),
  },
  'assistant-says-something': {
    breaks: chat([...hello, assistant(null), ...hello]),
    keeps: chat([...hello, assistant('Hi.'), ...hello]),
  },
  'tool-calls-not-empty': {
    breaks: chat([...hello, assistant('Hi.', { tool_calls: [] }), ...hello]),
    keeps: chat([...hello, assistant('Hi.'), ...hello]),
  },
  'call-has-id': {
    breaks: chat([...hello, calling([toolCall('')]), answered('')]),
    keeps: chat([...hello, calling([toolCall('a')]), answered('a')]),
  },
  'call-ids-unique': {
    breaks: chat([...hello, calling([toolCall('a'), toolCall('a')]), answered('a')]),
    keeps: chat([...hello, calling([toolCall('a'), toolCall('b')]), answered('a'), answered('b')]),
  },
  'call-type': { breaks: chatTurn({ type: undefined }), keeps: chatTurn() },
  'function-name': { breaks: chatTurn({}, { name: 'read file' }), keeps: chatTurn({}, { name: 'read.file' }) },
  'arguments-is-string': { breaks: chatTurn({}, { arguments: {} }), keeps: chatTurn({}, { arguments: '{}' }) },
  'arguments-is-json-object': {
    breaks: chatTurn({}, { arguments: '' }),
    keeps: chatTurn({}, { arguments: '{"path": "a"}' }),
  },
  'every-call-has-its-result': {
    breaks: chat([...hello, calling([toolCall('a'), toolCall('b')]), answered('a'), user('more')]),
    keeps: chat([...hello, calling([toolCall('a'), toolCall('b')]), answered('b'), answered('a'), user('more')]),
  },
  'every-result-has-its-call': {
    breaks: chat([...hello, calling([toolCall('a')]), answered('a'), answered('a')]),
    keeps: chat([...hello, calling([toolCall('a')]), answered('a')]),
  },
  'tool-content-type': {
    breaks: chat([...hello, calling([toolCall('a')]), answered('a', null)]),
    keeps: chat([...hello, calling([toolCall('a')]), answered('a', [saying('A')])]),
  },
  'tool-content-not-empty': {
    breaks: chat([...hello, calling([toolCall('a')]), answered('a', '')]),
    keeps: chat([...hello, calling([toolCall('a')]), answered('a', 'A')]),
  },
  'tool-name': {
    breaks: chat(hello, { tools: [{ type: 'function', function: { name: 'files.read' } }] }),
    keeps: chat(hello, { tools: [{ type: 'function', function: { name: 'files_read' } }] }),
  },
  'no-refused-message-member': {
    host: 'groq',
    breaks: chatTurn({}, {}, { reasoning_content: 'Hm.' }),
    keeps: chatTurn({}, {}, { reasoning: 'Hm.' }),
  },
  'no-refused-request-member': {
    host: 'mistral',
    breaks: chat(hello, { seed: 1 }),
    keeps: chat(hello, { random_seed: 1 }),
  },
  'calls-have-reasoning': {
    host: 'deepseek',
    model: 'deepseek-v4-pro',
    breaks: chatTurn(),
    keeps: chatTurn({}, {}, { reasoning_content: '' }),
  },
  'calls-have-reasoning-details': {
    host: 'openrouter',
    model: 'google/gemini-3.1-pro-preview',
    breaks: chatTurn(),
    keeps: chatTurn({}, {}, { reasoning_details: [{ type: 'reasoning.encrypted', data: 'c2ln' }] }),
  },
  'call-id-pattern': {
    host: 'mistral',
    breaks: chat([...hello, calling([toolCall('call_a')]), answered('call_a')]),
    keeps: chatTurn(),
  },
  'no-prompt-after-results': {
    host: 'mistral',
    breaks: chat([...hello, calling([toolCall('abcdefghi')]), answered('abcdefghi'), user('more')]),
    keeps: chat([...hello, calling([toolCall('abcdefghi')]), answered('abcdefghi'), assistant('Hi.'), user('more')]),
  },
  'mistral-last-role': {
    host: 'mistral',
    breaks: chat([...hello, assistant('I')]),
    keeps: chat([...hello, assistant('I', { prefix: true })]),
  },
}

const defaultModels: Record<FakeApi, string> = {
  anthropic: 'claude-opus-5',
  openai: 'gpt-5.5',
  google: 'gemini-3.1-pro-preview',
  openaiCompatible: 'any',
}

let provider: FakeProvider
beforeAll(async () => {
  provider = await startFakeProvider()
  provider.script(() => ({ type: 'answer', content: [{ type: 'text', chunks: ['ok'] }] }))
})
afterAll(() => provider.close())

describe.each([
  ['anthropic', anthropicPairs],
  ['openai', openaiPairs],
  ['google', geminiPairs],
  ['openaiCompatible', chatPairs],
] as [FakeApi, Record<string, Pair>][])('the rules of %s', (api, pairs) => {
  test.each(Object.entries(pairs))('%s: rejects a request that breaks it, with the rule', async (rule, pair) => {
    const { status, body } = await post(api, pair, pair.breaks)
    expect(provider.requests.at(-1)?.broken.map((each) => each.rule)).toContain(rule)
    expect([status, body]).toEqual([400, expect.stringMatching(/\(rule [\w-]+\)/)])
    // The text of the rule must not be classified as a quota or an overflow.
    const error = { statusCode: status, responseBody: body }
    expect(toModelError(error, { provider: api, now: 0 }).kind).toBe('invalid-request')
  })

  test.each(Object.entries(pairs))('%s: accepts a request that keeps it', async (_, pair) => {
    const { status } = await post(api, pair, pair.keeps)
    expect([provider.requests.at(-1)?.broken, status]).toEqual([[], 200])
  })
})

async function post(api: FakeApi, { model, host }: Pair, body: Json): Promise<{ status: number; body: string }> {
  const id = model ?? defaultModels[api]
  const path = {
    anthropic: '/messages',
    openai: '/responses',
    google: `/models/${id}:streamGenerateContent?alt=sse`,
    openaiCompatible: '/chat/completions',
  }[api]
  const url = `${provider.baseUrl(api, host === undefined ? {} : { host })}${path}`
  const sent = await fetch(url, { method: 'POST', body: JSON.stringify({ model: id, ...body }) })
  return { status: sent.status, body: await sent.text() }
}
