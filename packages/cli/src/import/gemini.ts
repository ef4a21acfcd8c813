import { text, type Content, type ToolResultContent, type Usage } from '@tapetree/session'
import { Chain } from './chain.ts'
import {
  dropped,
  kept,
  merged,
  type Fate,
  type LineKind,
  type SourceReader,
  type SourceSession,
  type Taken,
} from './import-source.ts'
import { hashOf, type SourceLine } from './source-lines.ts'
import {
  callId,
  count,
  image,
  imageFromUrl,
  inputOf,
  isBlank,
  list,
  name,
  reasoning,
  sum,
  time,
  toolResult,
  toolUse,
  unknownBlock,
  usage,
  usageSince,
  values,
  words,
  type Values,
} from './values.ts'

type Read = SourceLine & { type: 'read' }

/** The lines of `~/.gemini/tmp/<project>/chats/session-<time>-<id>.jsonl`; older versions have one JSON file with the same messages. */
export const geminiLines = [
  { line: 'header', fate: 'attributes', becomes: 'id and time of the session' },
  { line: 'user', fate: 'kept', becomes: 'a user message' },
  { line: 'user (results)', fate: 'repeats', becomes: 'results that the message with the calls has too' },
  { line: 'user (session_context)', fate: 'harness', becomes: 'date, folders and files of the machine' },
  {
    line: 'gemini',
    fate: 'kept',
    becomes: 'an assistant message with thoughts, tool calls and tokens, and their results',
  },
  { line: 'info', fate: 'kept', becomes: 'a `custom` entry, also for warnings and errors' },
  {
    line: '$set (messages)',
    fate: 'repeats',
    becomes: 'the list of messages again; a new one, such as a summary, begins a branch',
  },
  { line: '$set', fate: 'attributes', becomes: 'times, summary, folders' },
  { line: '$rewindTo', fate: 'position', becomes: 'a branch: the conversation goes on before that message' },
  { line: 'other', fate: 'kept', becomes: 'a `custom` entry with the whole line' },
] as const satisfies readonly LineKind[]

type Kind = (typeof geminiLines)[number]['line']

interface Known {
  /** The last entry of the message, and the one before its first. */
  last: string | null
  before: string | null
  content: string
  spent: Usage | undefined
}

/** A message is written again when it has changed, with the same id. */
export class GeminiReader implements SourceReader {
  readonly #chain = new Chain()
  readonly #messages = new Map<string, Known>()
  readonly #calls = new Set<string>()
  /** What each result says, by its call. */
  readonly #results = new Map<string, string>()

  get leaf(): string | null {
    return this.#chain.tip
  }

  get started(): string | undefined {
    return this.#chain.started
  }

  take(line: Read): Taken {
    const { value } = line
    const [kind, fate] = this.#takeKind(value, line)
    return { kind, fate, lines: this.#chain.take() }
  }

  #takeKind(value: Values, { hash }: Read): [Kind, Fate] {
    const { $set: changed, $rewindTo: rewindTo } = value
    if (changed !== undefined) return this.#takeChange(values(changed), hash)
    if (rewindTo !== undefined) {
      const known = this.#messages.get(words(rewindTo) ?? '')
      if (known) this.#chain.tip = known.before
      return ['$rewindTo', merged('position')]
    }
    if (words(value['sessionId']) !== undefined && value['type'] === undefined) {
      this.#chain.at(time(value['startTime']))
      return ['header', merged('attributes')]
    }
    return this.#takeMessage(value, hash)
  }

