import { Composer, type Json, type Wish } from './composer.ts'
import type { Draw } from './draw.ts'
import { costOf, readChatUsage } from './read-bytes.ts'
import type { Subject } from './subjects.ts'

export function composeChat(wish: Wish, draw: Draw): Composer {
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
