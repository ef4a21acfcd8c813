import { snakeCase } from '@tapetree/session/util/json'
import type { Content, Message } from '@tapetree/session'
import { fromDisk, toDisk, type MessageEntry } from '@tapetree/session/format'
import type { HookEvents, HookName } from './extension.ts'
import { messageOf } from '../util/message-of.ts'
import { ExtensionFailure } from './extension-failure.ts'

/** An event as a command reads it: names in snake_case, messages as in the log. */
export function eventJson(hook: HookName, event: unknown): Record<string, unknown> {
  return { hook: snakeCase(hook), ...members[hook](event as never) }
}

const members: { [Name in HookName]: (event: HookEvents[Name]) => Record<string, unknown> } = {
  sessionStart: () => ({}),
  sessionEnd: () => ({}),
  beforeAgentStart: ({ runId, prompt, systemPrompt }) => ({ run_id: runId, prompt, system_prompt: systemPrompt }),
  turnStart: turnJson,
  turnEnd: turnJson,
  toolCall: ({ call }) => callJson(call),
  toolResult: ({ call, output: { content, isError = false } }) => ({
    ...callJson(call),
    content: typeof content === 'string' ? content : contentJson(content),
    is_error: isError,
  }),
  context: ({ messages }) => ({ messages: messages.map(messageJson) }),
  beforeCompact: ({ reason, instructions = '' }) => ({ reason, instructions }),
}

/** The output of a command with our names; undefined if it is not a JSON object. The host validates it. */
export function resultOf(hook: HookName, stdout: string): unknown {
  // A command may print other text.
  if (!stdout.trimStart().startsWith('{')) return undefined
  try {
    return readers[hook](JSON.parse(stdout) as Record<string, unknown>)
  } catch (cause) {
    throw new ExtensionFailure('wrong-value', `Its output is not valid JSON: ${messageOf(cause)}`, { cause })
  }
}

type Written = Record<string, unknown>

const readers: Record<HookName, (written: Written) => unknown> = {
  sessionStart: nothing,
  sessionEnd: nothing,
  turnStart: readPrompts,
  turnEnd: readPrompts,
  beforeAgentStart: readPrompts,
  toolCall: (written) => some(written),
  toolResult: ({ content, ...written }) =>
    renamed(
      {
        ...written,
        ...(content !== undefined && { content: Array.isArray(content) ? readContent(content) : content }),
      },
      { is_error: 'isError' },
    ),
  context: ({ messages, ...written }) =>
    some({ ...written, ...(Array.isArray(messages) && { messages: messages.map(readMessage) }) }),
  beforeCompact: (written) => some(written),
}

function turnJson({ runId, turn, systemPrompt }: HookEvents['turnStart']): Record<string, unknown> {
  return { run_id: runId, turn, system_prompt: systemPrompt }
}

function readPrompts(written: Written): unknown {
  return renamed(written, { system_prompt: 'systemPrompt' })
}

function nothing(): undefined {
  return undefined
}

/** `{}` means no result. */
function some(written: Written): Written | undefined {
  return Object.keys(written).length === 0 ? undefined : written
}

function renamed(written: Written, names: Record<string, string>): Written | undefined {
  return some(Object.fromEntries(Object.entries(written).map(([name, value]) => [names[name] ?? name, value])))
}

function callJson({ id, name, input }: HookEvents['toolCall']['call']): Record<string, unknown> {
  return { tool_use_id: id, tool_name: name, tool_input: input }
}

const identity = { id: '-', timestamp: '1970-01-01T00:00:00.000Z' }

function messageJson(message: Message): unknown {
  return toDisk({ type: 'message', message }, identity)['message']
}

function contentJson(content: Content[]): unknown {
  return (messageJson({ role: 'user', content }) as { content: unknown }).content
}

function readMessage(written: unknown): Message {
  return (fromDisk({ ...identity, type: 'message', message: written }, 0) as MessageEntry).message
}

function readContent(written: unknown[]): Content[] {
  return readMessage({ role: 'user', content: written }).content
}
