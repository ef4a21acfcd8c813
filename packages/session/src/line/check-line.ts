import { camelCase, isObject } from '../util/json.ts'
import type { Header, NodeEntry } from './entry.ts'
import { SessionError } from '../errors.ts'
import type { EntryDraft, Line, RecordDraft } from './line.ts'
import { messageRoles, text, type Content, type Message } from './message.ts'
import type { UnknownRecord } from './record.ts'

/**
 * Checks a decoded line before it is shown; the codec only renames members. A line whose payload does not match
 * its type becomes an unknown line. Unreadable blocks are dropped.
 */
export function checkLine(line: Line): Line {
  const dated = isText(line.timestamp) ? line : { ...line, timestamp: '' }
  if (dated.type === 'session') return dated
  if (!isText(dated.id)) return unreadableRecord({ ...dated, id: '' })
  if (dated.type === 'message') {
    if (!isRole(dated.message.role)) return unreadable(dated)
    const message = checkMessage(dated.message)
    return message === dated.message ? dated : { ...dated, message }
  }
  if (dated.type === 'attempt') {
    if (!isText(dated.attempt.item)) return unreadable(dated)
    return { ...dated, attempt: { ...checkError(dated.attempt), content: checkContent(dated.attempt.content) } }
  }
  const expected = payloads[dated.type]
  return expected === undefined || hasShape(payloadOf(dated), expected) ? dated : unreadable(dated)
}

type Check = (value: unknown) => boolean
type Shape = Record<string, Check>

const isText = (value: unknown): value is string => typeof value === 'string'
const isNumber: Check = (value) => typeof value === 'number'
const isTextOrNull: Check = (value) => value === null || isText(value)
const isOneOf = (names: readonly string[]): Check => {
  return (value) => isText(value) && names.includes(value)
}
const isRole = isOneOf(messageRoles)
const isListOf = (shape: Shape): Check => {
  return (value) => Array.isArray(value) && value.every((item) => hasShape(item, shape))
}

/** Only members that callers destructure; the others pass through unchecked. */
const payloads: Record<Line['type'], Shape | undefined> = {
  session: undefined,
  message: undefined,
  system: { prompt: isText, tools: isListOf({ name: isText }) },
  model_change: { provider: isText, modelId: isText },
  thinking_level: { thinkingLevel: isText },
  compaction: { summary: isText },
  branch_summary: { summary: isText },
  custom: { customType: isText },
  label: { targetId: isText },
  session_info: { name: isText },
  gap: { reason: isText },
  unknown: undefined,
  writer: undefined,
  leaf: { targetId: isTextOrNull },
  submission: undefined,
  run_start: { runId: isText },
  run_end: { runId: isText, outcome: isText },
  attempt: undefined,
  tool_start: { callId: isText, name: isText },
  bash_start: { messageId: isText, command: isText },
  blocked: { callId: isText, kind: isOneOf(['write', 'network', 'socket', 'hidden']), what: isText },
  permission_request: {
    requestId: isText,
    tool: isText,
    title: isText,
    options: isListOf({ optionId: isText, label: isText, kind: isText }),
  },
  permission_result: { requestId: isText, outcome: isOneOf(['allowed', 'rejected', 'cancelled']) },
  permission_mode: { mode: isText },
  plan: { items: isListOf({ text: isText, status: isText }) },
  file_read: { path: isText, size: isNumber },
  file_write: { path: isText, size: isNumber },
  snapshot: { when: isText, tree: isText, by: isOneOf(['agent', 'outside', 'job']) },
  restore: { restoreId: isText, phase: isOneOf(['start', 'end']), from: isText, to: isText },
  check: { command: isText, exitCode: isNumber },
  working_copy: { folder: isText, root: isText, copyOf: isText, tree: isText },
  workspace_files: { tree: isText, packs: isListOf({ sha256: isText }) },
  workspace: { name: isText, hostId: isText, hostName: isText, folder: isText, platform: isText },
  usage: { tokens: isObject },
  error: { message: isText },
  damage: { throughSeq: isNumber },
  session_end: { reason: isText },
  unknown_record: undefined,
}

