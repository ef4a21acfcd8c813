import type { FakeApi } from '@tapetree/agent/testing'
import type { Draw } from './draw.ts'
import { kindsIn } from './kinds.ts'
import type { Subject } from './subjects.ts'

type Json = Record<string, unknown>

/** What an answer is to have. */
export interface Wish {
  subject: Subject
  /** Unique among the answers of a conversation; part of every text and id. */
  mark: string
  calls: number
  hasReasoning: boolean
  /** The input of the last call is not whole. Gemini sends inputs as objects, so they are always whole. */
  isMalformed: boolean
  /** Kinds that no provider has sent so far are mixed in. */
  hasUnknown: boolean
}

export interface ComposedStream {
  body: string
  /** The kinds of events, blocks, members and ends that the stream has, for the count of what was tried. */
  kinds: ReadonlySet<string>
}

/** A stream as the provider of the subject might send it. */
export function composeStream(wish: Wish, draw: Draw): ComposedStream {
  const composer = composers[wish.subject.api](wish, draw)
  const body = composer.body()
  return { body, kinds: new Set([...kindsIn(wish.subject.api, body), ...composer.unknownKinds]) }
}

/** Collects the events of a stream. */
class Composer {
  /** The siblings of known kinds that were mixed in. */
  readonly unknownKinds = new Set<string>()
  readonly wish: Wish
  readonly draw: Draw
  readonly #frames: string[] = []
  readonly #lineEnd: string

  constructor(wish: Wish, draw: Draw) {
    this.wish = wish
    this.draw = draw
    this.#lineEnd = draw.chance(0.2) ? '\r\n' : '\n'
  }

  note(kind: string): void {
    this.unknownKinds.add(`${this.wish.subject.api} unknown ${kind}`)
  }

  event(data: Json, name?: string): void {
    this.frame(`${name === undefined ? '' : `event: ${name}\n`}data: ${JSON.stringify(data)}`)
  }

  /** Text of one frame, without the empty line behind it. */
  frame(text: string): void {
    this.#frames.push(text)
    if (this.draw.chance(0.05)) this.#frames.push(': keep-alive')
  }

  /** Members that a later version of the API may add. */
  unknown(): Json {
    if (!this.wish.hasUnknown || !this.draw.chance(0.3)) return {}
    this.note('member')
    return { x_new_member: this.draw.pick([null, 1, 'new', [], { nested: [true] }]) }
  }

  isUnknownDrawn(kind: string): boolean {
    if (!this.wish.hasUnknown || !this.draw.chance(0.15)) return false
    this.note(kind)
    return true
  }

  input(place: number): string {
    const { mark, subject, calls, isMalformed } = this.wish
    const whole = JSON.stringify({ at: this.draw.text(mark) })
    const isCut = isMalformed && place === calls - 1 && subject.api !== 'google'
    return isCut ? whole.slice(0, -this.draw.integer(1, 5)) : whole
  }

  toolName(): string {
    return this.draw.chance(0.05) ? 'no_such_tool' : 'look'
  }

  signature(): string {
    return `c2ln${this.wish.mark}${this.draw.letters('abcdefghij', 12)}==`
  }

  body(): string {
    const text = this.#frames.map((frame) => `${frame}\n\n`).join('')
    return this.#lineEnd === '\n' ? text : text.replaceAll('\n', '\r\n')
  }
}

const composers: Record<FakeApi, (wish: Wish, draw: Draw) => Composer> = {
  anthropic: composeAnthropic,
  openai: composeOpenai,
  google: composeGemini,
  openaiCompatible: composeChat,
}

// Anthropic Messages

