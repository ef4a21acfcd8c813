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

const knownMembers = new Set([
  ...[
    'role',
    'content',
    'refusal',
    'reasoning',
    'reasoning_content',
    'reasoning_details',
    'tool_calls',
    'function_call',
  ],
  // Members that hosts add and that are not needed.
  ...[
    'index',
    'annotations',
    'audio',
    'channel',
    'executed_tools',
    'name',
    'provider_metadata',
    'token_id',
    'tool_call_id',
  ],
])

/** Converts chunks of servers that imitate Chat Completions to chunks that the provider package accepts. */
export class ChatEvents implements EventReader {
  readonly #notes: ResponseNotes
  readonly #tags: ThinkTags | undefined
  #hasCalls = false
  #hasFunctionCall = false
  #hasBegun = false
  #isFinished = false
  #hasFailed = false

  constructor(notes: ResponseNotes, { hasThinkTags = false }: { hasThinkTags?: boolean | undefined } = {}) {
    this.#notes = notes
    this.#tags = hasThinkTags ? new ThinkTags() : undefined
  }

  read(chunk: Json): Json[] {
    const { error } = chunk
    if (error !== undefined && error !== null) {
      this.#hasFailed = true
      return [{ error: errorOf(error) }]
    }
    const choice = listOf(chunk['choices']).find(({ index }) => (numberIn(index) ?? 0) === 0)
    const usage = usageOf(chunk['usage'])
    if (!choice && !usage) return Array.isArray(chunk['choices']) ? [] : this.#skipEvent(chunk)
    if (choice) this.#hasBegun = true
    const chunks = choice ? this.#choices(choice) : []
    return (chunks.length > 0 ? chunks : [undefined]).map((made, index, { length }) => ({
      ...defined({ id: textIn(chunk['id']), model: textIn(chunk['model']), created: numberIn(chunk['created']) }),
      choices: made ? [made] : [],
      ...(usage && index === length - 1 && { usage }),
    }))
  }

