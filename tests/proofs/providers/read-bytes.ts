import type { FakeApi } from '@tapetree/agent/testing'
import type { Subject, SubjectPrices } from './subjects.ts'

/**
 * What the bytes of an answer say. Written against the documentation of the formats, without the agent and without the provider
 * packages, so that both readings can be compared.
 */
export interface Reading {
  blocks: ReadBlock[]
  usage: ReadUsage | undefined
  /** The provider said that the answer is over. */
  isComplete: boolean
}

export type ReadBlock =
  | { type: 'text'; text: string }
  | { type: 'reasoning'; text: string; signature?: string; redacted?: string }
  | { type: 'call'; id: string | undefined; name: string; input: string; signature?: string }

export interface ReadUsage {
  input: number | undefined
  output: number | undefined
  cacheRead: number | undefined
  cacheWrite?: number | undefined
  reasoning: number | undefined
  /** In US dollars, if the host tells what it charges. */
  reportedCost?: number | undefined
}

export function readAnswer({ api, host }: Subject, events: ParsedEvents): Reading {
  const { blocks, ...reading } = readers[api]({ ...events, host })
  return { ...reading, blocks: blocks.filter((block) => block.type !== 'text' || block.text !== '') }
}

/** US dollars. Each token has exactly one price: cached ones are part of the input, reasoning is part of the output. */
export function costOf(
  prices: SubjectPrices,
  { input = 0, output = 0, cacheRead = 0, cacheWrite = 0 }: ReadUsage,
): number {
  const rates = prices.long && input > prices.long.above ? prices.long : prices
  const charges = [
    [input - cacheRead - cacheWrite, rates.input],
    [cacheRead, rates.cacheRead],
    [cacheWrite, rates.cacheWrite],
    [output, rates.output],
  ] as const
  return charges.reduce((sum, [tokens, dollarsForMillion]) => sum + (tokens * dollarsForMillion) / 1_000_000, 0)
}

type HostEvents = ParsedEvents & { host: string | undefined }

const readers: Record<FakeApi, (events: HostEvents) => Reading> = {
  anthropic: readAnthropic,
  openai: readOpenai,
  google: readGemini,
  openaiCompatible: readChat,
}

/** Any JSON value, for reading without a schema. */
export type Loose = any // oxlint-disable-line typescript/no-explicit-any

export interface ParsedEvents {
  values: Loose[]
  isDone: boolean
  /** An event is not JSON. */
  isDamaged: boolean
}

/** Server-sent events by the rules of the HTML standard. An event that no empty line ends does not count. */
export function eventsOf(bytes: Uint8Array): ParsedEvents {
  const values: Loose[] = []
  let [isDone, isDamaged] = [false, false]
  let data: string[] = []
  const lines = new TextDecoder().decode(bytes).split(/\r\n|\n|\r/)
  // What follows the last line end is not a line yet.
  for (const line of lines.slice(0, -1)) {
    if (line.startsWith('data:')) data.push(line.slice(line.startsWith('data: ') ? 6 : 5))
    if (line !== '' || data.length === 0) continue
    const text = data.join('\n')
    data = []
    if (text === '[DONE]') isDone = true
    else if (text.endsWith('"ind')) isDamaged = true
    else values.push(JSON.parse(text) ?? {})
  }
  return { values, isDone, isDamaged }
}

function readAnthropic({ values }: ParsedEvents): Reading {
  const blocks: ReadBlock[] = []
  const open = new Map<number, ReadBlock>()
  let usage: Loose = {}
  let isComplete = false
  for (const event of values) {
    switch (event.type) {
      case 'message_start':
        usage = { ...event.message.usage }
        break
      case 'content_block_start': {
        const block = anthropicBlock(event.content_block)
        if (!block) break
        blocks.push(block)
        open.set(event.index, block)
        break
      }
      case 'content_block_delta':
        addAnthropicDelta(open.get(event.index), event.delta)
        break
      case 'message_delta':
        for (const [key, value] of Object.entries(event.usage)) if (value !== null) usage[key] = value
        if (event.delta.stop_reason) isComplete = true
        break
      default:
    }
  }
  const { input_tokens: input = 0, cache_creation_input_tokens: written = 0, cache_read_input_tokens: read = 0 } = usage
  return {
    blocks,
    isComplete,
    usage: {
      input: input + written + read,
      output: usage.output_tokens,
      cacheRead: usage.cache_read_input_tokens,
      cacheWrite: usage.cache_creation_input_tokens,
      reasoning: usage.output_tokens_details?.thinking_tokens,
    },
  }
}