function composeAnthropic(wish: Wish, draw: Draw): Composer {
  const out = new Composer(wish, draw)
  const { mark } = wish
  let index = 0
  const send = (data: Json & { type: string }): void => {
    out.event({ ...data, ...out.unknown() }, data.type)
    if (draw.chance(0.1)) {
      out.event({ type: 'ping' }, 'ping')
    }
    if (out.isUnknownDrawn('event'))
      out.event({ type: 'content_block_highlight', index, span: [0, 1] }, 'content_block_highlight')
  }
  const delta = (data: Json & { type: string }): void => {
    send({ type: 'content_block_delta', index, delta: { ...data, ...out.unknown() } })
    if (out.isUnknownDrawn('delta'))
      send({ type: 'content_block_delta', index, delta: { type: 'hologram_delta', hologram: 'x' } })
  }
  const block = (content: Json & { type: string }, deltas: () => void = () => undefined): void => {
    send({ type: 'content_block_start', index, content_block: { ...content, ...out.unknown() } })
    deltas()
    send({ type: 'content_block_stop', index })
    index += 1
    if (!out.isUnknownDrawn('block')) return
    send({ type: 'content_block_start', index, content_block: { type: 'hologram', depth: 3 } })
    send({ type: 'content_block_delta', index, delta: { type: 'hologram_delta', hologram: 'x' } })
    send({ type: 'content_block_stop', index })
    index += 1
  }
  const startUsage: Json = {
    input_tokens: draw.integer(1, 5000),
    output_tokens: 1,
    ...draw.some({
      cache_creation_input_tokens: draw.integer(0, 900),
      cache_read_input_tokens: draw.integer(0, 900),
      service_tier: 'standard',
      cache_creation: { ephemeral_5m_input_tokens: 0, ephemeral_1h_input_tokens: 0 },
      inference_geo: 'not_available',
      server_tool_use: null,
    }),
  }
  const message = { id: `msg_${mark}`, type: 'message', role: 'assistant', model: wish.subject.model, content: [] }
  send({ type: 'message_start', message: { ...message, stop_reason: null, stop_sequence: null, usage: startUsage } })
  if (wish.hasReasoning) {
    for (let count = draw.integer(1, 2); count > 0; count -= 1) {
      if (draw.chance(0.2)) {
        block({ type: 'redacted_thinking', data: out.signature() })
        continue
      }
      block({ type: 'thinking', thinking: '', signature: '' }, () => {
        for (const thinking of draw.pieces(draw.text(mark))) delta({ type: 'thinking_delta', thinking })
        delta({ type: 'signature_delta', signature: out.signature() })
      })
    }
  }
  if (draw.chance(0.15)) composeServerTool(block, delta, { draw, mark })
  if (draw.chance(0.02)) block({ type: 'fallback', from: { model: 'claude-a' }, to: { model: 'claude-b' } })
  if (draw.chance(0.02)) {
    block({ type: 'compaction', content: '' }, () => delta({ type: 'compaction_delta', content: draw.text(mark) }))
  }
  if (wish.calls === 0 || draw.chance(0.7)) {
    block({ type: 'text', text: '' }, () => {
      for (const text of draw.pieces(draw.text(mark))) delta({ type: 'text_delta', text })
      if (draw.chance(0.1)) delta({ type: 'citations_delta', citation: webCitation })
    })
  }
  for (let place = 0; place < wish.calls; place += 1) {
    block({ type: 'tool_use', id: `toolu_${mark}_${place}`, name: out.toolName(), input: {} }, () => {
      for (const partial of ['', ...draw.pieces(out.input(place))])
        delta({ type: 'input_json_delta', partial_json: partial })
    })
  }
  const known = wish.calls > 0 ? 'tool_use' : draw.pick(['end_turn', 'end_turn', 'stop_sequence', 'max_tokens'])
  const stop = wish.calls === 0 && out.isUnknownDrawn('stop-reason') ? 'out_of_coffee' : known
  const outputTokens = draw.integer(1, 500)
  const { input_tokens: inputTokens } = startUsage
  const usage = {
    output_tokens: outputTokens,
    ...draw.some({
      input_tokens: inputTokens,
      iterations: [{ type: 'message', ...startUsage, output_tokens: outputTokens }],
      cache_creation_input_tokens: startUsage['cache_creation_input_tokens'] ?? 0,
      cache_read_input_tokens: startUsage['cache_read_input_tokens'] ?? 0,
      server_tool_use: { web_search_requests: 0, web_fetch_requests: 0 },
      output_tokens_details: { thinking_tokens: draw.integer(0, 90) },
    }),
  }
  const more = draw.some({ context_management: { applied_edits: [] } }, 0.1)
  const end = { stop_reason: stop, stop_sequence: null, ...draw.some({ stop_details: null, container: null }, 0.2) }
  send({ type: 'message_delta', delta: end, usage: { ...usage, ...out.unknown() }, ...more })
  send({ type: 'message_stop' })
  return out
}

