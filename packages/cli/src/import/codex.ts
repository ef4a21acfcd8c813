import { text, type Content, type Usage } from '@tapetree/session'
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
  imageFromUrl,
  inputOf,
  isBlank,
  list,
  name,
  reasoning,
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

/** The lines of `~/.codex/sessions/<year>/<month>/<day>/rollout-<time>-<session>.jsonl`. */
export const codexLines = [
  { line: 'session_meta', fate: 'attributes', becomes: 'folder, time and provider; its instructions are left out' },
  { line: 'turn_context', fate: 'attributes', becomes: 'the model of the messages that follow' },
  { line: 'response_item (message of the user)', fate: 'kept', becomes: 'a user message' },
  { line: 'response_item (message of the model)', fate: 'kept', becomes: 'an assistant message' },
  {
    line: 'response_item (instructions)',
    fate: 'harness',
    becomes: 'messages of the developer, environment, AGENTS.md',
  },
  { line: 'response_item (reasoning)', fate: 'kept', becomes: 'reasoning; what is encrypted is kept and never sent' },
  { line: 'response_item (call)', fate: 'kept', becomes: 'a tool call' },
  { line: 'response_item (output)', fate: 'kept', becomes: 'the result of a tool call' },
  { line: 'response_item (other)', fate: 'kept', becomes: 'a `custom` entry' },
  { line: 'response_item (ghost_snapshot)', fate: 'bookkeeping', becomes: 'a commit with a backup of the files' },
  {
    line: 'compacted',
    fate: 'kept',
    becomes: 'a compaction; the list of messages that replaced the history repeats them',
  },
  {
    line: 'compacted (encrypted)',
    fate: 'kept',
    becomes: 'a `custom` entry: only the provider can read the summary, so the messages before it stay in the context',
  },
  { line: 'event_msg (token_count)', fate: 'usage', becomes: 'a `usage` record with the tokens since the last one' },
  { line: 'event_msg (item)', fate: 'repeats', becomes: 'messages, thinking and calls again, for the screen' },
  {
    line: 'event_msg (thread_rolled_back)',
    fate: 'position',
    becomes: 'a branch: the conversation goes on before those turns',
  },
  { line: 'event_msg (thread_name_updated)', fate: 'attributes', becomes: 'the name of the session' },
  { line: 'event_msg (progress)', fate: 'bookkeeping', becomes: 'beginnings and ends of turns, settings' },
  { line: 'event_msg (approval)', fate: 'permission', becomes: 'requests for permission' },
  { line: 'event_msg (other)', fate: 'kept', becomes: 'a `custom` entry, such as an error' },
  { line: 'token_usage_record', fate: 'repeats', becomes: 'the numbers of `token_count` again' },
  { line: 'world_state', fate: 'harness', becomes: 'what the program knows about the machine' },
  { line: 'other', fate: 'kept', becomes: 'a `custom` entry with the whole line' },
] as const satisfies readonly LineKind[]

type Kind = (typeof codexLines)[number]['line']

/** Events that repeat items: each is in the file once more as it went to the model. */
const repeated = new Set([
  'agent_message',
  'agent_reasoning',
  'agent_reasoning_raw_content',
  'agent_reasoning_section_break',
  'context_compacted',
  'dynamic_tool_call_request',
  'dynamic_tool_call_response',
  'exec_command_begin',
  'exec_command_end',
  'image_generation_begin',
  'image_generation_end',
  'item_completed',
  'item_started',
  'mcp_tool_call_begin',
  'mcp_tool_call_end',
  'patch_apply_begin',
  'patch_apply_end',
  'user_message',
  'view_image_tool_call',
  'web_search_begin',
  'web_search_end',
])

const progress = new Set([
  'background_event',
  'deprecation_notice',
  'mcp_startup_complete',
  'mcp_startup_update',
  'plan_update',
  'session_configured',
  'shutdown_complete',
  'stream_error',
  'task_complete',
  'task_started',
  'thread_goal_updated',
  'thread_settings_applied',
  'turn_aborted',
  'turn_complete',
  'turn_diff',
  'turn_started',
  'warning',
])

