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

/** The lines of `~/.claude/projects/<project>/<session>.jsonl`. */
export const claudeCodeLines = [
  { line: 'user', fate: 'kept', becomes: 'a user message, or the results of tool calls' },
  { line: 'user (isMeta)', fate: 'kept', becomes: 'a message with role `custom`: the program said it, not the user' },
  { line: 'user (isCompactSummary)', fate: 'kept', becomes: 'a compaction with its summary' },
  { line: 'assistant', fate: 'kept', becomes: 'an assistant message with one block, as in the source' },
  {
    line: 'system (compact_boundary)',
    fate: 'kept',
    becomes: 'a `custom` entry, where the kept part of the context begins',
  },
  { line: 'system', fate: 'kept', becomes: 'a `custom` entry if it has text' },
  { line: 'system (no text)', fate: 'bookkeeping', becomes: 'durations and hooks' },
  { line: 'attachment (file)', fate: 'kept', becomes: 'a message with role `custom`: the content of the file' },
  { line: 'attachment (queued_command)', fate: 'kept', becomes: 'a user message' },
  {
    line: 'attachment (prompt)',
    fate: 'harness',
    becomes: 'system prompt, tools, skills, agents, environment, reminders',
  },
  { line: 'attachment', fate: 'kept', becomes: 'a `custom` entry' },
  { line: 'summary', fate: 'attributes', becomes: 'the name of the session' },
  {
    line: 'summary (of another session)',
    fate: 'bookkeeping',
    becomes: 'older versions wrote it into the file that was open',
  },
  { line: 'custom-title', fate: 'attributes', becomes: 'the name of the session' },
  { line: 'ai-title', fate: 'attributes', becomes: 'the name of the session, unless the user gave one' },
  { line: 'cost-state', fate: 'usage', becomes: 'a `usage` record with what it cost since the last one' },
  { line: 'api-request', fate: 'repeats', becomes: 'the request as it was sent: messages, prompts and tools again' },
  { line: 'queue-operation', fate: 'queued', becomes: 'a prompt that waited' },
  {
    line: 'file-history-snapshot',
    fate: 'bookkeeping',
    becomes: 'names of backups of files, which are in a folder of the program',
  },
  { line: 'state', fate: 'bookkeeping', becomes: 'last prompt, mode, progress, tags and other state' },
  { line: 'permission-mode', fate: 'permission', becomes: 'the permission mode' },
  { line: 'other', fate: 'kept', becomes: 'a `custom` entry with the whole line' },
] as const satisfies readonly LineKind[]

type Kind = (typeof claudeCodeLines)[number]['line']

/** Attachments that say what the program told the model about itself. */
const harness = new Set([
  'agent_listing_delta',
  'critical_system_reminder',
  'date',
  'date_change',
  'deferred_tools_delta',
  'environment',
  'mcp_instructions_delta',
  'model',
  'nested_memory',
  'output_style',
  'plan_mode',
  'plan_mode_exit',
  'prompt_snapshot',
  'remote_session_change',
  'session_context',
  'skill_listing',
  'task_reminder',
  'todo_reminder',
  'token_usage',
  'total_tokens_reminder',
  'ultrathink_effort',
])

const state = new Set([
  'agent-color',
  'agent-name',
  'agent-setting',
  'atis-latch',
  'attribution-snapshot',
  'content-replacement',
  'last-prompt',
  'mode',
  'pr-link',
  'progress',
  'speculation-accept',
  'tag',
  'task-summary',
  'tools-used',
  'worktree-state',
])

export class ClaudeCodeReader implements SourceReader {
  readonly #chain = new Chain()
  /** The entry in which a line ended up; for a line without one, that of the nearest line before it. */
  readonly #entries = new Map<string, string | null>()
  readonly #seen = new Map<string, string>()
  /**
   * The blocks of an answer are lines of their own, and each result names the block with its call as its parent. Our
   * path has them in a row: what follows a block follows the last line of its answer.
   */
  readonly #answers = new Map<string, { last: string; open: Set<string> }>()
  readonly #answerOf = new Map<string, string>()
  readonly #callAnswers = new Map<string, string>()
  readonly #spent = new Map<string, Usage>()
  #cost = 0
  #hasOwnTitle = false
  #leaf: string | null = null
  readonly #isSubagent: boolean
  #boundary: { entry: string; keptFrom: string | undefined; tokens: number } | undefined