const webCitation = {
  type: 'web_search_result_location',
  url: 'https://example.com',
  title: 'Example',
  encrypted_index: 'ZW5j',
  cited_text: 'cited',
}

/** A tool that the provider runs, with its result. The agent never asks for one, and drops both. */
function composeServerTool(
  block: (content: Json & { type: string }, deltas?: () => void) => void,
  delta: (data: Json & { type: string }) => void,
  { draw, mark }: { draw: Draw; mark: string },
): void {
  const id = `srvtoolu_${mark}`
  const [name, result] = draw.pick(serverResults)
  if (name === 'mcp') {
    block({ type: 'mcp_tool_use', id, name: 'echo', server_name: 'echo', input: {} })
  } else {
    block({ type: 'server_tool_use', id, name, input: {} }, () => {
      for (const partial of draw.pieces('{"query":"x"}')) delta({ type: 'input_json_delta', partial_json: partial })
    })
  }
  block({ ...result, tool_use_id: id })
}

const serverResults: readonly [name: string, result: Json & { type: string }][] = [
  [
    'web_search',
    {
      type: 'web_search_tool_result',
      content: [
        {
          type: 'web_search_result',
          url: 'https://example.com',
          title: 'E',
          encrypted_content: 'ZW5j',
          page_age: null,
        },
      ],
    },
  ],
  [
    'web_fetch',
    { type: 'web_fetch_tool_result', content: { type: 'web_fetch_tool_result_error', error_code: 'unavailable' } },
  ],
  [
    'bash_code_execution',
    {
      type: 'bash_code_execution_tool_result',
      content: { type: 'bash_code_execution_result', stdout: 'out', stderr: '', return_code: 0, content: [] },
    },
  ],
  [
    'text_editor_code_execution',
    {
      type: 'text_editor_code_execution_tool_result',
      content: { type: 'text_editor_code_execution_create_result', is_file_update: false },
    },
  ],
  [
    'code_execution',
    {
      type: 'code_execution_tool_result',
      content: { type: 'code_execution_result', stdout: 'out', stderr: '', return_code: 0, content: [] },
    },
  ],
  [
    'tool_search_tool_regex',
    { type: 'tool_search_tool_result', content: { type: 'tool_search_tool_search_result', tool_references: [] } },
  ],
  ['advisor', { type: 'advisor_tool_result', content: { type: 'advisor_result', text: 'advice' } }],
  ['mcp', { type: 'mcp_tool_result', is_error: false, content: [{ type: 'text', text: 'echo' }] }],
]

// OpenAI Responses

