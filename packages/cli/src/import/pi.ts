import { text, type Content, type Message, type Usage } from '@tapetree/session'
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
import type { SourceLine } from './source-lines.ts'
import {
  callId,
  count,
  image,
  inputOf,
  list,
  name,
  reasoning,
  sum,
  time,
  toolResult,
  toolUse,
  unknownBlock,
  usage,
  values,
  words,
  type Values,
} from './values.ts'

type Read = SourceLine & { type: 'read' }

/** The lines of `~/.pi/agent/sessions/<project>/<time>_<session>.jsonl`. */
export const piLines = [
  { line: 'session', fate: 'attributes', becomes: 'folder, time and origin of the session' },
  { line: 'message (user)', fate: 'kept', becomes: 'a user message' },
  { line: 'message (assistant)', fate: 'kept', becomes: 'an assistant message with model, tokens and cost' },
  { line: 'message (toolResult)', fate: 'kept', becomes: 'the result of a tool call' },
  { line: 'message (bashExecution)', fate: 'kept', becomes: 'a command of the user' },
  { line: 'message (custom)', fate: 'kept', becomes: 'a message with role `custom`' },
  { line: 'message (branchSummary)', fate: 'kept', becomes: 'a message with role `branchSummary`' },
  { line: 'message (compactionSummary)', fate: 'kept', becomes: 'a message with role `compactionSummary`' },
  { line: 'message (system)', fate: 'harness', becomes: 'the system prompt and the tools' },
  { line: 'custom_message', fate: 'kept', becomes: 'a message with role `custom`' },
  { line: 'compaction', fate: 'kept', becomes: 'a compaction; `details` and its system message are left out' },
  { line: 'branch_summary', fate: 'kept', becomes: 'a branch summary' },
  { line: 'custom', fate: 'kept', becomes: 'a `custom` entry of the same type' },
  { line: 'label', fate: 'attributes', becomes: 'a label' },
  { line: 'session_info', fate: 'attributes', becomes: 'the name of the session' },
  { line: 'usage', fate: 'usage', becomes: 'a `usage` record' },
  {
    line: 'model_change',
    fate: 'kept',
    becomes: 'a `custom` entry: messages name their model, and you choose the next one',
  },
  { line: 'thinking_level_change', fate: 'kept', becomes: 'a `custom` entry' },
  { line: 'leaf', fate: 'position', becomes: 'the place where the conversation goes on' },
  { line: 'other', fate: 'kept', becomes: 'a `custom` entry with the whole line' },
] as const satisfies readonly LineKind[]

type Kind = (typeof piLines)[number]['line']

/** Their tree is as ours: every line names its parent. */
export class PiReader implements SourceReader {
  readonly #chain = new Chain()
  /** The entry in which a line ended up. */
  readonly #entries = new Map<string, string | null>()
  readonly #seen = new Map<string, string>()
  /** The entries of a session of the first version, whose lines are known by their numbers. */
  readonly #numbered: (string | null)[] = [null]

  get leaf(): string | null {
    return this.#chain.tip
  }

  get started(): string | undefined {
    return this.#chain.started
  }