  /** In the file of a subagent, every line is part of a side chain. */
  constructor({ isSubagent }: { isSubagent: boolean }) {
    this.#isSubagent = isSubagent
  }

  get leaf(): string | null {
    return this.#leaf
  }

  get started(): string | undefined {
    return this.#chain.started
  }

  take(line: Read): Taken {
    this.#chain.at(time(line.value['timestamp']))
    const uuid = words(line.value['uuid'])
    if (uuid !== undefined && this.#seen.has(uuid)) {
      const isSame = this.#seen.get(uuid) === line.hash
      if (isSame) return { kind: this.#kindOf(line.value), fate: dropped('duplicate'), lines: [] }
    }
    if (uuid !== undefined) this.#seen.set(uuid, line.hash)
    const parent = this.#parentOf(line.value)
    this.#chain.tip = parent
    const [kind, fate] = this.#takeKind(line, uuid ?? line.hash)
    if (uuid !== undefined) this.#entries.set(uuid, this.#chain.tip)
    if (this.#chain.tip !== parent && (this.#isSubagent || line.value['isSidechain'] !== true))
      this.#leaf = this.#chain.tip
    return { kind, fate, lines: this.#chain.take() }
  }

  #kindOf(value: Values): Kind {
    const type = value['type']
    return claudeCodeLines.find(({ line }) => line === type)?.line ?? 'other'
  }

  /** Lines without a parent member are beside the conversation. */
  #parentOf(value: Values): string | null {
    const { parentUuid, logicalParentUuid } = value
    const id = words(parentUuid) ?? words(logicalParentUuid)
    if (id === undefined) return parentUuid === null ? null : this.#leaf
    const entry = this.#entries.get(id)
    if (entry === undefined) return this.#leaf
    const answer = entry === null ? undefined : this.#answerOf.get(entry)
    return answer === undefined ? entry : (this.#answers.get(answer)?.last ?? entry)
  }

  #takeKind(line: Read, id: string): [Kind, Fate] {
    const { value } = line
    switch (value['type']) {
      case 'user':
        return this.#takeUser(value, id)
      case 'assistant':
        return this.#takeAssistant(value, id)
      case 'system':
        return this.#takeSystem(value, id)
      case 'attachment':
        return this.#takeAttachment(value, id)
      case 'summary': {
        const leaf = words(value['leafUuid'])
        if (leaf !== undefined && !this.#seen.has(leaf)) return ['summary (of another session)', dropped('bookkeeping')]
        return ['summary', this.#title(words(value['summary']), id)]
      }
      case 'custom-title':
        this.#hasOwnTitle = true
        return ['custom-title', this.#title(words(value['customTitle']), id)]
      case 'ai-title':
        return ['ai-title', this.#hasOwnTitle ? merged('attributes') : this.#title(words(value['aiTitle']), id)]
      case 'cost-state':
        return ['cost-state', this.#takeCost(value, id)]
      case 'api-request':
      case 'api-request-blob':
      case 'api-request-shape':
        return ['api-request', merged('repeats')]
      case 'queue-operation':
        return ['queue-operation', dropped('queued')]
      case 'file-history-snapshot':
      case 'file-history-delta':
        return ['file-history-snapshot', dropped('bookkeeping')]
      case 'permission-mode':
        return ['permission-mode', dropped('permission')]
      default:
        if (state.has(String(value['type']))) return ['state', dropped('bookkeeping')]
        this.#custom(id, String(value['type']), value)
        return ['other', kept]
    }
  }

  #takeUser(value: Values, id: string): [Kind, Fate] {
    const blocks = contentOf(values(value['message'])['content'], id)
    if (value['isCompactSummary'] === true) return ['user (isCompactSummary)', this.#compact(blocks, id)]
    const results = blocks.filter((block) => block.type === 'tool_result')
    const said = blocks.filter((block) => block.type !== 'tool_result')
    if (blocks.length === 0 || (results.length === 0 && isBlank(said))) return ['user', dropped('empty')]
    for (const [index, result] of results.entries()) this.#addResult(result, index === 0 ? id : `${id} r${index}`)
    if (said.length === 0) return ['user', kept]
    if (value['isVisibleInTranscriptOnly'] === true) {
      this.#custom(`${id} said`, 'transcript', { content: said })
      return ['user', kept]
    }
    const isMeta = value['isMeta'] === true
    this.#chain.say(results.length > 0 ? `${id} said` : id, { role: isMeta ? 'custom' : 'user', content: said })
    return [isMeta ? 'user (isMeta)' : 'user', kept]
  }

  #addResult(block: Content & { type: 'tool_result' }, id: string): void {
    const call = block.toolResult.toolUseId
    const answer = this.#answers.get(this.#callAnswers.get(call) ?? '')
    const isOpen = answer?.open.delete(call) === true
    const parent = isOpen ? answer.last : this.#chain.tip
    const key = this.#chain.say(id, { role: 'tool', content: [block] }, { parent })
    if (!isOpen) return
    answer.last = key
    this.#answerOf.set(key, this.#callAnswers.get(call) as string)
  }

  #takeAssistant(value: Values, id: string): [Kind, Fate] {
    const message = values(value['message'])
    const blocks = list(message['content']).map((block, index) => answerBlock(block, `${id} ${index}`))
    const plain = words(message['content'])
    if (plain !== undefined) blocks.push(text(plain))
    if (blocks.length === 0 || isBlank(blocks)) return ['assistant', dropped('empty')]
    const model = name(message['model'], 'unknown')
    if (model === '<synthetic>') {
      this.#custom(id, 'synthetic', { content: blocks })
      return ['assistant', kept]
    }
    const answer = words(message['id']) ?? id
    const spent = this.#usageOf(answer, values(message['usage']), value['costUSD'])
    const stopReason = words(message['stop_reason'])?.slice(0, 60)
    const said: Message = {
      role: 'assistant',
      content: blocks,
      provider: 'anthropic',
      model,
      ...(spent && { usage: spent }),
      ...(stopReason !== undefined && { stopReason }),
    }
    const key = this.#chain.say(id, said)
    const group = this.#answers.get(answer) ?? { last: key, open: new Set<string>() }
    group.last = key
    this.#answers.set(answer, group)
    this.#answerOf.set(key, answer)
    for (const block of blocks) {
      if (block.type !== 'tool_use') continue
      group.open.add(block.toolUse.id)
      this.#callAnswers.set(block.toolUse.id, answer)
    }
    return ['assistant', kept]
  }

  /** The lines of one answer all have its usage. Older versions wrote its cost beside it, newer ones have a total. */
  #usageOf(answer: string, counts: Values, cost: unknown): Usage | undefined {
    const { input_tokens: input, cache_read_input_tokens: read, cache_creation_input_tokens: write } = counts
    const now = usage({
      inputTokens: sum(input, read, write),
      outputTokens: count(counts['output_tokens']),
      cacheReadTokens: count(read),
      cacheWriteTokens: count(write),
      cost: count(cost),
    })
    const before = this.#spent.get(answer)
    if (now) this.#spent.set(answer, now)
    return usageSince(before, now)
  }

  #takeSystem(value: Values, id: string): [Kind, Fate] {
    const { subtype, content, compactMetadata } = value
    if (subtype === 'compact_boundary') {
      const about = values(compactMetadata)
      const keptFrom = words(values(about['preservedSegment'])['headUuid'])
      const entry = this.#custom(id, 'compact_boundary', { content, compactMetadata: about })
      this.#boundary = { entry, keptFrom, tokens: count(about['preTokens']) ?? 0 }
      return ['system (compact_boundary)', kept]
    }
    if (words(content) === undefined) return ['system (no text)', dropped('bookkeeping')]
    this.#custom(id, 'system', { subtype, content })
    return ['system', kept]
  }

  /** A compaction needs a place before it; without a boundary, the summary is a message. */
  #compact(blocks: readonly Content[], id: string): Fate {
    const summary = blocks.flatMap((block) => (block.type === 'text' ? [block.text.content] : [])).join('\n')
    if (summary === '') return dropped('empty')
    const boundary = this.#boundary
    if (boundary?.entry !== this.#chain.tip) {
      this.#chain.say(id, { role: 'custom', content: [text(summary)] })
      return kept
    }
    const { entry, tokens, keptFrom } = boundary
    const firstKept = this.#onPath(keptFrom === undefined ? undefined : this.#entries.get(keptFrom), entry) ?? entry
    this.#chain.add(
      id,
      { type: 'compaction', compaction: { summary, firstKeptEntryId: '', tokensBefore: tokens } },
      { names: { firstKept } },
    )
    return kept
  }

