import type { FakeApi } from '@tapetree/agent/testing'
import type { Draw } from './draw.ts'
import { unknownKinds } from './kinds.ts'
import { costOf, readChatUsage } from './read-bytes.ts'
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
  ending: Ending
}

/**
 * `refused`: the provider does not want to answer. `paused`: it wants to be asked again to go on. `empty`: it says nothing.
 * `failed` and `quota`: an error takes the place of the end.
 */
export type Ending = 'complete' | 'refused' | 'paused' | 'empty' | 'failed' | 'quota'

export interface ComposedStream {
  body: string
  /** Unknown events, blocks, items, parts and ends that the agent must have counted. */
  counted: ReadonlySet<string>
  /** The siblings of known kinds that were mixed in, for the count of what was tried. */
  unknownKinds: ReadonlySet<string>
}

/** A stream as the provider of the subject might send it. */
export function composeStream(wish: Wish, draw: Draw): ComposedStream {
  const composer = composers[wish.subject.api](wish, draw)
  const { unknownKinds: tried, counted } = composer
  return { body: composer.body(), unknownKinds: tried, counted }
}

/** Collects the events of a stream. */
class Composer {
  /** The siblings of known kinds that were mixed in. */
  readonly unknownKinds = new Set<string>()
  readonly counted = new Set<string>()
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
  unknown(place: string): Json {
    if (!this.wish.hasUnknown || !this.draw.chance(0.2)) return {}
    this.note(`member-of-${place}`)
    const count = this.draw.integer(1, 2)
    const value = (): unknown => this.draw.pick([null, 1, 'new', [], {}, { nested: [true] }, false])
    return Object.fromEntries(Array.from({ length: count }, () => [this.draw.pick(unknownMembers), value()]))
  }

  /** The names of siblings of known kinds to mix in at this place: usually none, sometimes several. */
  siblings(place: string): string[] {
    if (!this.wish.hasUnknown || !this.draw.chance(0.12)) return []
    const names = Array.from({ length: this.draw.integer(1, 3) }, () => this.sibling(place))
    // Deltas may belong to a block that is skipped as a whole.
    if (place !== 'delta') for (const name of names) this.counted.add(name)
    return names
  }

  /** A reason to end that no version of the agent knows. */
  unknownEnd(place: string): string | undefined {
    if (this.wish.ending !== 'complete' || !this.wish.hasUnknown || !this.draw.chance(0.12)) return undefined
    const name = this.sibling(place)
    this.counted.add(name)
    return name
  }

  sibling(place: string): string {
    const name = this.draw.pick(unknownKinds[this.wish.subject.api][place] ?? [])
    this.note(`${place} ${name}`)
    return name
  }

  /** Text in several pieces, and blocks that no version of the agent knows, in any order. */
  inOrder(parts: (() => void)[]): void {
    for (const part of this.draw.chance(0.4) ? this.draw.shuffled(parts) : parts) part()
  }

  /** An event that is not JSON, as a proxy may leave it. */
  damaged(): void {
    this.frame('data: {"type": "content_block_delta", "ind')
  }