function anthropicBlock(block: Loose): ReadBlock | undefined {
  switch (block.type) {
    case 'text':
      return { type: 'text', text: block.text }
    case 'thinking':
      return { type: 'reasoning', text: block.thinking, ...(block.signature && { signature: block.signature }) }
    case 'redacted_thinking':
      return { type: 'reasoning', text: '', redacted: block.data }
    case 'tool_use':
      return { type: 'call', id: block.id, name: block.name, input: '' }
    case 'compaction':
      return { type: 'text', text: block.content ?? '' }
    default:
      return undefined
  }
}

function addAnthropicDelta(block: ReadBlock | undefined, delta: Loose): void {
  if (block?.type === 'text' && delta.type === 'text_delta') block.text += delta.text
  if (block?.type === 'text' && delta.type === 'compaction_delta') block.text += delta.content
  if (block?.type === 'reasoning' && delta.type === 'thinking_delta') block.text += delta.thinking
  if (block?.type === 'reasoning' && delta.type === 'signature_delta')
    block.signature = (block.signature ?? '') + delta.signature
  if (block?.type === 'call' && delta.type === 'input_json_delta') block.input += delta.partial_json
}

function readOpenai({ values }: ParsedEvents): Reading {
  const items = new Map<number, Loose>()
  let end: Loose
  for (const event of values) {
    switch (event.type) {
      case 'response.output_item.added':
        items.set(event.output_index, { ...event.item, said: '' })
        break
      case 'response.output_item.done':
        items.set(event.output_index, { ...items.get(event.output_index), ...event.item, isDone: true })
        break
      case 'response.output_text.delta':
      case 'response.refusal.delta':
      case 'response.function_call_arguments.delta':
      case 'response.reasoning_summary_text.delta':
      case 'response.reasoning_text.delta':
        if (items.has(event.output_index)) items.get(event.output_index).said += event.delta
        break
      case 'response.completed':
      case 'response.incomplete':
        end = event.response
        break
      default:
    }
  }
  const blocks = [...items].sort(([left], [right]) => left - right).flatMap(([, item]) => openaiBlocks(item))
  const usage = end?.usage
  return {
    blocks,
    isComplete: end !== undefined,
    usage: usage && {
      input: usage.input_tokens,
      output: usage.output_tokens,
      cacheRead: usage.input_tokens_details?.cached_tokens,
      reasoning: usage.output_tokens_details?.reasoning_tokens,
    },
  }
}

function openaiBlocks(item: Loose): ReadBlock[] {
  switch (item.type) {
    case 'message':
      return [{ type: 'text', text: item.said }]
    case 'reasoning':
      return [{ type: 'reasoning', text: item.said, ...(item.isDone && { signature: item.encrypted_content }) }]
    case 'function_call':
      return [{ type: 'call', id: item.call_id, name: item.name, input: item.isDone ? item.arguments : item.said }]
    default:
      return []
  }
}

function readGemini({ values }: ParsedEvents): Reading {
  const blocks: ReadBlock[] = []
  let usage: Loose
  let isComplete = false
  for (const chunk of values) {
    const candidate = chunk.candidates?.[0]
    for (const part of candidate?.content?.parts ?? []) addGeminiPart(blocks, part)
    if (candidate?.finishReason) isComplete = true
    usage = chunk.usageMetadata ?? usage
  }
  return {
    blocks,
    isComplete,
    usage: usage && {
      input: usage.promptTokenCount,
      output: (usage.candidatesTokenCount ?? 0) + (usage.thoughtsTokenCount ?? 0),
      cacheRead: usage.cachedContentTokenCount,
      reasoning: usage.thoughtsTokenCount,
    },
  }
}