  #onPath(wanted: string | null | undefined, leaf: string): string | undefined {
    if (typeof wanted !== 'string') return undefined
    for (let step: string | null = leaf; step !== null; step = this.#chain.parentOf(step)) {
      if (step === wanted) return wanted
    }
    return undefined
  }

  #takeAttachment(value: Values, id: string): [Kind, Fate] {
    const attachment = values(value['attachment'])
    const type = String(attachment['type'])
    if (type === 'file') {
      const content = fileContent(attachment)
      if (content) {
        this.#chain.say(id, { role: 'custom', content })
        return ['attachment (file)', kept]
      }
    }
    if (type === 'queued_command') {
      const content = contentOf(attachment['prompt'], id)
      if (content.length > 0) {
        this.#chain.say(id, { role: 'user', content })
        return ['attachment (queued_command)', kept]
      }
    }
    if (harness.has(type)) return ['attachment (prompt)', dropped('harness')]
    this.#custom(id, `attachment.${type}`, attachment)
    return ['attachment', kept]
  }

  #takeCost(value: Values, id: string): Fate {
    const total = count(value['totalCostUSD'])
    if (total === undefined) return dropped('bookkeeping')
    const cost = total < this.#cost ? total : total - this.#cost
    this.#cost = total
    this.#chain.spend(`${id} cost`, usage({ cost }), { provider: 'anthropic' })
    return merged('usage')
  }

  #title(title: string | undefined, id: string): Fate {
    if (title === undefined) return dropped('empty')
    this.#chain.note(id, { type: 'session_info', sessionInfo: { name: title.slice(0, 500) } })
    return merged('attributes')
  }

  #custom(id: string, type: string, data: Values): string {
    return this.#chain.add(id, { type: 'custom', custom: { customType: `claude-code.${type}`.slice(0, 100), data } })
  }
}

