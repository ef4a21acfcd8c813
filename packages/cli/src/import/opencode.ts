import { text, type Content, type Message, type Usage } from '@tapetree/session'
import { Chain } from './chain.ts'
import { dropped, kept, merged, type Fate, type LineKind, type SourceReader, type Taken } from './import-source.ts'
import type { SourceLine } from './source-lines.ts'
import {
  callId,
  count,
  imageFromUrl,
  inputOf,
  list,
  name,
  reasoning,
  sum,
  time,
  toolResult,
  toolUse,
  usage,
  values,
  words,
  type Values,
} from './values.ts'

type Read = SourceLine & { type: 'read' }

/** The rows of `opencode.db`, or the files of `storage` in older versions. */
export const opencodeLines = [
  { line: 'session', fate: 'attributes', becomes: 'folder, name and time; what was taken back becomes a branch' },
  { line: 'message', fate: 'attributes', becomes: 'role, model and time of its parts' },
  { line: 'message (error)', fate: 'kept', becomes: 'an assistant message without content, with the error' },
  { line: 'part (text)', fate: 'kept', becomes: 'a message of the user or the model with one block' },
  {
    line: 'part (synthetic)',
    fate: 'kept',
    becomes: 'a message with role `custom`: the program said it, not the user',
  },
  { line: 'part (ignored)', fate: 'kept', becomes: 'a `custom` entry: it was shown and not sent to the model' },
  { line: 'part (reasoning)', fate: 'kept', becomes: 'reasoning; its signature is kept and never sent' },
  { line: 'part (tool)', fate: 'kept', becomes: 'a tool call, and its result if it has one' },
  { line: 'part (file)', fate: 'kept', becomes: 'an image, or a `custom` entry with the name of the file' },
  { line: 'part (summary)', fate: 'kept', becomes: 'a compaction with this summary' },
  { line: 'part (step-finish)', fate: 'usage', becomes: 'a `usage` record with tokens and cost' },
  { line: 'part (step)', fate: 'bookkeeping', becomes: 'beginnings of steps, snapshots and patches of files, retries' },
  { line: 'part (agent)', fate: 'kept', becomes: 'a `custom` entry: a mention of an agent, a task, a compaction' },
  { line: 'other', fate: 'kept', becomes: 'a `custom` entry with the whole row' },
] as const satisfies readonly LineKind[]

type Kind = (typeof opencodeLines)[number]['line']

interface Author {
  role: 'user' | 'assistant'
  model: { provider?: string; model?: string }
  isSummary: boolean
  error: string | undefined
  before: string | null
}

/** Rows change while the program works: a part is known by its id and what it says. */
export class OpencodeReader implements SourceReader {
  readonly #chain = new Chain()
  readonly #authors = new Map<string, Author>()
  #revert: string | undefined
  #leaf: string | null = null

  get leaf(): string | null {
    // Messages from there on were taken back.
    const taken = this.#revert === undefined ? undefined : this.#authors.get(this.#revert)
    return taken ? taken.before : this.#leaf
  }

  get started(): string | undefined {
    return this.#chain.started
  }

