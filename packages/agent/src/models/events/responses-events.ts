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

interface Item {
  type: string
  id: string
  /** The announced item, for a call whose end is missing. */
  added: Json
  hasText: boolean
  hasSummary: boolean
  input: string
  isDone: boolean
}

const knownReasons = new Set(['max_output_tokens', 'content_filter'])

/** Events that repeat others, or only keep the connection alive. */
const redundant = new Set([
  'response.queued',
  'response.content_part.added',
  'response.content_part.done',
  'response.output_text.done',
  'response.output_text.annotation.added',
  'response.reasoning_summary_text.done',
  'response.reasoning_text.done',
  'keepalive',
])

/**
 * Keeps messages, reasoning and function calls of an answer in OpenAI's Responses format. Items of all other kinds
 * belong to server-side tools or are unknown.
 */
export class ResponsesEvents implements EventReader {
  readonly #notes: ResponseNotes
  readonly #items = new Map<number, Item>()

  constructor(notes: ResponseNotes) {
    this.#notes = notes
  }

  read(event: Json): Json[] {
    const type = textIn(event['type']) ?? ''
    switch (type) {
      case 'response.created':
      case 'response.in_progress':
        return created(type, event)
      case 'response.output_item.added':
        return this.#readAdded(event)
      case 'response.output_item.done':
        return this.#readDone(event)
      case 'response.output_text.delta':
      case 'response.refusal.delta':
        return this.#readText(type, event)
      case 'response.refusal.done': {
        const item = this.#itemOf(event)
        return item ? [{ ...place(event, item), type, refusal: textIn(event['refusal']) ?? '' }] : []
      }
      case 'response.reasoning_summary_part.added':
      case 'response.reasoning_summary_part.done':
      case 'response.reasoning_summary_text.delta':
        return this.#readSummary(type, event)
      case 'response.reasoning_text.delta':
        return this.#readThoughts(event)
      case 'response.function_call_arguments.delta':
      case 'response.function_call_arguments.done':
        return this.#readInput(type, event)
      case 'response.completed':
      case 'response.done':
      case 'response.incomplete':
        this.#noteReason(event)
        return [...this.#missingEnds(), ended(type === 'response.done' ? 'response.completed' : type, event)]
      case 'response.failed':
        return [failed(event)]
      case 'error':
        return [errorOf(event)]
      default:
        return redundant.has(type) ? [] : this.#notes.skip(`event:${type}`)
    }
  }

  /** If the answer has calls, the provider package does not report the reason. */
  #noteReason(event: Json): void {
    const { reason } = asJson(reasonOf(asJson(event['response']))['incomplete_details'])
    if (typeof reason === 'string' && !knownReasons.has(reason)) this.#notes.skip(`stop-reason:${reason}`)
  }

  #readAdded(event: Json): Json[] {
    const item = asJson(event['item'])
    const added = itemOf(item)
    const index = numberIn(event['output_index']) ?? -1
    if (!added) return this.#notes.skip(`item:${String(item['type'])}`)
    const { type, id } = added as { type: string; id: string }
    this.#items.set(index, { type, id, added, hasText: false, hasSummary: false, input: '', isDone: false })
    return [{ type: 'response.output_item.added', output_index: index, item: added }]
  }

  #readDone(event: Json): Json[] {
    const given = asJson(event['item'])
    const done = itemOf(given)
    const index = numberIn(event['output_index']) ?? -1
    if (!done) return []
    const item = this.#items.get(index)
    const end = { type: 'response.output_item.done', output_index: index, item: withStatus(done, given) }
    if (!item) return [{ type: 'response.output_item.added', output_index: index, item: done }, end]
    item.isDone = true
    const text = item.hasText
      ? ''
      : listOf(given['content'])
          .map(({ text: said }) => textIn(said) ?? '')
          .join('')
    if (item.type !== 'message' || text === '') return [end]
    return [{ type: 'response.output_text.delta', item_id: item.id, output_index: index, delta: text }, end]
  }

  #readText(type: string, event: Json): Json[] {
    const item = this.#itemOf(event)
    if (!item) return []
    item.hasText = true
    return [{ ...place(event, item), type, delta: textIn(event['delta']) ?? '' }]
  }

  #readSummary(type: string, event: Json): Json[] {
    const item = this.#itemOf(event)
    if (!item) return []
    item.hasSummary = true
    const index = numberIn(event['summary_index']) ?? 0
    const delta = type.endsWith('delta') && { delta: textIn(event['delta']) ?? '' }
    return [{ ...place(event, item), type, summary_index: index, ...delta }]
  }

  /** Open models stream their reasoning itself. The provider package reads only summaries. */
  #readThoughts(event: Json): Json[] {
    const item = this.#itemOf(event)
    if (!item || item.hasSummary) return []
    const type = 'response.reasoning_summary_text.delta'
    return [{ ...place(event, item), type, summary_index: 0, delta: textIn(event['delta']) ?? '' }]
  }

  #readInput(type: string, event: Json): Json[] {
    const item = this.#itemOf(event)
    if (item?.type !== 'function_call') return []
    const member = type.endsWith('delta') ? 'delta' : 'arguments'
    const text = textIn(event[member]) ?? ''
    item.input = member === 'delta' ? item.input + text : text
    return [{ ...place(event, item), type, [member]: text }]
  }

  /** Some servers do not end the items of calls. */
  *#missingEnds(): Generator<Json> {
    for (const [index, item] of this.#items) {
      if (item.isDone || item.type !== 'function_call') continue
      const whole = { ...item.added, arguments: item.input, status: 'completed' }
      yield { type: 'response.output_item.done', output_index: index, item: whole }
    }
  }

  #itemOf(event: Json): Item | undefined {
    return this.#items.get(numberIn(event['output_index']) ?? -1)
  }
}