/** Parts of one kind that follow each other are pieces of one block. */
function addGeminiPart(blocks: ReadBlock[], part: Loose): void {
  const signed = part.thoughtSignature === undefined ? {} : { signature: part.thoughtSignature as string }
  const last = blocks.at(-1)
  if (part.functionCall) {
    const { id, name, args = {} } = part.functionCall
    blocks.push({ type: 'call', id, name, input: JSON.stringify(args), ...signed })
    return
  }
  if (typeof part.text !== 'string') return
  const type = part.thought ? 'reasoning' : 'text'
  if (last?.type === type) Object.assign(last, { text: last.text + part.text }, type === 'reasoning' ? signed : {})
  else if (part.text !== '') blocks.push({ type, text: part.text, ...(type === 'reasoning' && signed) })
}

function readChat({ values, isDone, host }: HostEvents): Reading {
  const blocks: ReadBlock[] = []
  const calls = new Map<number, ReadBlock & { type: 'call' }>()
  const open: { text?: ReadBlock & { type: 'text' }; reasoning?: ReadBlock & { type: 'reasoning' } } = {}
  let usage: Loose
  let isComplete = isDone
  for (const chunk of values) {
    usage = chunk.usage ?? usage
    const choice = chunk.choices?.[0]
    if (!choice) continue
    const delta = choice.delta ?? {}
    const parts: Loose[] = Array.isArray(delta.content) ? delta.content : [{ type: 'text', text: delta.content ?? '' }]
    const thoughts = parts
      .flatMap((part) => (part.type === 'thinking' ? part.thinking : []))
      .map(({ text }: Loose) => text)
    const thought = (delta.reasoning_content ?? delta.reasoning ?? '') + thoughts.join('')
    const said = parts.map((part) => (part.type === 'text' ? part.text : '')).join('') + (delta.refusal ?? '')
    if (thought !== '') {
      if (!open.reasoning) blocks.push((open.reasoning = { type: 'reasoning', text: '' }))
      open.reasoning.text += thought
    }
    if (said !== '') {
      if (!open.text) blocks.push((open.text = { type: 'text', text: '' }))
      open.text.text += said
    }
    for (const { index = 0, id, function: called } of delta.tool_calls ?? []) {
      let call = calls.get(index)
      if (!call) {
        call = { type: 'call', id, name: called.name, input: '' }
        calls.set(index, call)
        blocks.push(call)
      }
      call.input += called.arguments ?? ''
    }
    if (choice.finish_reason) isComplete = true
  }
  return { blocks, isComplete, usage: usage && { ...readChatUsage(usage), reportedCost: reportedCost(usage, host) } }
}

/** Ticks of xAI are ten-billionths of a dollar. OpenRouter charges its fee, and the upstream provider the rest, with the user's own key. */
function reportedCost(usage: Loose, host: string | undefined): number | undefined {
  if (host === 'xai' && usage.cost_in_usd_ticks !== undefined) return usage.cost_in_usd_ticks / 10_000_000_000
  if (host !== 'openrouter' || usage.cost === undefined) return undefined
  return usage.is_byok ? usage.cost + usage.cost_details.upstream_inference_cost : usage.cost
}

export function readChatUsage(usage: Loose): ReadUsage {
  const { prompt_tokens: input, completion_tokens: completion, total_tokens: total } = usage
  const reasoning = usage.completion_tokens_details?.reasoning_tokens ?? usage.reasoning_tokens
  // xAI counts reasoning beside the completion.
  const isApart = reasoning > 0 && total === input + completion + reasoning
  return {
    input,
    output: isApart ? completion + reasoning : completion,
    cacheRead: usage.prompt_tokens_details?.cached_tokens ?? usage.prompt_cache_hit_tokens ?? usage.cached_tokens,
    reasoning,
  }
}
