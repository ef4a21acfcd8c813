import { Composer, type Json, type Wish } from './composer.ts'
import type { Draw } from './draw.ts'

export function composeOpenai(wish: Wish, draw: Draw): Composer {
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