function place(event: Json, { id }: Item): Json {
  return { item_id: textIn(event['item_id']) ?? id, output_index: event['output_index'] }
}

function created(type: string, event: Json): Json[] {
  const response = asJson(event['response'])
  const [id, model, at] = [textIn(response['id']), textIn(response['model']), numberIn(response['created_at'])]
  if (id === undefined || model === undefined || at === undefined) return []
  return [{ type, response: { id, model, created_at: at } }]
}

function itemOf(item: Json): Json | undefined {
  const { type } = item
  const id = textIn(item['id'])
  if (id === undefined) return undefined
  switch (type) {
    case 'message': {
      const isKnown = item['phase'] === 'commentary' || item['phase'] === 'final_answer'
      return { type, id, ...(isKnown && { phase: item['phase'] }) }
    }
    case 'reasoning':
      return { type, id, ...defined({ encrypted_content: textIn(item['encrypted_content']) }) }
    case 'function_call': {
      const [callId, name] = [textIn(item['call_id']), textIn(item['name'])]
      if (callId === undefined || name === undefined) return undefined
      return { type, id, call_id: callId, name, arguments: textIn(item['arguments']) ?? '' }
    }
    default:
      return undefined
  }
}

function withStatus(item: Json, { status }: Json): Json {
  if (item['type'] !== 'function_call') return item
  return { ...item, status: status === 'incomplete' ? status : 'completed' }
}

function ended(type: string, event: Json): Json {
  const response = asJson(event['response'])
  const usage = usageOf(response['usage'])
  return { type, response: { ...reasonOf(response), ...(usage && { usage }) } }
}

function failed(event: Json): Json {
  const response = asJson(event['response'])
  const error = asJson(response['error'])
  const usage = usageOf(response['usage'])
  const message = errorText(error)
  return {
    type: 'response.failed',
    sequence_number: numberIn(event['sequence_number']) ?? 0,
    response: {
      ...reasonOf(response),
      ...(Object.keys(error).length > 0 && { error: { ...defined({ code: textIn(error['code']) }), message } }),
      ...(usage && { usage }),
    },
  }
}

/** The error is a member of the event, or the event itself. */
function errorOf(event: Json): Json {
  const error = event['error'] ?? event
  const { type, code } = asJson(error)
  return {
    type: 'error',
    sequence_number: numberIn(event['sequence_number']) ?? 0,
    error: {
      type: textIn(type) ?? 'error',
      ...defined({ code: typeof code === 'number' ? String(code) : textIn(code) }),
      message: errorText(error),
    },
  }
}

function reasonOf(response: Json): Json {
  const reason = textIn(asJson(response['incomplete_details'])['reason'])
  return reason === undefined ? {} : { incomplete_details: { reason } }
}

function usageOf(given: unknown): Json | undefined {
  if (typeof given !== 'object' || given === null) return undefined
  const usage = asJson(given)
  return {
    input_tokens: 0,
    output_tokens: 0,
    ...counts(usage, ['input_tokens', 'output_tokens', 'total_tokens']),
    input_tokens_details: counts(usage['input_tokens_details'], ['cached_tokens', 'cache_write_tokens']),
    output_tokens_details: counts(usage['output_tokens_details'], ['reasoning_tokens']),
  }
}