  take(line: Read): Taken {
    const { value } = line
    const [kind, fate] = this.#takeKind(value)
    this.#leaf = this.#chain.tip
    return { kind, fate, lines: this.#chain.take() }
  }

  #takeKind(value: Values): [Kind, Fate] {
    const data = values(value['data'])
    const id = String(value['id'])
    switch (value['table']) {
      case 'session':
        return ['session', this.#takeSession(data, id)]
      case 'message':
        return this.#takeMessage(data, id)
      case 'part':
        return this.#takePart(data, { id, message: String(value['message']) })
      default:
        this.#custom(id, String(value['table']), value)
        return ['other', kept]
    }
  }

  #takeSession(data: Values, id: string): Fate {
    this.#chain.at(time(values(data['time'])['created']))
    this.#revert = words(values(data['revert'])['messageID'])
    const title = words(data['title'])
    // The program names a session after its time until the model has found a better name.
    if (title !== undefined && !/^(?:New|Child) session - /.test(title)) {
      this.#chain.note(`${id} ${title.slice(0, 500)}`, {
        type: 'session_info',
        sessionInfo: { name: title.slice(0, 500) },
      })
    }
    return merged('attributes')
  }

  #takeMessage(data: Values, id: string): [Kind, Fate] {
    this.#chain.at(time(values(data['time'])['created']))
    const { role, model, providerID, modelID } = data
    const author: Author = {
      role: role === 'assistant' ? 'assistant' : 'user',
      model: modelOf(providerID ?? values(model)['providerID'], modelID ?? values(model)['modelID']),
      isSummary: role === 'assistant' && data['summary'] === true,
      error: errorOf(data['error']),
      before: this.#chain.tip,
    }
    this.#authors.set(id, author)
    if (author.error === undefined || author.role === 'user') return ['message', merged('attributes')]
    const said = { role: author.role, content: [], ...author.model, stopReason: 'error' }
    this.#chain.say(`${id} ${author.error}`, { ...said, error: { kind: 'imported', message: author.error } })
    return ['message (error)', kept]
  }

  #takePart(data: Values, { id, message }: { id: string; message: string }): [Kind, Fate] {
    const author = this.#authors.get(message) ?? noAuthor
    const { time: times } = data
    this.#chain.at(time(values(times)['start']))
    switch (data['type']) {
      case 'text': {
        const said = words(data['text'])
        if (said === undefined) return ['part (text)', dropped('empty')]
        if (author.isSummary) return ['part (summary)', this.#compact(said, id)]
        if (data['ignored'] === true) {
          this.#custom(`${id} ${said.length}`, 'part.text', data)
          return ['part (ignored)', kept]
        }
        if (author.role === 'user' && data['synthetic'] === true) {
          this.#chain.say(`${id} ${said.length}`, { role: 'custom', content: [text(said)] })
          return ['part (synthetic)', kept]
        }
        this.#say(`${id} ${said.length}`, author, [text(said)])
        return ['part (text)', kept]
      }
      case 'reasoning': {
        const said = words(data['text'])
        const proof = values(data['metadata'])
        if (said === undefined && Object.keys(proof).length === 0) return ['part (reasoning)', dropped('empty')]
        this.#say(`${id} ${said?.length ?? 0}`, author, [reasoning(said ?? '', { metadata: data['metadata'] })])
        return ['part (reasoning)', kept]
      }
      case 'tool':
        return ['part (tool)', this.#takeCall(data, id, author)]
      case 'file':
        return ['part (file)', this.#takeFile(data, id, author)]
      case 'step-finish':
        this.#chain.spend(id, usageOf(data), author.model)
        return ['part (step-finish)', merged('usage')]
      case 'step-start':
      case 'snapshot':
      case 'patch':
      case 'retry':
        return ['part (step)', dropped('bookkeeping')]
      case 'agent':
      case 'subtask':
      case 'compaction':
        this.#custom(id, `part.${data['type']}`, data)
        return ['part (agent)', kept]
      default:
        this.#custom(id, `part.${String(data['type'])}`, data)
        return ['other', kept]
    }
  }

  /** A user cannot think or call, whatever a row says. */
  #say(id: string, author: Author, content: Content[]): void {
    const { role, model } = author
    const isOfUser = role === 'user' && content.every(({ type }) => type === 'text' || type === 'image')
    const message: Message = isOfUser ? { role, content } : { role: 'assistant', content, ...model }
    this.#chain.say(id, message)
  }

  #takeCall(data: Values, id: string, author: Author): Fate {
    const call = callId(data['callID'], id)
    const state = values(data['state'])
    const input = inputOf(state['input'])
    this.#chain.at(time(values(state['time'])['start']))
    const proof = values(data['metadata'])
    this.#say(`${id} ${JSON.stringify(input).length}`, author, [
      toolUse({
        id: call,
        name: name(data['tool'], 'unknown'),
        input,
        ...(Object.keys(proof).length > 0 && { proof }),
      }),
    ])
    this.#chain.at(time(values(state['time'])['end']))
    const { status, output, error } = state
    if (status !== 'completed' && status !== 'error') return kept
    const images = list(state['attachments']).map((file) => fileContent(values(file)))
    const said = words(status === 'error' ? error : output) ?? ''
    const result = toolResult({
      toolUseId: call,
      ...(status === 'error' && { isError: true }),
      content: images.length === 0 ? said : [text(said), ...images],
    })
    this.#chain.say(`${id} result`, { role: 'tool', content: [result] })
    return kept
  }

  #takeFile(data: Values, id: string, author: Author): Fate {
    if (String(data['mime']).startsWith('image/')) {
      this.#say(id, author, [fileContent(data)])
      return kept
    }
    // The text of a file is a part of its own.
    this.#custom(id, 'part.file', data)
    return kept
  }

  #compact(summary: string, id: string): Fate {
    const firstKept = this.#custom(`${id} boundary`, 'compaction', {})
    const compaction = { summary, firstKeptEntryId: '', tokensBefore: 0 }
    this.#chain.add(`${id} ${summary.length}`, { type: 'compaction', compaction }, { names: { firstKept } })
    return kept
  }

  #custom(id: string, type: string, data: Values): string {
    return this.#chain.add(id, { type: 'custom', custom: { customType: `opencode.${type}`.slice(0, 100), data } })
  }
}

const noAuthor: Author = { role: 'user', model: {}, isSummary: false, error: undefined, before: null }

function modelOf(provider: unknown, model: unknown): Author['model'] {
  return {
    ...(words(provider) !== undefined && { provider: name(provider, '') }),
    ...(words(model) !== undefined && { model: name(model, '') }),
  }
}

function errorOf(error: unknown): string | undefined {
  const { name: kind, data, message } = values(error)
  return words(values(data)['message']) ?? words(message) ?? words(kind)
}

function fileContent(file: Values): Content {
  const url = words(file['url'])
  if (String(file['mime']).startsWith('image/')) return imageFromUrl(url)
  return text(`[A file: ${name(file['filename'], 'without a name')}]`)
}

/** Their input does not include what was read from or written to a cache, their output not the thinking. */
function usageOf(data: Values): Usage | undefined {
  const { tokens, cost } = data
  const { input, output, reasoning: thought, cache } = values(tokens)
  const { read, write } = values(cache)
  return usage({
    inputTokens: sum(input, read, write),
    outputTokens: sum(output, thought),
    cacheReadTokens: count(read),
    cacheWriteTokens: count(write),
    reasoningTokens: count(thought),
    cost: count(cost),
  })
}