function composeOpenai(wish: Wish, draw: Draw): Composer {
  const out = new Composer(wish, draw)
  const { mark, subject } = wish
  let sequence = 0
  let place = 0
  const send = (type: string, data: Json): void => {
    out.event({ type, sequence_number: sequence, ...data, ...out.unknown() }, type)
    sequence += 1
    if (out.isUnknownDrawn('event'))
      out.event({ type: 'response.hologram.delta', sequence_number: sequence, delta: 'x' })
  }
  const item = (
    type: string,
    { added, done }: { added: Json; done: Json },
    between: () => void = () => undefined,
  ): void => {
    send('response.output_item.added', { output_index: place, item: { type, ...added } })
    between()
    send('response.output_item.done', { output_index: place, item: { type, ...done, ...out.unknown() } })
    place += 1
    if (!out.isUnknownDrawn('item')) return
    const hologram = { type: 'hologram_call', id: `hg_${mark}_${place}`, status: 'completed' }
    send('response.output_item.added', { output_index: place, item: hologram })
    send('response.hologram_call.in_progress', { output_index: place, item_id: hologram.id })
    send('response.output_item.done', { output_index: place, item: hologram })
    place += 1
  }
  const response = {
    id: `resp_${mark}`,
    object: 'response',
    created_at: 1_767_225_600,
    model: subject.model,
    output: [],
  }
  send('response.created', {
    response: { ...response, status: 'in_progress', service_tier: draw.pick(['default', 'auto', 'flex', null]) },
  })
  send('response.in_progress', { response: { ...response, status: 'in_progress' } })
  if (draw.chance(0.1)) send('ping', {})
  if (draw.chance(0.1)) send('response.queued', { response: { ...response, status: 'queued' } })
  if (wish.hasReasoning) {
    const id = `rs_${mark}`
    // Open models give the whole reasoning, not summaries of it.
    const isOpen = draw.chance(0.15)
    const summaries = Array.from({ length: isOpen ? 0 : draw.integer(0, 2) }, () => draw.text(mark))
    const summary = summaries.map((text) => ({ type: 'summary_text', text }))
    const done = { id, summary, encrypted_content: out.signature() }
    item('reasoning', { added: { id, summary: [], encrypted_content: 'b3Blbg==' }, done }, () => {
      for (const [summaryIndex, text] of summaries.entries()) {
        const at = { item_id: id, output_index: place, summary_index: summaryIndex }
        send('response.reasoning_summary_part.added', { ...at, part: { type: 'summary_text', text: '' } })
        for (const piece of draw.pieces(text)) send('response.reasoning_summary_text.delta', { ...at, delta: piece })
        send('response.reasoning_summary_text.done', { ...at, text })
        send('response.reasoning_summary_part.done', { ...at, part: { type: 'summary_text', text } })
      }
      if (!isOpen) return
      const text = draw.text(mark)
      const at = { item_id: id, output_index: place, content_index: 0 }
      send('response.reasoning_part.added', { ...at, part: { type: 'reasoning_text', text: '' } })
      for (const delta of draw.pieces(text)) send('response.reasoning_text.delta', { ...at, delta })
      send('response.reasoning_text.done', { ...at, text })
      send('response.reasoning_part.done', { ...at, part: { type: 'reasoning_text', text } })
    })
  }
  if (draw.chance(0.3)) composeForeignItem(item, send, { draw, mark, place: () => place })
  if (wish.calls === 0 || draw.chance(0.6)) {
    const id = `msg_${mark}`
    const text = draw.text(mark)
    const phase = draw.some({ phase: wish.calls > 0 ? 'commentary' : 'final_answer' })
    const added = { id, status: 'in_progress', role: 'assistant', content: [], ...phase }
    const parts = [{ type: 'output_text', text, annotations: [], logprobs: [] }]
    item('message', { added, done: { ...added, status: 'completed', content: parts } }, () => {
      const at = { item_id: id, output_index: place, content_index: 0 }
      send('response.content_part.added', { ...at, part: { type: 'output_text', text: '', annotations: [] } })
      for (const delta of draw.pieces(text))
        send('response.output_text.delta', { ...at, delta, logprobs: [], ...draw.some({ obfuscation: 'xy' }) })
      if (draw.chance(0.1))
        send('response.output_text.annotation.added', { ...at, annotation_index: 0, annotation: urlCitation })
      send('response.output_text.done', { ...at, text })
      send('response.content_part.done', { ...at, part: parts[0] })
    })
  }
  for (let call = 0; call < wish.calls; call += 1) {
    const id = `fc_${mark}_${call}`
    const input = out.input(call)
    const added = { id, call_id: `call_${mark}_${call}`, name: out.toolName(), arguments: '', status: 'in_progress' }
    item('function_call', { added, done: { ...added, arguments: input, status: 'completed' } }, () => {
      const at = { item_id: id, output_index: place }
      for (const delta of draw.pieces(input)) send('response.function_call_arguments.delta', { ...at, delta })
      send('response.function_call_arguments.done', { ...at, arguments: input })
    })
  }
  const reasoningTokens = wish.hasReasoning ? draw.integer(0, 90) : 0
  const [inputTokens, outputTokens] = [draw.integer(1, 5000), reasoningTokens + draw.integer(1, 500)]
  const usage = {
    input_tokens: inputTokens,
    input_tokens_details: { cached_tokens: draw.integer(0, inputTokens) },
    output_tokens: outputTokens,
    output_tokens_details: { reasoning_tokens: reasoningTokens },
    total_tokens: inputTokens + outputTokens,
    ...draw.some({ cost: 0.001, cost_in_usd_ticks: 10_000_000, is_byok: false }, 0.1),
    ...out.unknown(),
  }
  const isLong = wish.calls === 0 && draw.chance(0.1)
  const type = isLong ? 'incomplete' : 'completed'
  send(`response.${type}`, {
    response: { ...response, status: type, incomplete_details: isLong ? { reason: 'max_output_tokens' } : null, usage },
  })
  return out
}