  input(place: number): string {
    const { mark, subject, calls, isMalformed } = this.wish
    const isCut = isMalformed && place === calls - 1 && subject.api !== 'google'
    // What is cut off must not be part of the mark.
    const whole = JSON.stringify({ at: `${this.draw.text(mark)}${isCut ? ' and more' : ''}` })
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

/** Some have a meaning of their own in JavaScript. */
const unknownMembers = ['x_new_member', 'extra', 'constructor', 'toString', '__proto__', 'meta-data', '0']

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
    out.event({ ...data, ...out.unknown('event') }, data.type)
    if (draw.chance(0.1)) {
      out.event({ type: 'ping' }, 'ping')
    }
    for (const type of out.siblings('event')) {
      if (type === 'not-an-object') out.frame(`data: ${draw.pick(['null', '[]', '"x"', '1'])}`)
      else out.event({ ...(type !== 'no-type' && { type }), index, span: [0, 1] }, draw.pick([type, undefined]))
    }
  }
  const unknownDelta = (type: string): Json => ({ type, text: 'not text', thinking: 1, partial_json: '{' })
  const delta = (data: Json & { type: string }): void => {
    send({ type: 'content_block_delta', index, delta: { ...data, ...out.unknown('delta') } })
    for (const type of out.siblings('delta'))
      send({ type: 'content_block_delta', index, delta: type === 'no-type' ? {} : unknownDelta(type) })
  }
  const block = (content: Json & { type: string }, deltas: () => void = () => undefined): void => {
    send({ type: 'content_block_start', index, content_block: { ...content, ...out.unknown('block') } })
    deltas()
    send({ type: 'content_block_stop', index })
    index += 1
    for (const type of out.siblings('block')) {
      send({ type: 'content_block_start', index, content_block: { type, text: 'not text', depth: 3 } })
      // Deltas of known kinds belong to the block, whose kind is not known.
      const known = { type: 'text_delta', text: 'not text' }
      const inner = draw.chance(0.5) ? known : unknownDelta(out.sibling('delta'))
      send({ type: 'content_block_delta', index, delta: inner })
      send({ type: 'content_block_stop', index })
      index += 1
    }
  }
  const startUsage: Json = {
    input_tokens: draw.integer(1, 5000),
    output_tokens: 1,
    ...draw.some({
      cache_creation_input_tokens: draw.integer(0, 900),
      cache_read_input_tokens: draw.integer(0, 900),
      service_tier: draw.pick(['standard', null]),
      cache_creation: { ephemeral_5m_input_tokens: 0, ephemeral_1h_input_tokens: 0 },
      inference_geo: 'not_available',
      server_tool_use: null,
    }),
    ...out.unknown('start-usage'),
  }
  const message = { id: `msg_${mark}`, type: 'message', role: 'assistant', model: wish.subject.model, content: [] }
  send({
    type: 'message_start',
    message: { ...message, stop_reason: null, stop_sequence: null, usage: startUsage, ...out.unknown('message') },
  })
  const think = (): void => {
    if (draw.chance(0.2)) return block({ type: 'redacted_thinking', data: out.signature() })
    block({ type: 'thinking', thinking: '', signature: '' }, () => {
      for (const thinking of draw.pieces(draw.text(mark))) delta({ type: 'thinking_delta', thinking })
      delta({ type: 'signature_delta', signature: out.signature() })
    })
  }
  const speak = (): void =>
    block({ type: 'text', text: '' }, () => {
      for (const text of draw.pieces(draw.text(mark))) delta({ type: 'text_delta', text })
      if (draw.chance(0.1)) delta({ type: 'citations_delta', citation: webCitation })
    })
  const parts: (() => void)[] = []
  if (wish.hasReasoning) think()
  if (wish.hasReasoning && draw.chance(0.5)) parts.push(think)
  if (draw.chance(0.3)) parts.push(() => composeServerTool(block, delta, { draw, mark }))
  if (draw.chance(0.04))
    parts.push(() => block({ type: 'fallback', from: { model: 'claude-a' }, to: { model: 'claude-b' } }))
  if (wish.ending !== 'empty') {
    if (draw.chance(0.04)) {
      const content = draw.text(mark)
      parts.push(() => block({ type: 'compaction', content: '' }, () => delta({ type: 'compaction_delta', content })))
    }
    if (wish.calls === 0 || draw.chance(0.7)) parts.push(speak)
    if (draw.chance(0.1)) parts.push(speak)
  }
  out.inOrder(parts)
  for (let place = 0; place < wish.calls; place += 1) {
    block({ type: 'tool_use', id: `toolu_${mark}_${place}`, name: out.toolName(), input: {} }, () => {
      for (const partial of ['', ...draw.pieces(out.input(place))])
        delta({ type: 'input_json_delta', partial_json: partial })
    })
  }
  if (wish.ending === 'failed' || wish.ending === 'quota') {
    if (draw.chance(0.3)) out.damaged()
    else
      out.event({ type: 'error', error: { type: 'overloaded_error', message: 'Overloaded', ...out.unknown('error') } })
    return out
  }
  const known = wish.calls > 0 ? 'tool_use' : draw.pick(['end_turn', 'end_turn', 'stop_sequence', 'max_tokens'])
  const unknown = out.unknownEnd('stop-reason')
  const stop = { refused: 'refusal', paused: 'pause_turn' }[wish.ending as string] ?? unknown ?? known
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
  send({
    type: 'message_delta',
    delta: { ...end, ...out.unknown('end-delta') },
    usage: { ...usage, ...out.unknown('usage') },
    ...more,
  })
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
    out.event({ type, sequence_number: sequence, ...data, ...out.unknown('event') }, type)
    sequence += 1
    for (const unknown of out.siblings('event')) {
      if (unknown === 'not-an-object') out.frame(`data: ${draw.pick(['null', '[]', '"x"', '1'])}`)
      else
        out.event({
          ...(unknown !== 'no-type' && { type: unknown }),
          sequence_number: sequence,
          output_index: draw.pick([place, 0, 99]),
          delta: 'not text',
        })
    }
  }
  const item = (
    type: string,
    { added, done }: { added: Json; done: Json },
    between: () => void = () => undefined,
  ): void => {
    send('response.output_item.added', { output_index: place, item: { type, ...added, ...out.unknown('item') } })
    between()
    send('response.output_item.done', { output_index: place, item: { type, ...done, ...out.unknown('item') } })
    place += 1
    for (const unknown of out.siblings('item')) {
      const given = { ...(unknown !== 'no-type' && { type: unknown }), id: `hg_${mark}_${place}`, status: 'completed' }
      send('response.output_item.added', { output_index: place, item: given })
      send(`response.${unknown}.in_progress`, { output_index: place, item_id: given.id })
      // An event of a known kind belongs to the item, whose kind is not known.
      if (draw.chance(0.5))
        send('response.output_text.delta', { output_index: place, item_id: given.id, delta: 'not text' })
      send('response.output_item.done', { output_index: place, item: given })
      place += 1
    }
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
  let thoughts = 0
  const think = (): void => {
    const id = `rs_${mark}_${(thoughts += 1)}`
    // Open models give the whole reasoning, not summaries of it.
    const isOpen = draw.chance(0.15)
    const summaries = Array.from({ length: isOpen ? 0 : draw.integer(0, 2) }, () => draw.text(mark))
    const summary = summaries.map((text) => ({ type: 'summary_text', text }))
    const done = { id, summary, encrypted_content: out.signature() }
    item('reasoning', { added: { id, summary: [], encrypted_content: 'b3Blbg==' }, done }, () => {
      for (const [summaryIndex, text] of summaries.entries()) {
        const at = { item_id: id, output_index: place, summary_index: summaryIndex }
        const part = { type: 'summary_text', text: '', ...out.unknown('part') }
        send('response.reasoning_summary_part.added', { ...at, part })
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
  let messages = 0
  const speak = (): void => {
    const id = `msg_${mark}_${(messages += 1)}`
    const text = draw.text(mark)
    const phase = draw.some({ phase: wish.calls > 0 ? 'commentary' : draw.pick(['final_answer', 'new_phase']) })
    const added = { id, status: 'in_progress', role: 'assistant', content: [], ...phase }
    const isRefusal = wish.ending === 'refused' && messages === 1 && draw.chance(0.5)
    const part = isRefusal
      ? { type: 'refusal', refusal: text }
      : { type: 'output_text', text, annotations: [], logprobs: [], ...out.unknown('part') }
    item('message', { added, done: { ...added, status: 'completed', content: [part] } }, () => {
      const at = { item_id: id, output_index: place, content_index: 0 }
      const kind = isRefusal ? 'refusal' : 'output_text'
      send('response.content_part.added', { ...at, part: { type: kind, [isRefusal ? 'refusal' : 'text']: '' } })
      for (const delta of draw.pieces(text))
        send(`response.${kind}.delta`, { ...at, delta, logprobs: [], ...draw.some({ obfuscation: 'xy' }) })
      if (!isRefusal && draw.chance(0.1))
        send('response.output_text.annotation.added', { ...at, annotation_index: 0, annotation: urlCitation })
      send(`response.${kind}.done`, { ...at, [isRefusal ? 'refusal' : 'text']: text })
      send('response.content_part.done', { ...at, part })
    })
  }
  const call = (number: number): void => {
    const id = `fc_${mark}_${number}`
    const input = out.input(number)
    const added = { id, call_id: `call_${mark}_${number}`, name: out.toolName(), arguments: '', status: 'in_progress' }
    item('function_call', { added, done: { ...added, arguments: input, status: 'completed' } }, () => {
      const at = { item_id: id, output_index: place }
      for (const delta of draw.pieces(input)) send('response.function_call_arguments.delta', { ...at, delta })
      send('response.function_call_arguments.done', { ...at, arguments: input })
    })
  }
  const foreign = (): void => composeForeignItem(item, send, { draw, mark: `${mark}_${place}`, place: () => place })
  const isEmpty = wish.ending === 'empty'
  const parts: (() => void)[] = []
  if (wish.hasReasoning) parts.push(think)
  if (wish.hasReasoning && draw.chance(0.2)) parts.push(think)
  for (let count = draw.integer(-1, 3); count > 0; count -= 1) parts.push(foreign)
  if (!isEmpty && (wish.calls === 0 || draw.chance(0.6))) parts.push(speak)
  if (!isEmpty && wish.calls > 0 && draw.chance(0.1)) parts.push(speak)
  for (let number = 0; number < wish.calls; number += 1) parts.push(() => call(number))
  out.inOrder(parts)
  const reasoningTokens = wish.hasReasoning ? draw.integer(0, 90) : 0
  const [inputTokens, outputTokens] = [draw.integer(1, 5000), reasoningTokens + draw.integer(1, 500)]
  const usage = {
    input_tokens: inputTokens,
    input_tokens_details: { cached_tokens: draw.integer(0, inputTokens) },
    output_tokens: outputTokens,
    output_tokens_details: { reasoning_tokens: reasoningTokens },
    total_tokens: inputTokens + outputTokens,
    ...draw.some(
      {
        cost: 0.001,
        cost_in_usd_ticks: 10_000_000,
        cost_details: { upstream_inference_cost: null },
        is_byok: false,
        num_sources_used: 0,
        num_server_side_tools_used: 0,
        context_details: {},
        server_side_tool_usage_details: {},
      },
      0.2,
    ),
    ...out.unknown('usage'),
  }
  if (wish.ending === 'failed' || wish.ending === 'quota') return failOpenai(out, { send, response })
  const isRefusal = messages > 0 && out.body().includes('response.refusal.delta')
  const unknown = out.unknownEnd('incomplete-reason')
  const reason =
    wish.ending === 'refused' && !isRefusal
      ? 'content_filter'
      : (unknown ?? (wish.calls === 0 && draw.chance(0.1) ? 'max_output_tokens' : undefined))
  const type = reason === undefined || isRefusal ? 'completed' : 'incomplete'
  send(`response.${type}`, {
    response: {
      ...response,
      status: type,
      incomplete_details: type === 'incomplete' ? { reason } : null,
      usage,
      ...out.unknown('response'),
    },
  })
  return out
}

function failOpenai(
  out: Composer,
  { send, response }: { send: (type: string, data: Json) => void; response: Json },
): Composer {
  const { draw, wish } = out
  const error = { code: 'server_error', message: 'The server had an error.', ...out.unknown('error') }
  if (wish.ending === 'quota') {
    const quota = { code: 'insufficient_quota', message: 'You exceeded your current quota.' }
    send('response.failed', { response: { ...response, status: 'failed', error: quota } })
  } else if (draw.chance(0.3)) out.damaged()
  else if (draw.chance(0.5)) send('error', draw.chance(0.5) ? { ...error, param: null } : { error })
  else send('response.failed', { response: { ...response, status: 'failed', error } })
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
  shell_call: {
    added: { call_id: 'call_shell', status: 'in_progress', action: { commands: [], timeout_ms: null } },
    done: { status: 'completed', action: { commands: ['ls'], timeout_ms: null } },
    events: ['shell_call_command.added', 'shell_call_command.delta', 'shell_call_command.done'],
  },
  shell_call_output: {
    added: { call_id: 'call_shell', status: 'in_progress', output: [] },
    done: { status: 'completed', output: [{ stdout: 'x', stderr: '', outcome: { type: 'exit', exit_code: 0 } }] },
    events: ['shell_call_output_content.delta', 'shell_call_output_content.done'],
  },
  local_shell_call: {
    added: { call_id: 'call_local', status: 'in_progress', action: { type: 'exec', command: ['ls'], env: {} } },
    done: { status: 'completed' },
    events: [],
  },
  apply_patch_call: {
    added: { call_id: 'call_patch', status: 'in_progress', operation: { type: 'create_file', path: 'a', diff: '' } },
    done: { status: 'completed', operation: { type: 'create_file', path: 'a', diff: '+x' } },
    events: ['apply_patch_call_operation_diff.delta', 'apply_patch_call_operation_diff.done'],
  },
  custom_tool_call: {
    added: { call_id: 'call_custom', name: 'sql', input: '' },
    done: { input: 'SELECT 1' },
    events: ['custom_tool_call_input.delta', 'custom_tool_call_input.done'],
  },
  mcp_approval_request: {
    added: { name: 'echo', arguments: '{}', server_label: 'echo' },
    done: {},
    events: [],
  },
  program: { added: { status: 'in_progress', code: 'x' }, done: { status: 'completed' }, events: [] },
  program_output: { added: { status: 'in_progress', output: '' }, done: { status: 'completed' }, events: [] },
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
    return { ...members, ...out.unknown('top') }
  }
  const send = (part: Json): void =>
    out.event({
      candidates: [
        {
          content: { role: 'model', parts: [part], ...out.unknown('content') },
          ...draw.some({ index: 0 }, 0.7),
          ...out.unknown('candidate'),
        },
      ],
      ...top(),
    })
  const part = (data: Json): void => {
    send({ ...data, ...out.unknown('part') })
    for (const kind of out.siblings('part')) send(kind === 'nothing' ? {} : { [kind]: { depth: 3 } })
    for (const kind of out.siblings('event')) {
      if (kind === 'not-an-object') out.frame(`data: ${draw.pick(['null', '[]', '"x"', '1'])}`)
      else out.event({ [kind]: { text: 'not text' } })
    }
  }
  const isSigning = /gemini-3/.test(subject.model)
  const think = (): void => {
    for (const text of draw.pieces(draw.text(mark))) part({ text, thought: true })
  }
  const speak = (): void => {
    for (const text of draw.pieces(draw.text(mark))) part({ text })
  }
  let calls = 0
  const call = (): void => {
    const functionCall = {
      ...draw.some({ id: `fn_${mark}_${calls}` }, 0.5),
      name: out.toolName(),
      args: JSON.parse(out.input(calls)) as Json,
    }
    // Gemini 3 signs the first call of an answer.
    part({ functionCall, ...(isSigning && calls === 0 && { thoughtSignature: out.signature() }) })
    calls += 1
  }
  const isEmpty = wish.ending === 'empty'
  const parts: (() => void)[] = []
  if (wish.hasReasoning) parts.push(think)
  if (wish.hasReasoning && draw.chance(0.2)) parts.push(think)
  if (draw.chance(0.1))
    parts.push(() => {
      part({ executableCode: { language: 'PYTHON', code: 'print(1)' } })
      part({ codeExecutionResult: { outcome: 'OUTCOME_OK', output: '1\n' } })
    })
  if (isSigning && draw.chance(0.1))
    parts.push(() => {
      part({ executableCode: { language: 'PYTHON', code: 'print(2)' }, thoughtSignature: out.signature() })
      part({ codeExecutionResult: { outcome: 'OUTCOME_OK', output: '2\n' } })
    })
  if (isSigning && draw.chance(0.1))
    parts.push(() => {
      const toolType = 'GOOGLE_SEARCH_WEB'
      part({ toolCall: { toolType, args: { queries: ['x'] }, id: `tc_${mark}` }, thoughtSignature: out.signature() })
      part({ toolResponse: { toolType, response: {}, id: `tc_${mark}` }, thoughtSignature: out.signature() })
    })
  if (!isEmpty && (wish.calls === 0 || draw.chance(0.6))) parts.push(speak)
  if (!isEmpty && draw.chance(0.1)) parts.push(speak)
  for (let count = wish.calls; count > 0; count -= 1) parts.push(call)
  out.inOrder(parts)
  if (isSigning && !isEmpty && wish.calls === 0 && draw.chance(0.5))
    part({ text: '', thoughtSignature: out.signature() })
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
      toolUsePromptTokenCount: 0,
      toolUsePromptTokensDetails: [{ modality: 'TEXT', tokenCount: 0 }],
    }),
    ...out.unknown('usage'),
  }
  if ((wish.ending === 'failed' && draw.chance(0.5)) || wish.ending === 'quota') {
    if (draw.chance(0.3)) out.damaged()
    else out.event({ error: { code: 503, message: 'The model is overloaded.', status: 'UNAVAILABLE' } })
    return out
  }
  const unknown = out.unknownEnd('finish-reason')
  const known = wish.calls === 0 && draw.chance(0.1) ? 'MAX_TOKENS' : 'STOP'
  const failure = wish.ending === 'failed' ? 'MALFORMED_FUNCTION_CALL' : undefined
  const refusal = wish.ending === 'refused' ? draw.pick(['SAFETY', 'PROHIBITED_CONTENT', 'RECITATION']) : undefined
  const finish = failure ?? refusal ?? unknown ?? known
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
    out.event({ ...base, choices, ...members, ...more, ...out.unknown('top') })
  }
  const delta = (data: Json, finish: string | null = null): void => {
    const members = { ...draw.some(chatDeltaMembers, 0.05), ...data }
    const choice = draw.some(chatChoiceMembers, 0.1)
    const given = { ...members, ...out.unknown('delta') }
    chunk([{ index: 0, delta: given, finish_reason: finish, ...choice, ...out.unknown('choice') }])
    for (const kind of out.siblings('event')) {
      if (kind === 'not-an-object') out.frame(`data: ${draw.pick(['null', '[]', '"x"', '1'])}`)
      else out.event({ [kind]: 'not text', ...draw.some({ object: kind }, 0.5) }, draw.pick([kind, undefined]))
    }
    for (const type of subject.host === 'mistral' ? out.siblings('content-part') : [])
      chunk([{ index: 0, delta: { content: [{ type, text: 'not text' }] } }])
  }
  if (subject.host === 'openrouter') out.frame(': OPENROUTER PROCESSING')
  if (draw.chance(0.1)) chunk([], { prompt_filter_results: [] })
  if (draw.chance(0.1)) delta({ role: null, token_id: 7 })
  delta({ role: 'assistant', ...draw.some({ content: draw.pick(['', null]) }, 0.7) })
  const think = (): void => {
    for (const text of draw.pieces(draw.text(mark))) delta(reasoningDelta(text, subject))
  }
  const member = wish.ending === 'refused' && draw.chance(0.5) ? 'refusal' : 'content'
  const speak = (): void => {
    for (const text of draw.pieces(draw.text(mark))) delta({ [member]: text })
  }
  const parts: (() => void)[] = []
  if (wish.hasReasoning) parts.push(think)
  // Gemini signs its calls even if it does not show what it thought.
  if (subject.host === 'openrouter' && (wish.hasReasoning || wish.calls > 0)) {
    const signed = { type: 'reasoning.encrypted', data: out.signature(), format: 'google-gemini-v1', index: 0 }
    parts.push(() => delta({ reasoning_details: [{ ...signed, id: `rd_${mark}` }] }))
  }
  if (wish.ending !== 'empty' && (wish.calls === 0 || draw.chance(0.6))) parts.push(speak)
  out.inOrder(parts)
  for (let index = 0; index < wish.calls; index += 1) {
    const id = callId(wish, draw, index)
    const name = out.toolName()
    const input = out.input(index)
    const first = { index, id, type: 'function' }
    const shape = draw.integer(1, 10)
    if (shape <= 3) delta({ tool_calls: [{ ...first, function: { name, arguments: input, ...out.unknown('call') } }] })
    else if (shape === 4 && wish.calls === 1) delta({ tool_calls: [{ id, function: { name, arguments: input } }] })
    else if (shape === 5) {
      // Without an id: the agent makes one.
      delta({ tool_calls: [{ index, type: 'function', function: { name, arguments: '' } }] })
      for (const piece of draw.pieces(input)) delta({ tool_calls: [{ index, function: { arguments: piece } }] })
    } else {
      delta({ tool_calls: [{ ...first, function: { name, arguments: '' }, ...out.unknown('call') }] })
      const repeated = shape === 6 ? first : { index }
      for (const piece of draw.pieces(input)) delta({ tool_calls: [{ ...repeated, function: { arguments: piece } }] })
    }
  }
  if (wish.ending === 'failed' || wish.ending === 'quota') {
    const error = { message: 'The server is overloaded.', code: 503, type: 'server_error', ...out.unknown('error') }
    if (draw.chance(0.3)) out.damaged()
    else if (draw.chance(0.5)) out.event({ error })
    else out.event(draw.chance(0.5) ? { error } : error, 'error')
    return out
  }
  const unknown = out.unknownEnd('finish-reason')
  const known = wish.calls > 0 ? draw.pick(['tool_calls', 'tool_calls', 'stop']) : draw.pick(['stop', 'stop', 'length'])
  const finish = wish.ending === 'refused' ? (member === 'refusal' ? 'stop' : 'content_filter') : (unknown ?? known)
  delta({}, finish)
  const usage = chatUsage(wish, draw)
  chunk(draw.chance(0.8) ? [] : [{ index: 0, delta: {}, finish_reason: null }], {
    usage: { ...usage, ...out.unknown('usage') },
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
  const usage = {
    prompt_tokens: prompt,
    completion_tokens: isApart ? said : said + reasoning,
    total_tokens: prompt + said + reasoning,
    ...(isApart || draw.chance(0.7)
      ? { completion_tokens_details: { reasoning_tokens: reasoning, ...draw.some(completionDetails, 0.1) } }
      : draw.some({ reasoning_tokens: reasoning }, 0.2)),
    ...cachedTokens(subject, { prompt, cached: draw.integer(0, prompt), details: draw.some(promptDetails, 0.1) }),
    ...draw.some(chatUsageMembers, 0.1),
  }
  return { ...usage, ...reportedCost(subject, usage, draw) }
}

/** xAI and OpenRouter tell what they charge, rounded in their own ways. What other hosts call cost has no meaning that is known. */
function reportedCost(subject: Subject, usage: Json, draw: Draw): Json {
  const exact = costOf(subject.prices, readChatUsage(usage))
  const charged = exact * (1 + (draw.integer(-40, 40) / 100) * 0.01)
  if (subject.host === 'xai' && draw.chance(0.7)) return { cost_in_usd_ticks: Math.round(charged * 1e10) }
  if (subject.host === 'openrouter' && draw.chance(0.7)) {
    // With a key of the user's own at the upstream provider, OpenRouter charges a fee only.
    const isByok = draw.chance(0.3)
    const [cost, upstream] = isByok ? [charged * 0.05, charged * 0.95] : [charged, charged]
    return { cost, is_byok: isByok, cost_details: { upstream_inference_cost: upstream } }
  }
  if (subject.host === 'xai' || subject.host === 'openrouter') return {}
  return draw.some({ cost: draw.pick([0.001, costObject]), cost_in_usd_ticks: 10_000_000, is_byok: false }, 0.1)
}

const costObject: Json = {
  ...{ input_tokens_cost: 1, output_tokens_cost: 1, total_cost: 2 },
  ...{ request_cost: 1, usd: 1, hypercredits: 1 },
}

const chatUsageMembers: Json = {
  cost_details: {
    ...{ upstream_inference_cost: null, upstream_inference_prompt_cost: 1 },
    ...{ upstream_inference_completions_cost: 1, input_audio_cache_read_tokens: 0 },
  },
  search_context_size: 'low',
  queue_time: 0.1,
  prompt_time: 0.1,
  completion_time: 0.1,
  total_time: 1.5,
  num_sources_used: 0,
  service_tier: 'default',
  cache_creation_input_tokens: 0,
  market_cost: '0.1',
  server_tool_use_details: { tool_calls_requested: 0, tool_calls_executed: 0, web_search_requests: 0 },
  draft_tokens: 1,
  draft_tokens_acceptance: 0.5,
  prompt_tokens_per_second: 1,
  time_per_output_token_ms: 1,
  time_to_first_token_ms: 1,
  tokens_per_second: 1,
}

const completionDetails: Json = {
  audio_tokens: 0,
  accepted_prediction_tokens: 0,
  rejected_prediction_tokens: 0,
  image_tokens: 0,
}

const promptDetails: Json = { audio_tokens: 0, video_tokens: 0, text_tokens: 1, image_tokens: 0, cache_write_tokens: 0 }

/** Hosts count tokens that were read from a cache in different places. */
function cachedTokens(
  { host }: Subject,
  { prompt, cached, details }: { prompt: number; cached: number; details: Json },
): Json {
  switch (host) {
    case 'deepseek':
      return { prompt_cache_hit_tokens: cached, prompt_cache_miss_tokens: prompt - cached }
    case 'moonshotai':
      return { cached_tokens: cached }
    default:
      return { prompt_tokens_details: { cached_tokens: cached, ...details } }
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