function hasShape(value: unknown, shape: Shape): boolean {
  return isObject(value) && Object.entries(shape).every(([name, check]) => check(value[name]))
}

function payloadOf(line: Line | EntryDraft | RecordDraft): unknown {
  return (line as unknown as Record<string, unknown>)[camelCase(line.type)]
}

function unreadable(line: Exclude<Line, Header>): Line {
  if (!('parentId' in line)) return unreadableRecord(line)
  // An unreadable note must not become the leaf.
  if (line.type === 'label') return { ...line, label: { targetId: '' } }
  if (line.type === 'session_info') return { ...line, sessionInfo: { name: '' } }
  const { id, parentId, timestamp, seq }: NodeEntry = line
  return { type: 'unknown', id, parentId, timestamp, seq, unknown: { type: line.type, line: { ...line } } }
}

function unreadableRecord(line: Exclude<Line, Header>): UnknownRecord {
  const { id, timestamp, seq } = line
  return { type: 'unknown_record', id, timestamp, seq, unknownRecord: { type: line.type, line: { ...line } } }
}

/** Returns the message itself if nothing is wrong with it: a context has many. */
function checkMessage(message: Message): Message {
  const content = checkContent(message.content)
  const isPlain = message.bashExecution === undefined && !('bashExecution' in message)
  if (isPlain && content === message.content && checkError(message) === message) return message
  const { bashExecution, ...rest } = checkError(message)
  const checked = { ...rest, content }
  return hasShape(bashExecution, { command: isText, output: isText })
    ? ({ ...checked, bashExecution } as Message)
    : checked
}

function checkError<T extends { error?: unknown }>(holder: T): T {
  if (holder.error === undefined || hasShape(holder.error, { message: isText })) return holder
  const { error: _, ...rest } = holder
  return rest as T
}

/** Returns the list itself if all of its blocks are readable. */
function checkContent(content: unknown): Content[] {
  if (!Array.isArray(content)) return []
  const isWhole = content.every((block) => checkBlock(block) === block)
  if (isWhole) return content as Content[]
  return content.map(checkBlock).filter((block) => block !== undefined)
}

/** Returns the block itself if it is readable as it is; undefined if it is not readable. */
function checkBlock(block: unknown): Content | undefined {
  if (!isObject(block)) return undefined
  switch (block['type']) {
    case 'text': {
      const { text: payload } = block
      return isObject(payload) && isText(payload['content']) ? (block as unknown as Content) : undefined
    }
    case 'reasoning':
      return hasShape(block['reasoning'], { text: isText }) ? (block as unknown as Content) : undefined
    case 'image':
      return hasShape(block['image'], { source: isObject }) ? (block as unknown as Content) : undefined
    case 'tool_use':
      return checkToolUse(block)
    case 'tool_result':
      return checkToolResult(block)
    default:
      return undefined
  }
}

function checkToolUse(block: Record<string, unknown>): Content | undefined {
  const { toolUse } = block as { toolUse?: unknown }
  if (!hasShape(toolUse, { id: isText, name: isText })) return undefined
  const checked = block as unknown as Content & { type: 'tool_use' }
  if (isObject(checked.toolUse.input)) return checked
  return { ...checked, toolUse: { ...checked.toolUse, input: {} } }
}

function checkToolResult(block: Record<string, unknown>): Content | undefined {
  const { toolResult } = block as { toolResult?: unknown }
  if (!hasShape(toolResult, { toolUseId: isText })) return undefined
  const checked = block as unknown as Content & { type: 'tool_result' }
  const { content } = checked.toolResult
  if (isText(content)) return checked
  const blocks = checkContent(content)
  return blocks === content ? checked : { ...checked, toolResult: { ...checked.toolResult, content: blocks } }
}

/**
 * Returns a draft in its stored form. Content may also be a string or have blocks `{ type: 'text', text: '…'
 * }`, as in other SDKs. Throws `invalid-entry` if the draft is malformed, so unreadable drafts never reach the
 * log.
 */