const urlCitation = { type: 'url_citation', start_index: 0, end_index: 1, url: 'https://example.com', title: 'Example' }

type SendItem = (type: string, ends: { added: Json; done: Json }, between?: () => void) => void

/** An item of a tool that the provider runs. The agent never asks for one, and drops it. */
function composeForeignItem(
  item: SendItem,
  send: (type: string, data: Json) => void,
  { draw, mark, place }: { draw: Draw; mark: string; place: () => number },
): void {
  const type = draw.pick(Object.keys(foreignItems))
  const { added, done, events } = foreignItems[type]!
  const id = `${type}_${mark}`
  item(type, { added: { id, ...added }, done: { id, ...added, ...done } }, () => {
    const members = { output_index: place(), item_id: id, delta: 'x', code: 'x', partial_image_b64: 'AAAA' }
    for (const event of events) send(`response.${event}`, members)
  })
}

const foreignItems: Record<string, { added: Json; done: Json; events: string[] }> = {
  web_search_call: {
    added: { status: 'in_progress' },
    done: { status: 'completed', action: { type: 'search', query: 'x' } },
    events: ['web_search_call.in_progress', 'web_search_call.searching', 'web_search_call.completed'],
  },
  code_interpreter_call: {
    added: { status: 'in_progress', container_id: 'cntr_1', code: '', outputs: [] },
    done: { status: 'completed', code: 'x' },
    events: [
      'code_interpreter_call.in_progress',
      'code_interpreter_call_code.delta',
      'code_interpreter_call_code.done',
      'code_interpreter_call.interpreting',
      'code_interpreter_call.completed',
    ],
  },
  file_search_call: {
    added: { status: 'in_progress', queries: [], results: null },
    done: { status: 'completed', queries: ['x'] },
    events: ['file_search_call.in_progress', 'file_search_call.searching', 'file_search_call.completed'],
  },
  mcp_list_tools: {
    added: { server_label: 'echo', tools: [] },
    done: {},
    events: ['mcp_list_tools.in_progress', 'mcp_list_tools.completed'],
  },
  mcp_call: {
    added: { status: 'in_progress', arguments: '', name: 'echo', server_label: 'echo' },
    done: { status: 'completed', arguments: 'x', output: 'x', error: null },
    events: ['mcp_call.in_progress', 'mcp_call_arguments.delta', 'mcp_call_arguments.done', 'mcp_call.completed'],
  },
  image_generation_call: {
    added: { status: 'in_progress' },
    done: { status: 'completed', result: 'AAAA' },
    events: [
      'image_generation_call.in_progress',
      'image_generation_call.generating',
      'image_generation_call.partial_image',
      'image_generation_call.completed',
    ],
  },
  compaction: { added: { encrypted_content: 'ZW5j' }, done: {}, events: [] },
  tool_search_output: {
    added: { execution: 'server', call_id: null, status: 'completed', tools: [] },
    done: {},
    events: [],
  },
  tool_search_call: {
    added: { execution: 'server', call_id: null, status: 'in_progress', arguments: {} },
    done: { status: 'completed' },
    events: [],
  },
}