  /** The list of messages replaces the one before: when a session is resumed, compressed or rewound. */
  #takeChange(changed: Values, hash: string): [Kind, Fate] {
    const summary = words(changed['summary'])
    if (summary !== undefined) {
      this.#chain.note(`${hash} summary`, { type: 'session_info', sessionInfo: { name: summary.slice(0, 500) } })
    }
    if (!Array.isArray(changed['messages'])) return ['$set', merged('attributes')]
    const messages = list(changed['messages']).map(values)
    const isNew = messages.map((message) => this.#isNew(message))
    const firstNew = isNew.indexOf(true)
    if (firstNew === -1) return ['$set (messages)', merged('repeats')]
    // What comes before a new message is known, or there is nothing before it.
    const before = messages.slice(0, firstNew).findLast((message) => this.#messages.has(idOf(message, '')))
    if (this.#messages.size > 0) {
      this.#chain.tip = before ? (this.#messages.get(idOf(before, ''))?.last ?? null) : null
    }
    for (const [index, message] of messages.entries()) {
      if (index >= firstNew && (isNew[index] === true || !isHarness(message))) {
        this.#takeMessage(message, `${hash} ${index}`, { again: isNew[index] !== true })
      }
    }
    return ['$set (messages)', kept]
  }

  /** Whether a message says something that no message before it said. */
  #isNew(message: Values): boolean {
    if (isHarness(message) || this.#messages.has(idOf(message, ''))) return false
    const parts = list(message['content']).map(values)
    const results = parts.filter((part) => part['functionResponse'] !== undefined)
    if (results.length === 0 || results.length < parts.length) return true
    return !contentOf(parts, '').every((block) => block.type === 'tool_result' && this.#isKnown(block))
  }

  #takeMessage(message: Values, hash: string, { again = false } = {}): [Kind, Fate] {
    this.#chain.at(time(message['timestamp']))
    const id = idOf(message, hash)
    switch (message['type']) {
      case 'user':
        return this.#takeUser(message, id, again)
      case 'gemini':
        return ['gemini', this.#takeAnswer(message, id, again)]
      case 'info':
      case 'warning':
      case 'error': {
        if (this.#messages.has(id) && !again) return ['info', dropped('duplicate')]
        this.#keep(id, () => this.#custom(id, String(message['type']), { content: message['content'] }))
        return ['info', kept]
      }
      default:
        this.#custom(hash, String(message['type']), message)
        return ['other', kept]
    }
  }

  #takeUser(message: Values, id: string, again: boolean): [Kind, Fate] {
    if (isHarness(message)) return ['user (session_context)', dropped('harness')]
    const content = contentOf(message['content'], id)
    const said = content.filter((block) => block.type !== 'tool_result')
    const results = content.filter((block) => block.type === 'tool_result')
    const newResults = results.filter((result) => again || !this.#isKnown(result))
    if (results.length > 0 && newResults.length === 0 && isBlank(said)) {
      this.#messages.set(id, this.#known(this.#chain.tip, hashOf(JSON.stringify(content))))
      return ['user (results)', merged('repeats')]
    }
    if (isBlank(content)) return ['user', dropped('empty')]
    const digest = hashOf(JSON.stringify(content))
    const known = this.#messages.get(id)
    if (known?.content === digest && !again) return ['user', dropped('duplicate')]
    // The text was changed: both stay, as branches.
    if (known && !again) this.#chain.tip = known.before
    this.#keep(id, () => {
      for (const result of newResults) this.#addResult(result, id)
      if (!isBlank(said)) this.#chain.say(id, { role: 'user', content: said })
    })
    this.#messages.set(id, { ...this.#known(null, digest), ...this.#messages.get(id), content: digest })
    return ['user', kept]
  }

  #takeAnswer(message: Values, id: string, again: boolean): Fate {
    const content = [...thoughtsOf(message), ...contentOf(message['content'], id)].filter(
      (block) => block.type !== 'text' || block.text.content !== '',
    )
    const digest = hashOf(JSON.stringify(content))
    const known = again ? undefined : this.#messages.get(id)
    const calls = list(message['toolCalls']).map(values)
    const spent = usageOf(message['tokens'])
    if (known && known.content !== digest && content.length > 0) this.#chain.tip = known.before
    const isSaid = known?.content === digest
    const lines = this.#keep(id, () => {
      const since = usageSince(known?.spent, spent)
      if (!isSaid && content.length > 0) this.#answer(id, content, message, since)
      else this.#chain.spend(`${id} usage`, since, { provider: 'google', model: name(message['model'], 'unknown') })
      for (const call of calls) this.#takeCall(call, id, message, again)
    })
    const before = known && isSaid ? known.before : (this.#messages.get(id)?.before ?? null)
    this.#messages.set(id, { last: this.#chain.tip, before, content: digest, spent: spent ?? known?.spent })
    if (lines > 0) return kept
    return known ? dropped('duplicate') : dropped('empty')
  }

  #answer(id: string, content: Content[], message: Values, spent?: Usage): void {
    for (const block of content) if (block.type === 'tool_use') this.#calls.add(block.toolUse.id)
    this.#chain.say(id, {
      role: 'assistant',
      content,
      provider: 'google',
      model: name(message['model'], 'unknown'),
      ...(spent && { usage: spent }),
    })
  }

  #takeCall(call: Values, id: string, message: Values, again: boolean): void {
    const own = callId(call['id'], `${id} ${JSON.stringify(call['args'])}`)
    if (again || !this.#calls.has(own)) {
      this.#answer(
        `${id} ${own}`,
        [toolUse({ id: own, name: name(call['name'], 'unknown'), input: inputOf(call['args']) })],
        message,
      )
    }
    for (const block of contentOf(call['result'], own)) {
      if (block.type !== 'tool_result' || (this.#isKnown(block) && !again)) continue
      const isError = call['status'] === 'error' || call['status'] === 'cancelled'
      // The result names the call by its id with the provider, which may be another one.
      const toolResult = { ...block.toolResult, toolUseId: own, ...(isError && { isError }) }
      this.#results.set(block.toolResult.toolUseId, digestOf(block))
      this.#addResult({ ...block, toolResult }, id)
    }
  }

  #isKnown(block: ToolResultContent): boolean {
    return this.#results.get(block.toolResult.toolUseId) === digestOf(block)
  }

  #addResult(block: ToolResultContent, id: string): void {
    // A second result of a call that says something else is not sent: no provider would accept it.
    if (this.#results.has(block.toolResult.toolUseId) && !this.#isKnown(block)) {
      return this.#custom(`${id} ${block.toolResult.toolUseId} again`, 'result', { ...block.toolResult })
    }
    this.#results.set(block.toolResult.toolUseId, digestOf(block))
    this.#chain.say(`${id} ${block.toolResult.toolUseId} result`, { role: 'tool', content: [block] })
  }

  /** Remembers the entries of a message, and returns how many there are. */
  #keep(id: string, add: () => void): number {
    const before = this.#chain.tip
    const first = this.#chain.size
    add()
    this.#messages.set(id, { ...this.#known(before, ''), last: this.#chain.tip })
    return this.#chain.size - first
  }

  #known(before: string | null, content: string): Known {
    return { last: this.#chain.tip, before, content, spent: undefined }
  }

  #custom(id: string, type: string, data: Values): void {
    this.#chain.add(id, { type: 'custom', custom: { customType: `gemini.${type}`.slice(0, 100), data } })
  }
}