export function checkDraft<T extends EntryDraft | RecordDraft>(draft: T): T {
  if (draft.type === 'message') return { ...draft, message: draftedMessage(draft.message) }
  const expected = payloads[draft.type]
  const payload = payloadOf(draft)
  if (expected === undefined) return draft
  if (!isObject(payload)) throw invalid(`A line of type ${draft.type} needs a payload of that name.`)
  const wrong = Object.entries(expected).find(([name, check]) => !check(payload[name]))
  if (wrong) throw invalid(`${wrong[0]} of a ${draft.type} line is missing or malformed: ${shown(payload[wrong[0]])}.`)
  return draft
}

function draftedMessage(message: Message): Message {
  if (!isObject(message)) throw invalid(`A message is an object with role and content, not ${shown(message)}.`)
  const { role, bashExecution } = message
  if (!isRole(role))
    throw invalid(`${shown(role)} is not a role of a message. The roles are ${messageRoles.join(', ')}.`)
  if (bashExecution !== undefined && !hasShape(bashExecution, { command: isText, output: isText })) {
    throw invalid(`bashExecution of a message needs command and output: ${shown(bashExecution)}.`)
  }
  return { ...message, content: draftedContent(message.content, 'content') }
}

function draftedContent(content: unknown, at: string): Content[] {
  if (isText(content)) return [text(content)]
  if (!Array.isArray(content)) throw invalid(`${at} is a string or a list of blocks, not ${shown(content)}.`)
  return content.map((block: unknown, index) => draftedBlock(block, `${at}[${index}]`))
}

function draftedBlock(block: unknown, at: string): Content {
  const type = isObject(block) ? block['type'] : undefined
  if (!isObject(block) || !isText(type)) throw invalid(`${at} is a block with a type, not ${shown(block)}.`)
  if (type === 'text' && isText(block['text'])) return text(block['text'])
  const needed = blocks[type]
  if (needed === undefined) {
    throw invalid(`${at} has the unknown type ${shown(type)}. The types are ${Object.keys(blocks).join(', ')}.`)
  }
  const payload = block[needed.payload]
  if (!hasShape(payload, needed.shape)) {
    throw invalid(`${at} needs ${needed.payload} with ${Object.keys(needed.shape).join(', ')}, not ${shown(payload)}.`)
  }
  if (type !== 'tool_result') return block as unknown as Content
  const { toolResult } = block as unknown as Content & { type: 'tool_result' }
  if (isText(toolResult.content)) return block as unknown as Content
  return {
    type,
    toolResult: { ...toolResult, content: draftedContent(toolResult.content, `${at}.toolResult.content`) },
  }
}

const isImageSource: Check = (source) => {
  if (!isObject(source) || !isText(source['mediaType'])) return false
  return source['type'] === 'blob'
    ? isText(source['sha256']) && Number.isInteger(source['size'])
    : (source['type'] === 'base64' || source['type'] === 'url') && isText(source['data'])
}

/** The payload member of each block type, and the shape of that payload. */
const blocks: Record<string, { payload: string; shape: Shape }> = {
  text: { payload: 'text', shape: { content: isText } },
  reasoning: { payload: 'reasoning', shape: { text: isText } },
  image: { payload: 'image', shape: { source: isImageSource } },
  tool_use: { payload: 'toolUse', shape: { id: isText, name: isText, input: isObject } },
  tool_result: { payload: 'toolResult', shape: { toolUseId: isText } },
} satisfies Record<Content['type'], { payload: string; shape: Shape }>

function invalid(message: string): SessionError {
  return new SessionError('invalid-entry', message)
}

/** Errors quote at most this many characters of a malformed value. */
const shownCharacters = 80

function shown(value: unknown): string {
  let json: string | undefined
  try {
    json = JSON.stringify(value)
  } catch {
    // A cycle or a bigint cannot be serialized: show only the type.
  }
  const whole = json ?? typeof value
  return whole.length > shownCharacters ? `${whole.slice(0, shownCharacters)}…` : whole
}