// Gemini

function composeGemini(wish: Wish, draw: Draw): Composer {
  const out = new Composer(wish, draw)
  const { mark, subject } = wish
  const top = (): Json => {
    const members = draw.some({
      modelVersion: subject.model,
      responseId: `r${mark}`,
      createTime: '2026-01-01T00:00:00Z',
    })
    return { ...members, ...out.unknown() }
  }
  const part = (data: Json): void => {
    out.event({
      candidates: [
        { content: { role: 'model', parts: [{ ...data, ...out.unknown() }] }, ...draw.some({ index: 0 }, 0.7) },
      ],
      ...top(),
    })
    if (out.isUnknownDrawn('part'))
      out.event({ candidates: [{ content: { role: 'model', parts: [{ hologram: { depth: 3 } }] } }], ...top() })
  }
  const isSigning = /gemini-3/.test(subject.model)
  if (wish.hasReasoning) for (const text of draw.pieces(draw.text(mark))) part({ text, thought: true })
  if (draw.chance(0.1)) {
    part({ executableCode: { language: 'PYTHON', code: 'print(1)' } })
    part({ codeExecutionResult: { outcome: 'OUTCOME_OK', output: '1\n' } })
  }
  if (isSigning && draw.chance(0.1)) {
    part({ executableCode: { language: 'PYTHON', code: 'print(2)' }, thoughtSignature: out.signature() })
    part({ codeExecutionResult: { outcome: 'OUTCOME_OK', output: '2\n' } })
  }
  if (isSigning && draw.chance(0.1)) {
    const toolType = 'GOOGLE_SEARCH_WEB'
    part({ toolCall: { toolType, args: { queries: ['x'] }, id: `tc_${mark}` }, thoughtSignature: out.signature() })
    part({ toolResponse: { toolType, response: {}, id: `tc_${mark}` }, thoughtSignature: out.signature() })
  }
  if (wish.calls === 0 || draw.chance(0.6)) for (const text of draw.pieces(draw.text(mark))) part({ text })
  if (isSigning && wish.calls === 0 && draw.chance(0.5)) part({ text: '', thoughtSignature: out.signature() })
  for (let place = 0; place < wish.calls; place += 1) {
    const functionCall = {
      ...draw.some({ id: `fn_${mark}_${place}` }, 0.5),
      name: out.toolName(),
      args: JSON.parse(out.input(place)) as Json,
    }
    // Gemini 3 signs the first call of an answer.
    part({ functionCall, ...(isSigning && place === 0 && { thoughtSignature: out.signature() }) })
  }
  const thoughts = wish.hasReasoning ? draw.integer(1, 90) : undefined
  const [prompt, said] = [draw.integer(1, 5000), draw.integer(1, 500)]
  const usage = {
    promptTokenCount: prompt,
    candidatesTokenCount: said,
    totalTokenCount: prompt + said + (thoughts ?? 0),
    ...(thoughts !== undefined && { thoughtsTokenCount: thoughts }),
    ...draw.some({
      cachedContentTokenCount: draw.integer(0, prompt),
      promptTokensDetails: [{ modality: 'TEXT', tokenCount: prompt }],
      cacheTokensDetails: [{ modality: 'TEXT', tokenCount: 1 }],
      candidatesTokensDetails: [{ modality: 'TEXT', tokenCount: said }],
      trafficType: 'ON_DEMAND',
      serviceTier: 'standard',
    }),
    ...out.unknown(),
  }
  const finish =
    wish.calls === 0 && out.isUnknownDrawn('finish-reason')
      ? 'OUT_OF_COFFEE'
      : wish.calls === 0 && draw.chance(0.1)
        ? 'MAX_TOKENS'
        : 'STOP'
  const candidate = { ...draw.some({ content: { role: 'model', parts: [] } }, 0.7), finishReason: finish, index: 0 }
  out.event({
    candidates: [
      {
        ...candidate,
        ...draw.some({ finishMessage: 'done', groundingMetadata: {}, urlContextMetadata: { urlMetadata: [] } }, 0.1),
      },
    ],
    usageMetadata: usage,
    ...top(),
  })
  return out
}