  take(line: Read): Taken {
    const { value } = line
    this.#chain.at(time(value['timestamp']))
    if (value['type'] === 'session') return { kind: 'session', fate: merged('attributes'), lines: [] }
    const own = words(value['id'])
    if (own !== undefined && this.#seen.get(own) === line.hash) {
      return { kind: kindOf(value), fate: dropped('duplicate'), lines: [] }
    }
    // Sessions of the first version have no ids and no branches.
    const parent = words(value['parentId'])
    if (value['parentId'] === null) this.#chain.tip = null
    else if (parent !== undefined && this.#entries.has(parent)) this.#chain.tip = this.#entries.get(parent) ?? null
    const [kind, fate] = this.#takeKind(value, own ?? line.hash)
    // What follows a line without an entry, such as a label, follows the entry before it.
    if (own !== undefined) {
      this.#entries.set(own, this.#chain.tip)
      this.#seen.set(own, line.hash)
    } else this.#numbered.push(this.#chain.tip)
    return { kind, fate, lines: this.#chain.take() }
  }

  #takeKind(value: Values, id: string): [Kind, Fate] {
    switch (value['type']) {
      case 'message':
        return this.#takeMessage(values(value['message']), id)
      case 'custom_message':
        return ['custom_message', this.#say(id, { role: 'custom', content: contentOf(value['content']) })]
      case 'compaction':
        return ['compaction', this.#compact(value, id)]
      case 'branch_summary':
        return ['branch_summary', this.#summarizeBranch(value, id)]
      case 'custom': {
        const { customType, data } = value
        this.#chain.add(id, {
          type: 'custom',
          custom: { customType: name(customType, 'pi.custom'), data: inputOf(data) },
        })
        return ['custom', kept]
      }
      case 'label':
        return ['label', this.#label(value, id)]
      case 'session_info': {
        const title = words(value['name'])
        if (title === undefined) return ['session_info', dropped('empty')]
        this.#chain.note(id, { type: 'session_info', sessionInfo: { name: title.slice(0, 500) } })
        return ['session_info', merged('attributes')]
      }
      case 'usage':
        this.#chain.spend(id, usageOf(value['usage']), modelOf(value))
        return ['usage', merged('usage')]
      case 'leaf': {
        const target = words(value['targetId'])
        if (target !== undefined && this.#entries.has(target)) this.#chain.tip = this.#entries.get(target) ?? null
        return ['leaf', merged('position')]
      }
      case 'model_change':
      case 'thinking_level_change':
        this.#custom(id, value)
        return [value['type'], kept]
      default:
        this.#custom(id, value)
        return ['other', kept]
    }
  }

  #takeMessage(message: Values, id: string): [Kind, Fate] {
    const content = contentOf(message['content'])
    switch (message['role']) {
      case 'user':
        return ['message (user)', this.#say(id, { role: 'user', content })]
      case 'assistant':
        return ['message (assistant)', this.#say(id, answerOf(message, id))]
      case 'toolResult': {
        const result = toolResult({
          toolUseId: callId(message['toolCallId'], id),
          ...(message['isError'] === true && { isError: true }),
          content,
        })
        return ['message (toolResult)', this.#say(id, { role: 'tool', content: [result] })]
      }
      case 'bashExecution':
        return ['message (bashExecution)', this.#say(id, commandOf(message))]
      case 'hookMessage':
      case 'custom':
        return ['message (custom)', this.#say(id, { role: 'custom', content })]
      case 'branchSummary':
      case 'compactionSummary': {
        const { role } = message
        const summary = [
          ...content,
          ...(words(message['summary']) === undefined ? [] : [text(String(message['summary']))]),
        ]
        return [`message (${role})`, this.#say(id, { role, content: summary })]
      }
      case 'system':
        return ['message (system)', dropped('harness')]
      default:
        this.#custom(id, { type: 'message', message })
        return ['other', kept]
    }
  }

  #say(id: string, message: Message): Fate {
    if (message.content.length === 0 && !message.bashExecution && !message.error) return dropped('empty')
    this.#chain.say(id, message)
    return kept
  }

  #compact(value: Values, id: string): Fate {
    const summary = words(value['summary'])
    if (summary === undefined) return dropped('empty')
    const { firstKeptEntryId: keptId, firstKeptEntryIndex: index } = value
    const wanted =
      this.#entries.get(String(keptId)) ?? this.#numbered[typeof index === 'number' ? index : -1] ?? undefined
    const firstKept = this.#onPath(wanted) ?? this.#custom(`${id} boundary`, { type: 'compaction' })
    const compaction = { summary, firstKeptEntryId: '', tokensBefore: count(value['tokensBefore']) ?? 0 }
    this.#chain.add(id, { type: 'compaction', compaction }, { names: { firstKept } })
    this.#chain.spend(`${id} usage`, usageOf(value['usage']))
    return kept
  }

  #onPath(wanted: string | undefined): string | undefined {
    for (let step = this.#chain.tip; step !== null; step = this.#chain.parentOf(step)) {
      if (step === wanted) return wanted
    }
    return undefined
  }

  #summarizeBranch(value: Values, id: string): Fate {
    const summary = words(value['summary'])
    if (summary === undefined) return dropped('empty')
    const from = this.#entries.get(String(value['fromId'])) ?? null
    this.#chain.add(id, { type: 'branch_summary', branchSummary: { summary, fromId: null } }, { names: { from } })
    this.#chain.spend(`${id} usage`, usageOf(value['usage']))
    return kept
  }

  #label(value: Values, id: string): Fate {
    const target = this.#entries.get(String(value['targetId']))
    if (typeof target !== 'string') return dropped('empty')
    const label = words(value['label'])?.slice(0, 500) ?? ''
    this.#chain.note(id, { type: 'label', label: { targetId: '', label } }, { target })
    return merged('attributes')
  }

  #custom(id: string, value: Values): string {
    const { type, id: _id, parentId: _parent, timestamp: _time, ...data } = value
    return this.#chain.add(id, { type: 'custom', custom: { customType: `pi.${name(type, 'unknown')}`, data } })
  }
}

function kindOf(value: Values): Kind {
  const role = String(values(value['message'])['role'])
  const kind = value['type'] === 'message' ? `message (${role})` : value['type']
  return piLines.find(({ line }) => line === kind)?.line ?? 'other'
}

function contentOf(content: unknown): Content[] {
  if (typeof content === 'string') return content === '' ? [] : [text(content)]
  return list(content).map((block) => {
    const { type, text: said, data, mimeType } = values(block)
    if (type === 'text' && typeof said === 'string') return text(said)
    return type === 'image' ? image(data, mimeType) : unknownBlock(block)
  })
}

function answerOf(message: Values, id: string): Message {
  const { stopReason, errorMessage } = message
  const spent = usageOf(message['usage'])
  const failure = words(errorMessage)
  return {
    role: 'assistant',
    content:
      typeof message['content'] === 'string'
        ? contentOf(message['content'])
        : list(message['content']).map((block, index) => answerBlock(block, `${id} ${index}`)),
    ...modelOf(message),
    ...(words(message['api']) !== undefined && { api: name(message['api'], '') }),
    ...(spent && { usage: spent }),
    ...(typeof stopReason === 'string' && { stopReason: stopReason.slice(0, 60) }),
    ...(failure !== undefined && { error: { kind: 'imported', message: failure } }),
  }
}

function answerBlock(block: unknown, id: string): Content {
  const { type, text: said, thinking, thinkingSignature, textSignature, thoughtSignature, redacted } = values(block)
  if (type === 'text' && typeof said === 'string') {
    if (textSignature === undefined) return text(said)
    return { type: 'text', text: { content: said, providerMetadata: { imported: { signature: textSignature } } } }
  }
  if (type === 'thinking') {
    return reasoning(typeof thinking === 'string' ? thinking : '', { signature: thinkingSignature, redacted })
  }
  if (type !== 'toolCall') return unknownBlock(block)
  const { id: call, name: tool, arguments: input } = values(block)
  return toolUse({
    id: callId(call, id),
    name: name(tool, 'unknown'),
    input: inputOf(input),
    proof: thoughtSignature,
  })
}

function commandOf(message: Values): Message {
  const { command, output, exitCode, cancelled, truncated, excludeFromContext } = message
  return {
    role: 'bashExecution',
    content: [],
    bashExecution: {
      command: typeof command === 'string' ? command : '',
      output: typeof output === 'string' ? output : '',
      ...(typeof exitCode === 'number' && Number.isInteger(exitCode) && { exitCode }),
      ...(cancelled === true && { cancelled }),
      ...(truncated === true && { truncated }),
      ...(excludeFromContext === true && { excludeFromContext }),
    },
  }
}

function modelOf(value: Values): { provider?: string; model?: string } {
  const { provider, model } = value
  return {
    ...(words(provider) !== undefined && { provider: name(provider, '') }),
    ...(words(model) !== undefined && { model: name(model, '') }),
  }
}

/** Their input does not include what was read from or written to a cache. */
function usageOf(value: unknown): Usage | undefined {
  const { input, output, cacheRead, cacheWrite, reasoning: thought, cost } = values(value)
  return usage({
    inputTokens: sum(input, cacheRead, cacheWrite),
    outputTokens: count(output),
    cacheReadTokens: count(cacheRead),
    cacheWriteTokens: count(cacheWrite),
    reasoningTokens: count(thought),
    cost: count(values(cost)['total']),
  })
}

/** What the first lines say about the session. */
export function piSession(
  lines: readonly Values[],
  parentIdOf: (path: string) => string | undefined,
): SourceSession | undefined {
  const header = lines.find((line) => line['type'] === 'session')
  const id = words(header?.['id'])
  if (id === undefined) return undefined
  const cwd = words(header?.['cwd'])
  const parent = words(header?.['parentSession'])
  const parentId = parent === undefined ? undefined : parentIdOf(parent)
  return { id, ...(cwd !== undefined && { cwd }), ...(parentId !== undefined && { parentId }) }
}
