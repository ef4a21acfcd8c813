import { Composer, type Json, type Wish } from './composer.ts'
import type { Draw } from './draw.ts'

export function composeAnthropic(wish: Wish, draw: Draw): Composer {
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
