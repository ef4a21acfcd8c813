import { isObject } from './codec.ts'
import type { Header } from './entry.ts'
import type { Line } from './line.ts'
import type { Content, Message, MessageRole } from './message.ts'
import type { UnknownRecord } from './record.ts'

/**
 * The codec renames members and does not look at their values. Whoever draws lines takes them through here first: a line whose
 * payload is not what its type promises becomes one of an unknown type, and blocks that cannot be read are left out.
 */
export function checkLine(line: Line): Line {
  const dated = isText(line.timestamp) ? line : { ...line, timestamp: '' }
  if (dated.type === 'session') return dated
  if (!isText(dated.id)) return unreadableRecord({ ...dated, id: '' })
  if (dated.type === 'message') {
    if (!isRole(dated.message.role)) return unreadable(dated)
    return { ...dated, message: checkMessage(dated.message) }
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
const isOneOf = (names: string[]): Check => {
  return (value) => isText(value) && names.includes(value)
}
const isRole = isOneOf([
  'user',
  'assistant',
  'tool',
  'bashExecution',
  'custom',
  'branchSummary',
  'compactionSummary',
] satisfies MessageRole[])
const isListOf = (shape: Shape): Check => {
  return (value) => Array.isArray(value) && value.every((item) => hasShape(item, shape))
}

/** Only the members that somebody takes apart; the others are passed on as they are. */
const payloads: Partial<Record<Line['type'], Shape>> = {
  system: { prompt: isText, tools: isListOf({ name: isText }) },
  model_change: { provider: isText, modelId: isText },
  thinking_level: { thinkingLevel: isText },
  compaction: { summary: isText },
  branch_summary: { summary: isText },
  custom: { customType: isText },
  label: { targetId: isText },
  session_info: { name: isText },
  gap: { reason: isText },
  leaf: { targetId: isTextOrNull },
  run_start: { runId: isText },
  run_end: { runId: isText, outcome: isText },
  tool_start: { callId: isText, name: isText },
  permission_request: {
    requestId: isText,
    tool: isText,
    title: isText,
    options: isListOf({ optionId: isText, label: isText, kind: isText }),
  },
  permission_result: { requestId: isText, outcome: isOneOf(['allowed', 'rejected', 'cancelled']) },
  plan: { items: isListOf({ text: isText, status: isText }) },
  file_read: { path: isText, size: isNumber },
  file_write: { path: isText, size: isNumber },
  usage: { tokens: isObject },
  error: { message: isText },
  damage: { throughSeq: isNumber },
  session_end: { reason: isText },
}

function hasShape(value: unknown, shape: Shape): boolean {
  return isObject(value) && Object.entries(shape).every(([name, check]) => check(value[name]))
}

function payloadOf(line: Line): unknown {
  const name = line.type.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase())
  return (line as unknown as Record<string, unknown>)[name]
}

function unreadable(line: Exclude<Line, Header>): Line {
  if (!('parentId' in line)) return unreadableRecord(line)
  // A note that cannot be read must not become the leaf.
  if (line.type === 'label') return { ...line, label: { targetId: '' } }
  if (line.type === 'session_info') return { ...line, sessionInfo: { name: '' } }
  const { id, parentId, timestamp, seq } = line
  return { type: 'unknown', id, parentId, timestamp, seq, unknown: { type: line.type, line: { ...line } } }
}

function unreadableRecord(line: Exclude<Line, Header>): UnknownRecord {
  const { id, timestamp, seq } = line
  return { type: 'unknown_record', id, timestamp, seq, unknownRecord: { type: line.type, line: { ...line } } }
}

function checkMessage(message: Message): Message {
  const { bashExecution, ...rest } = checkError(message)
  const checked = { ...rest, content: checkContent(message.content) }
  return hasShape(bashExecution, { command: isText, output: isText })
    ? ({ ...checked, bashExecution } as Message)
    : checked
}

function checkError<T extends { error?: unknown }>(holder: T): T {
  if (holder.error === undefined || hasShape(holder.error, { message: isText })) return holder
  const { error: _, ...rest } = holder
  return rest as T
}

function checkContent(content: unknown): Content[] {
  return Array.isArray(content) ? content.flatMap(checkBlock) : []
}

function checkBlock(block: unknown): Content[] {
  if (!isObject(block)) return []
  switch (block['type']) {
    case 'text':
      return hasShape(block['text'], { content: isText }) ? [block as unknown as Content] : []
    case 'reasoning':
      return hasShape(block['reasoning'], { text: isText }) ? [block as unknown as Content] : []
    case 'image':
      return hasShape(block['image'], { source: isObject }) ? [block as unknown as Content] : []
    case 'tool_use':
      return checkToolUse(block)
    case 'tool_result':
      return checkToolResult(block)
    default:
      return []
  }
}

function checkToolUse(block: Record<string, unknown>): Content[] {
  const { toolUse } = block as { toolUse?: unknown }
  if (!hasShape(toolUse, { id: isText, name: isText })) return []
  const checked = block as unknown as Content & { type: 'tool_use' }
  if (isObject(checked.toolUse.input)) return [checked]
  return [{ ...checked, toolUse: { ...checked.toolUse, input: {} } }]
}

function checkToolResult(block: Record<string, unknown>): Content[] {
  const { toolResult } = block as { toolResult?: unknown }
  if (!hasShape(toolResult, { toolUseId: isText })) return []
  const checked = block as unknown as Content & { type: 'tool_result' }
  const { content } = checked.toolResult
  if (isText(content)) return [checked]
  return [{ ...checked, toolResult: { ...checked.toolResult, content: checkContent(content) } }]
}