  end(isDone: boolean): Json[] {
    const held = this.#held()
    // If a server sends `[DONE]` after an answer, the answer is complete even without a finish reason.
    if (!isDone || !this.#hasBegun || this.#isFinished || this.#hasFailed) return held
    return [...held, { choices: [{ index: 0, delta: {}, finish_reason: this.#hasCalls ? 'tool_calls' : 'stop' }] }]
  }

  #skipEvent(chunk: Json): Json[] {
    return this.#notes.skip(`event:${textIn(chunk['object']) ?? Object.keys(chunk).at(0) ?? 'empty'}`)
  }

  #choices(choice: Json): Json[] {
    const delta = this.#delta(asJson(choice['delta'] ?? choice['message']))
    const reason = textIn(choice['finish_reason'])
    if (!reason) return [{ index: 0, delta }]
    this.#isFinished = true
    const held = this.#tags?.flush()
    const rest = defined({ content: held?.text || undefined, reasoning_content: held?.reasoning || undefined })
    if (Object.keys(rest).length === 0) return [{ index: 0, delta, finish_reason: reason }]
    return [
      { index: 0, delta },
      { index: 0, delta: rest, finish_reason: reason },
    ]
  }

  #held(): Json[] {
    const held = this.#tags?.flush()
    const delta = defined({ content: held?.text || undefined, reasoning_content: held?.reasoning || undefined })
    return Object.keys(delta).length > 0 ? [{ choices: [{ index: 0, delta }] }] : []
  }

  #delta(delta: Json): Json {
    for (const name of Object.keys(delta)) if (!knownMembers.has(name)) this.#notes.skip(`delta:${name}`)
    for (const detail of listOf(delta['reasoning_details'])) addDetail(this.#notes.reasoningDetails, detail)
    const reasoning = textIn(delta['reasoning_content']) ?? textIn(delta['reasoning'])
    return {
      ...(delta['role'] === 'assistant' && { role: 'assistant' }),
      ...defined({ reasoning_content: reasoning, refusal: textIn(delta['refusal']) }),
      ...this.#content(delta['content']),
      ...this.#calls(delta),
    }
  }

  #content(content: unknown): Json {
    if (Array.isArray(content)) return { content: listOf(content).filter((part) => this.#isKnownPart(part)) }
    if (typeof content !== 'string') return {}
    const { reasoning, text } = this.#tags?.read(content) ?? { reasoning: '', text: content }
    return { ...(reasoning !== '' && { reasoning_content: reasoning }), content: text }
  }

  #isKnownPart({ type }: Json): boolean {
    if (type === 'text' || type === 'thinking') return true
    this.#notes.skip(`part:${String(type)}`)
    return false
  }

  #calls(delta: Json): Json {
    const calls = listOf(delta['tool_calls']).map((call) => callOf(call))
    const before = asJson(delta['function_call'])
    if (Object.keys(before).length > 0) {
      // The format that preceded tools: one call, without an id.
      const first = this.#hasFunctionCall ? {} : { id: 'call_0', type: 'function' }
      this.#hasFunctionCall = true
      calls.push({ index: 0, ...first, function: functionOf(before) })
    }
    if (calls.length === 0) return {}
    this.#hasCalls = true
    return { tool_calls: calls }
  }
}

function callOf(call: Json): Json {
  const extra = textIn(asJson(asJson(call['extra_content'])['google'])['thought_signature'])
  return {
    ...defined({ index: numberIn(call['index']), id: textIn(call['id']) || undefined, type: textIn(call['type']) }),
    function: functionOf(asJson(call['function'])),
    ...(extra !== undefined && { extra_content: { google: { thought_signature: extra } } }),
  }
}

function functionOf(given: Json): Json {
  const name = textIn(given['name'])
  // With the name, `null` means no arguments; later it may be a part of them.
  const input = name !== undefined && given['arguments'] === 'null' ? '' : given['arguments']
  const isObject = typeof input === 'object' && input !== null
  return defined({ name, arguments: isObject ? JSON.stringify(input) : textIn(input) })
}

/**
 * The deltas of one detail have the same type and index: text is appended, and the signature comes with the last delta.
 */
function addDetail(details: Json[], piece: Json): void {
  const last = details.at(-1)
  if (!last || last['type'] !== piece['type'] || last['index'] !== piece['index']) {
    details.push({ ...piece })
    return
  }
  for (const [name, value] of Object.entries(piece)) {
    const before = last[name]
    const isAppended = name === 'text' || name === 'summary' || name === 'data'
    if (isAppended && typeof before === 'string' && typeof value === 'string') last[name] = before + value
    else if (value !== null && value !== undefined) last[name] = value
  }
}

function errorOf(error: unknown): Json {
  const given = asJson(error)
  const { code } = given
  const isCode = typeof code === 'string' || typeof code === 'number'
  return { ...given, message: errorText(error), type: textIn(given['type']), code: isCode ? code : undefined }
}

/** Keeps all members, since hosts report their cost here. */
function usageOf(given: unknown): Json | undefined {
  if (typeof given !== 'object' || given === null) return undefined
  const usage = asJson(given)
  const details = (name: string): Json | undefined => {
    const value = usage[name]
    if (typeof value !== 'object' || value === null) return undefined
    return { ...value, ...counts(value, Object.keys(value)) }
  }
  const { prompt_tokens_details: _, completion_tokens_details: __, ...rest } = usage
  return {
    ...rest,
    ...tokenCounts(usage),
    ...defined({
      prompt_tokens_details: details('prompt_tokens_details'),
      completion_tokens_details: details('completion_tokens_details'),
    }),
  }
}

function tokenCounts(usage: Json): Json {
  const names = ['prompt_tokens', 'completion_tokens', 'total_tokens']
  return Object.fromEntries(names.map((name) => [name, numberIn(usage[name])]))
}

const [start, end] = ['<think>', '</think>'] as const

/** Splits text that begins with `<think>…</think>` into reasoning and text. Tags may be cut anywhere between two deltas. */
export class ThinkTags {
  #state: 'before' | 'inside' | 'behind' | 'outside' = 'before'
  /** Text that may be part of a tag, or blank space around one. */
  #held = ''

  read(delta: string): { reasoning: string; text: string } {
    if (this.#state === 'outside') return { reasoning: '', text: delta }
    this.#held += delta
    let reasoning = ''
    if (this.#state === 'before') {
      const shown = this.#held.trimStart()
      if (start.startsWith(shown)) return { reasoning, text: '' }
      if (!shown.startsWith(start)) return { reasoning, text: this.#leave() }
      this.#state = 'inside'
      this.#held = shown.slice(start.length).replace(/^\n/, '')
    }
    if (this.#state === 'inside') {
      const place = this.#held.indexOf(end)
      if (place === -1) return { reasoning: this.#takeSafe(), text: '' }
      reasoning = this.#held.slice(0, place).replace(/\n$/, '')
      this.#held = this.#held.slice(place + end.length)
      this.#state = 'behind'
    }
    this.#held = this.#held.trimStart()
    return { reasoning, text: this.#held === '' ? '' : this.#leave() }
  }

  /** The text that was held back. Without an end tag it is reasoning. */
  flush(): { reasoning: string; text: string } {
    const isInside = this.#state === 'inside'
    const held = this.#leave()
    return isInside ? { reasoning: held, text: '' } : { reasoning: '', text: held }
  }

  #leave(): string {
    const held = this.#held
    this.#held = ''
    this.#state = 'outside'
    return held
  }

  /** All but a suffix that may be the beginning of the end tag, or the line break before it. */
  #takeSafe(): string {
    const tail = new RegExp(`\\n?(?:${Array.from(end, (_, length) => end.slice(0, length)).join('|')})$`)
    const at = tail.exec(this.#held)?.index ?? this.#held.length
    const safe = this.#held.slice(0, at)
    this.#held = this.#held.slice(at)
    return safe
  }
}