/** Content of the user: text, images, results of tools. */
function contentOf(content: unknown, id: string): Content[] {
  if (typeof content === 'string') return content === '' ? [] : [text(content)]
  return list(content).map((block, index) => {
    const { type, text: said, source, tool_use_id, is_error, content: inner } = values(block)
    if (type === 'text' && typeof said === 'string') return text(said)
    if (type === 'image') return imageOf(source)
    if (type !== 'tool_result') return unknownBlock(block)
    return toolResult({
      toolUseId: callId(tool_use_id, `${id} ${index}`),
      ...(is_error === true && { isError: true }),
      content: typeof inner === 'string' ? inner : contentOf(inner, id).filter((each) => each.type !== 'tool_result'),
    })
  })
}

function imageOf(source: unknown): Content {
  const { type, data, media_type: mediaType, url } = values(source)
  return type === 'url' ? imageFromUrl(url) : image(data, mediaType)
}

function answerBlock(block: unknown, id: string): Content {
  const { type, text: said, thinking, signature, data, id: call, name: tool, input } = values(block)
  if (type === 'text' && typeof said === 'string') return text(said)
  if (type === 'thinking') return reasoning(typeof thinking === 'string' ? thinking : '', { signature })
  if (type === 'redacted_thinking') return reasoning('', { redacted: data })
  if (type === 'tool_use') return toolUse({ id: callId(call, id), name: name(tool, 'unknown'), input: inputOf(input) })
  return unknownBlock(block)
}

function fileContent(attachment: Values): Content[] | undefined {
  const content = values(attachment['content'])
  const file = values(content['file'])
  const path = name(attachment['displayPath'] ?? attachment['filename'], 'a file')
  if (content['type'] === 'image') return [text(`The file ${path}:`), image(file['base64'], file['type'])]
  const said = words(file['content'])
  return said === undefined ? undefined : [text(`The file ${path}:\n${said}`)]
}

/** What the first lines say about the session. Files of subagents are named after the agent. */
export function claudeCodeSession(lines: readonly Values[], fileName: string): SourceSession | undefined {
  const agent = /^agent-(.+)\.jsonl$/.exec(fileName)?.[1]
  const stem = fileName.replace(/\.jsonl$/, '')
  const said = lines.map((line) => words(line['sessionId'])).find((each) => each !== undefined)
  const own = said ?? (uuid.test(stem) ? stem : undefined)
  if (own === undefined) return undefined
  const cwd = lines.map((line) => words(line['cwd'])).find((each) => each !== undefined)
  // A session that was resumed in older versions copied the lines of the other one, with its id.
  const id = agent === undefined ? (uuid.test(stem) ? stem : own) : `${own} ${agent}`
  return { id, ...(cwd !== undefined && { cwd }), ...(agent !== undefined && { parentId: own, subagent: true }) }
}

const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i