/** User messages that the program wrote. */
const instructions =
  /^\s*(?:<(?:environment_context|user_instructions|permissions|skills|apps_instructions|collaboration_mode|turn_aborted|subagent_notification)[\s>_]|# AGENTS\.md instructions)/

/** Their lines have no ids and no parents: one follows the other. */
export class CodexReader implements SourceReader {
  readonly #chain = new Chain()
  #provider = 'openai'
  #model = 'unknown'
  #spent: Usage | undefined
  #hasHeader = false
  /** The entries before each user message, for turns that are taken back. */
  #turns: (string | null)[] = []

  get leaf(): string | null {
    return this.#chain.tip
  }

  get started(): string | undefined {
    return this.#chain.started
  }

  take(line: Read): Taken {
    const { value, hash } = line
    this.#chain.at(time(value['timestamp']))
    const [kind, fate] = this.#takeKind(value, hash)
    return { kind, fate, lines: this.#chain.take() }
  }

  #takeKind(value: Values, id: string): [Kind, Fate] {
    const payload = values(value['payload'])
    switch (value['type']) {
      case 'session_meta':
        // A fork repeats the header of the session that it was copied from.
        if (!this.#hasHeader) this.#provider = name(payload['model_provider'], 'openai')
        this.#hasHeader = true
        return ['session_meta', merged('attributes')]
      case 'turn_context':
        this.#model = name(payload['model'], this.#model)
        return ['turn_context', merged('attributes')]
      case 'response_item':
        return this.#takeItem(payload, id)
      case 'compacted':
        return [this.#compact(payload, id), kept]
      case 'event_msg':
        return this.#takeEvent(payload, id)
      case 'token_usage_record':
        return ['token_usage_record', merged('repeats')]
      case 'world_state':
        return ['world_state', dropped('harness')]
      default:
        // The first versions wrote items without an envelope.
        if (value['type'] === 'message' || value['type'] === 'reasoning' || 'call_id' in value) {
          return this.#takeItem(value, id)
        }
        if (value['type'] === undefined && value['id'] !== undefined && value['timestamp'] !== undefined) {
          return ['session_meta', merged('attributes')]
        }
        this.#custom(id, String(value['type']), value)
        return ['other', kept]
    }
  }

  #takeItem(item: Values, id: string): [Kind, Fate] {
    const { type } = item
    switch (type) {
      case 'message':
        return this.#takeMessage(item, id)
      case 'reasoning':
        return ['response_item (reasoning)', this.#think(item, id)]
      case 'function_call':
      case 'custom_tool_call':
      case 'local_shell_call':
      case 'web_search_call':
      case 'tool_search_call': {
        this.#answer(id, [
          toolUse({
            id: callId(item['call_id'] ?? item['id'], id),
            name: name(item['name'], type.replace(/_call$/, '')),
            input: inputOf(item['arguments'] ?? item['input'] ?? item['action'] ?? {}),
          }),
        ])
        return ['response_item (call)', kept]
      }
      case 'function_call_output':
      case 'custom_tool_call_output':
      case 'tool_search_output':
      case 'mcp_tool_call_output': {
        const output = outputOf(item['output'] ?? item['tools'])
        const result = toolResult({ toolUseId: callId(item['call_id'], id), ...output })
        this.#chain.say(id, { role: 'tool', content: [result] })
        return ['response_item (output)', kept]
      }
      case 'ghost_snapshot':
        return ['response_item (ghost_snapshot)', dropped('bookkeeping')]
      default:
        this.#custom(id, `response_item.${name(type, 'unknown')}`, item)
        return ['response_item (other)', kept]
    }
  }

  #takeMessage(item: Values, id: string): [Kind, Fate] {
    const { role } = item
    const content = contentOf(item['content'])
    const first = content[0]
    const isInstruction = first?.type === 'text' && instructions.test(first.text.content)
    if (role === 'developer' || role === 'system' || (role === 'user' && isInstruction)) {
      return ['response_item (instructions)', dropped('harness')]
    }
    const kind = role === 'assistant' ? 'response_item (message of the model)' : 'response_item (message of the user)'
    if (isBlank(content)) return [kind, dropped('empty')]
    if (role === 'assistant') this.#answer(id, content)
    else {
      this.#turns.push(this.#chain.tip)
      this.#chain.say(id, { role: 'user', content })
    }
    return [kind, kept]
  }

  #think(item: Values, id: string): Fate {
    const said = [...list(item['summary']), ...list(item['content'])].flatMap(
      (part) => words(values(part)['text']) ?? [],
    )
    const { encrypted_content: encrypted } = item
    if (said.length === 0 && words(encrypted) === undefined) return dropped('empty')
    this.#answer(id, [reasoning(said.join('\n\n'), { encrypted })])
    return kept
  }

  #answer(id: string, content: Content[]): void {
    this.#chain.say(id, { role: 'assistant', content, provider: this.#provider, model: this.#model })
  }

  #compact(payload: Values, id: string): Kind {
    const replacement = list(payload['replacement_history']).map(values)
    // The provider made a summary that only it can read: the conversation stays as it was.
    const isSealed = replacement.some((item) => words(item['encrypted_content']) !== undefined)
    const last = replacement.flatMap((item) => contentOf(item['content'])).findLast((block) => block.type === 'text')
    const summary = words(payload['message']) ?? (last?.type === 'text' && !isSealed ? last.text.content : undefined)
    if (summary === undefined) {
      this.#custom(id, 'compacted', payload)
      return isSealed ? 'compacted (encrypted)' : 'compacted'
    }
    const firstKept = this.#custom(`${id} boundary`, 'compacted', {})
    this.#chain.add(
      id,
      {
        type: 'compaction',
        compaction: { summary, firstKeptEntryId: '', tokensBefore: this.#spent?.totalTokens ?? 0 },
      },
      { names: { firstKept } },
    )
    return 'compacted'
  }

  #takeEvent(payload: Values, id: string): [Kind, Fate] {
    const type = String(payload['type'])
    if (type === 'token_count') return ['event_msg (token_count)', this.#spend(payload, id)]
    if (type === 'thread_rolled_back') {
      const turns = Math.min(count(payload['num_turns']) ?? 0, this.#turns.length)
      if (turns > 0) this.#chain.tip = this.#turns.splice(-turns)[0] ?? null
      return ['event_msg (thread_rolled_back)', merged('position')]
    }
    if (type === 'thread_name_updated') {
      const title = words(payload['thread_name'])
      if (title === undefined) return ['event_msg (thread_name_updated)', dropped('empty')]
      this.#chain.note(id, { type: 'session_info', sessionInfo: { name: title.slice(0, 500) } })
      return ['event_msg (thread_name_updated)', merged('attributes')]
    }
    if (repeated.has(type)) return ['event_msg (item)', merged('repeats')]
    if (progress.has(type)) return ['event_msg (progress)', dropped('bookkeeping')]
    if (type.endsWith('_approval_request') || type.startsWith('request_')) {
      return ['event_msg (approval)', dropped('permission')]
    }
    this.#custom(id, `event.${type}`, payload)
    return ['event_msg (other)', kept]
  }

  #spend(payload: Values, id: string): Fate {
    const total = values(values(payload['info'])['total_token_usage'])
    const now = usage({
      inputTokens: count(total['input_tokens']),
      outputTokens: count(total['output_tokens']),
      cacheReadTokens: count(total['cached_input_tokens']),
      cacheWriteTokens: count(total['cache_write_input_tokens']),
      reasoningTokens: count(total['reasoning_output_tokens']),
      totalTokens: count(total['total_tokens']),
    })
    if (!now) return dropped('empty')
    const spent = usageSince(this.#spent, now)
    this.#spent = now
    this.#chain.spend(id, spent, { provider: this.#provider, model: this.#model })
    return merged('usage')
  }

  #custom(id: string, type: string, data: Values): string {
    return this.#chain.add(id, { type: 'custom', custom: { customType: `codex.${type}`.slice(0, 100), data } })
  }
}

