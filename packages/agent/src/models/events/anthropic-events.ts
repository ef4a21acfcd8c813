import {
  asJson,
  counts,
  defined,
  errorText,
  listOf,
  numberIn,
  textIn,
  type EventReader,
  type Json,
  type ResponseNotes,
} from './event-reader.ts'

const usageCounts = ['input_tokens', 'output_tokens', 'cache_creation_input_tokens', 'cache_read_input_tokens'] as const
const knownIterations = new Set(['compaction', 'message', 'advisor_message', 'fallback_message'])

/**
 * Anthropic may add events, blocks, deltas and members at any time, and asks clients to ignore unknown ones. Events are
 * rebuilt from the members that we use, because the provider package rejects an answer with unknown members.
 */
export class AnthropicEvents implements EventReader {
  readonly #notes: ResponseNotes
  /** The blocks that were passed on; deltas of all others are dropped. */
  readonly #open = new Set<number>()

  constructor(notes: ResponseNotes) {
    this.#notes = notes
  }

  read(event: Json): Json[] {
    const { type } = event
    switch (type) {
      case 'message_start':
        return [messageStart(event)]
      case 'content_block_start':
        return this.#readStart(event)
      case 'content_block_delta':
        return this.#readDelta(event)
      case 'content_block_stop': {
        const index = numberIn(event['index']) ?? -1
        return this.#open.delete(index) ? [{ type, index }] : []
      }
      case 'message_delta':
        return [messageDelta(event)]
      case 'message_stop':
      case 'ping':
        return [{ type }]
      case 'error': {
        const { error } = event
        return [{ type, error: { type: textIn(asJson(error)['type']) ?? 'api_error', message: errorText(error) } }]
      }
      default:
        return this.#notes.skip(`event:${String(type)}`)
    }
  }

  #readStart(event: Json): Json[] {
    const index = numberIn(event['index']) ?? -1
    const given = asJson(event['content_block'])
    const block = blockOf(given)
    // An index may be used again.
    this.#open.delete(index)
    if (!block) return this.#notes.skip(`block:${String(given['type'])}`)
    this.#open.add(index)
    return [{ type: 'content_block_start', index, content_block: block }]
  }

  #readDelta(event: Json): Json[] {
    const index = numberIn(event['index']) ?? -1
    if (!this.#open.has(index)) return []
    const given = asJson(event['delta'])
    // Our content has no citations.
    if (given['type'] === 'citations_delta') return []
    const delta = deltaOf(given)
    if (!delta) return this.#notes.skip(`delta:${String(given['type'])}`)
    return [{ type: 'content_block_delta', index, delta }]
  }
}

function messageStart(event: Json): Json {
  const message = asJson(event['message'])
  const calls = listOf(message['content']).flatMap((block) => (block['type'] === 'tool_use' ? [blockOf(block)] : []))
  return {
    type: 'message_start',
    message: {
      ...defined({ id: textIn(message['id']), model: textIn(message['model']), role: textIn(message['role']) }),
      ...defined({ stop_reason: textIn(message['stop_reason']) }),
      content: calls.filter((call) => call !== undefined),
      usage: { input_tokens: 0, ...counts(message['usage'], usageCounts) },
    },
  }
}

function blockOf(block: Json): Json | undefined {
  const { type } = block
  switch (type) {
    case 'text':
      return { type, text: textIn(block['text']) ?? '' }
    case 'thinking':
      return { type, thinking: textIn(block['thinking']) ?? '' }
    case 'redacted_thinking':
      return { type, data: textIn(block['data']) ?? '' }
    case 'tool_use': {
      const [id, name] = [textIn(block['id']), textIn(block['name'])]
      return id === undefined || name === undefined ? undefined : { type, id, name, input: asJson(block['input']) }
    }
    case 'compaction':
      return { type, ...defined({ content: textIn(block['content']), signature: textIn(block['signature']) }) }
    default:
      return undefined
  }
}

/** The member that each kind of delta has. */
const deltaMembers: Readonly<Record<string, string>> = {
  text_delta: 'text',
  thinking_delta: 'thinking',
  signature_delta: 'signature',
  input_json_delta: 'partial_json',
  compaction_delta: 'content',
}

function deltaOf(delta: Json): Json | undefined {
  const type = textIn(delta['type']) ?? ''
  const member = Object.hasOwn(deltaMembers, type) ? deltaMembers[type] : undefined
  return member === undefined ? undefined : { type, [member]: textIn(delta[member]) ?? '' }
}

function messageDelta(event: Json): Json {
  const [delta, usage] = [asJson(event['delta']), asJson(event['usage'])]
  const iterations = listOf(usage['iterations']).filter(({ type }) => knownIterations.has(String(type)))
  const details = counts(usage['output_tokens_details'], ['thinking_tokens'])
  return {
    type: 'message_delta',
    delta: defined({ stop_reason: textIn(delta['stop_reason']), stop_sequence: textIn(delta['stop_sequence']) }),
    usage: {
      output_tokens: 0,
      ...counts(usage, usageCounts),
      ...(Object.keys(details).length > 0 && { output_tokens_details: details }),
      ...(iterations.length > 0 && {
        iterations: iterations.map((each) => ({
          type: each['type'],
          input_tokens: 0,
          output_tokens: 0,
          ...counts(each, usageCounts),
        })),
      }),
    },
  }
}