function digestOf({ toolResult: result }: ToolResultContent): string {
  return hashOf(JSON.stringify(result.content))
}

function idOf(message: Values, otherwise: string): string {
  return words(message['id']) ?? otherwise
}

function isHarness(message: Values): boolean {
  const [first] = list(message['content'])
  const said = words(message['content']) ?? words(values(first)['text'])
  return message['type'] === 'user' && said?.trimStart().startsWith('<session_context>') === true
}

function thoughtsOf(message: Values): Content[] {
  return list(message['thoughts']).map((thought) => {
    const { subject, description } = values(thought)
    const said = [words(subject), words(description)].filter((each) => each !== undefined)
    return said.length === 0 ? unknownBlock(thought) : reasoning(said.join('\n'))
  })
}

function contentOf(content: unknown, id: string): Content[] {
  if (typeof content === 'string') return content === '' ? [] : [text(content)]
  const parts = Array.isArray(content) ? (content as unknown[]) : content === undefined ? [] : [content]
  return parts.map((part, index) => {
    if (typeof part === 'string') return text(part)
    const { text: said, thought, thoughtSignature, inlineData, fileData, functionCall, functionResponse } = values(part)
    if (typeof said === 'string')
      return thought === true ? reasoning(said, { signature: thoughtSignature }) : text(said)
    if (inlineData !== undefined) return image(values(inlineData)['data'], values(inlineData)['mimeType'])
    if (fileData !== undefined) return imageFromUrl(values(fileData)['fileUri'])
    if (functionCall !== undefined) {
      const { id: call, name: tool, args } = values(functionCall)
      return toolUse({
        id: callId(call, `${id} ${index}`),
        name: name(tool, 'unknown'),
        input: inputOf(args),
        proof: thoughtSignature,
      })
    }
    if (functionResponse === undefined) return unknownBlock(part)
    const { id: call, response } = values(functionResponse)
    const { output, error } = values(response)
    return toolResult({
      toolUseId: callId(call, `${id} ${index}`),
      ...(error !== undefined && { isError: true }),
      content: words(output) ?? words(error) ?? JSON.stringify(response ?? ''),
    })
  })
}

/** Their output does not include the thoughts. */
function usageOf(tokens: unknown): Usage | undefined {
  const { input, output, cached, thoughts, total } = values(tokens)
  return usage({
    inputTokens: count(input),
    outputTokens: sum(output, thoughts),
    cacheReadTokens: count(cached),
    reasoningTokens: count(thoughts),
    totalTokens: count(total),
  })
}

/**
 * What the first lines say about the session. Its folder is in a file beside the sessions. A subagent's file is in a folder with the name of
 * the session that started it.
 */
export function geminiSession(
  lines: readonly Values[],
  { cwd, parent }: { cwd: string | undefined; parent: string | undefined },
): SourceSession | undefined {
  const header = lines.find((line) => words(line['sessionId']) !== undefined)
  const id = words(header?.['sessionId'])
  if (id === undefined) return undefined
  const folder = cwd === undefined ? {} : { cwd }
  if (header?.['kind'] !== 'subagent' || parent === undefined) return { id, ...folder }
  return { id: `${parent} ${id}`, ...folder, parentId: parent, subagent: true }
}

/** The whole file of older versions as lines. */
export function geminiWhole(file: Values): Values[] {
  const { messages, ...header } = file
  return [header, ...list(messages).map(values)]
}