function contentOf(content: unknown): Content[] {
  if (typeof content === 'string') return content === '' ? [] : [text(content)]
  return list(content).map((part) => {
    const { type, text: said, image_url: url } = values(part)
    if (typeof said === 'string') return text(said)
    if (type !== 'input_image') return unknownBlock(part)
    return imageFromUrl(typeof url === 'string' ? url : values(url)['url'])
  })
}

/** Text, a list of parts, or an object with text in it. */
function outputOf(output: unknown): { content: string | Content[]; isError?: boolean } {
  if (typeof output === 'string') return textOfJson(output) ?? { content: output }
  if (Array.isArray(output)) return { content: contentOf(output) }
  const { content, success, body } = values(output)
  const said = content ?? body
  return {
    ...(success === false && { isError: true }),
    content: typeof said === 'string' ? said : Array.isArray(said) ? contentOf(said) : JSON.stringify(output ?? ''),
  }
}

/** Older versions wrote the output of a command as JSON with its exit code. */
function textOfJson(output: string): { content: string; isError?: boolean } | undefined {
  if (!output.startsWith('{"output":')) return undefined
  const { output: said, metadata } = inputOf(output)
  const exitCode = values(metadata)['exit_code']
  if (words(said) === undefined) return undefined
  if (typeof exitCode !== 'number' || exitCode === 0) return { content: String(said) }
  return { isError: true, content: `${String(said)}\nExit code: ${exitCode}` }
}

/** What the first lines say about the session. */
export function codexSession(lines: readonly Values[], fileName: string): SourceSession | undefined {
  const meta = lines.find((line) => line['type'] === 'session_meta')
  const header = meta ? values(meta['payload']) : (lines[0] ?? {})
  const id = words(header['id']) ?? /([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\.jsonl$/.exec(fileName)?.[1]
  if (id === undefined) return undefined
  const cwd = words(header['cwd'])
  const { subagent } = values(header['source'])
  const spawned = words(values(values(subagent)['thread_spawn'])['parent_thread_id'])
  const parentId = spawned ?? words(header['forked_from_id'])
  return {
    id,
    ...(cwd !== undefined && { cwd }),
    ...(parentId !== undefined && { parentId }),
    ...(spawned !== undefined && { subagent: true }),
  }
}