// Chat Completions

function composeChat(wish: Wish, draw: Draw): Composer {
  const out = new Composer(wish, draw)
  const { mark, subject } = wish
  const chunk = (choices: Json[], more: Json = {}): void => {
    const members = draw.some(chatTopMembers, 0.1)
    const base = {
      id: `chatcmpl-${mark}`,
      object: 'chat.completion.chunk',
      created: 1_767_225_600,
      model: subject.model,
    }
    out.event({ ...base, choices, ...members, ...more, ...out.unknown() })
  }
  const delta = (data: Json, finish: string | null = null): void => {
    const members = { ...draw.some(chatDeltaMembers, 0.05), ...data }
    const choice = draw.some(chatChoiceMembers, 0.1)
    chunk([{ index: 0, delta: { ...members, ...out.unknown() }, finish_reason: finish, ...choice, ...out.unknown() }])
    if (out.isUnknownDrawn('event')) out.event({ x_new_event: 'x', choices: [] })
  }
  if (subject.host === 'openrouter') out.frame(': OPENROUTER PROCESSING')
  if (draw.chance(0.1)) chunk([], { prompt_filter_results: [] })
  if (draw.chance(0.1)) delta({ role: null, token_id: 7 })
  delta({ role: 'assistant', ...draw.some({ content: draw.pick(['', null]) }, 0.7) })
  if (wish.hasReasoning) for (const text of draw.pieces(draw.text(mark))) delta(reasoningDelta(text, subject))
  // Gemini signs its calls even if it does not show what it thought.
  if (subject.host === 'openrouter' && (wish.hasReasoning || wish.calls > 0)) {
    delta({
      reasoning_details: [
        { type: 'reasoning.encrypted', data: out.signature(), format: 'google-gemini-v1', index: 0, id: `rd_${mark}` },
      ],
    })
  }
  if (wish.calls === 0 || draw.chance(0.6)) for (const content of draw.pieces(draw.text(mark))) delta({ content })
  for (let index = 0; index < wish.calls; index += 1) {
    const id = callId(wish, draw, index)
    const name = out.toolName()
    const input = out.input(index)
    if (draw.chance(0.3)) {
      delta({ tool_calls: [{ index, id, type: 'function', function: { name, arguments: input } }] })
      continue
    }
    delta({ tool_calls: [{ index, id, type: 'function', function: { name, arguments: '' } }] })
    for (const piece of draw.pieces(input)) delta({ tool_calls: [{ index, function: { arguments: piece } }] })
  }
  const finish =
    wish.calls > 0
      ? 'tool_calls'
      : out.isUnknownDrawn('finish-reason')
        ? 'out_of_coffee'
        : draw.pick(['stop', 'stop', 'length'])
  delta({}, finish)
  const usage = chatUsage(wish, draw)
  chunk(draw.chance(0.8) ? [] : [{ index: 0, delta: {}, finish_reason: null }], {
    usage: { ...usage, ...out.unknown() },
  })
  if (draw.chance(0.9)) out.frame('data: [DONE]')
  return out
}

function reasoningDelta(text: string, { host }: Subject): Json {
  switch (host) {
    case 'groq':
    case 'cerebras':
    case 'together':
    case 'ollama':
    case 'vllm':
      return { reasoning: text }
    case 'openrouter':
      return { reasoning: text, reasoning_details: [{ type: 'reasoning.text', text, format: 'unknown', index: 0 }] }
    case 'mistral':
      return { content: [{ type: 'thinking', thinking: [{ type: 'text', text }] }] }
    default:
      return { reasoning_content: text }
  }
}

const alphanumeric = 'abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789'

function callId({ subject, mark }: Wish, draw: Draw, index: number): string {
  switch (subject.host) {
    case 'mistral':
      return draw.letters(alphanumeric, 9)
    case 'moonshotai':
      return `functions.look:${mark}${index}`
    case 'vllm':
      return `chatcmpl-tool-${draw.letters('0123456789abcdef', 32)}`
    default:
      return `call_${mark}_${index}`
  }
}

function chatUsage({ hasReasoning, subject }: Wish, draw: Draw): Json {
  const reasoning = hasReasoning ? draw.integer(1, 90) : 0
  const [prompt, said] = [draw.integer(1, 5000), draw.integer(1, 500)]
  const isApart = subject.host === 'xai'
  return {
    prompt_tokens: prompt,
    completion_tokens: isApart ? said : said + reasoning,
    total_tokens: prompt + said + reasoning,
    ...(isApart || draw.chance(0.7) ? { completion_tokens_details: { reasoning_tokens: reasoning } } : {}),
    ...cachedTokens(subject, { prompt, cached: draw.integer(0, prompt) }),
    ...draw.some({
      cost: 0.001,
      cost_details: { upstream_inference_cost: null },
      is_byok: false,
      search_context_size: 'low',
      queue_time: 0.1,
      prompt_time: 0.1,
      completion_time: 0.1,
      total_time: 1.5,
      num_sources_used: 0,
      cost_in_usd_ticks: 10_000_000,
      service_tier: 'default',
    }),
  }
}

/** Hosts count tokens that were read from a cache in different places. */
function cachedTokens({ host }: Subject, { prompt, cached }: { prompt: number; cached: number }): Json {
  switch (host) {
    case 'deepseek':
      return { prompt_cache_hit_tokens: cached, prompt_cache_miss_tokens: prompt - cached }
    case 'moonshotai':
      return { cached_tokens: cached }
    default:
      return { prompt_tokens_details: { cached_tokens: cached } }
  }
}

const chatTopMembers: Json = {
  system_fingerprint: 'fp_1',
  service_tier: 'default',
  obfuscation: 'xyz',
  provider: 'X',
  citations: [],
  search_results: [],
  p: 'abc',
  x_groq: { id: 'req_1' },
  timings: { prompt_ms: 1 },
  stream_options: null,
  generationId: 'gen-1',
  latency_checkpoint: {},
  prompt_token_ids: null,
  prompt_text: null,
  sla_metrics: {},
  moderation: null,
}

const chatDeltaMembers: Json = {
  role: 'assistant',
  tool_calls: null,
  reasoning_content: null,
  reasoning: null,
  refusal: null,
  token_id: null,
  executed_tools: [],
  index: 0,
  channel: 'final',
  provider_metadata: {},
  annotations: [],
  function_call: null,
}

const chatChoiceMembers: Json = {
  logprobs: null,
  native_finish_reason: null,
  content_filter_results: {},
  text: '',
  seed: 1,
  matched_stop: null,
  token_ids: null,
  stop_reason: null,
  message: { role: 'assistant', content: '' },
  role: 'assistant',
}
