import { checkLine } from '../line/check-line.ts'
import type { MessageEntry } from '../line/entry.ts'
import type { Line } from '../line/line.ts'
import type { BashExecution, Content, ImageSource } from '../line/message.ts'
import type { PermissionOption, PermissionResultRecord, PlanRecord } from '../line/record.ts'

/** The log as provider-neutral events. */
export type PlaybackEvent = EventOrigin & PlaybackEventDetail

export type PlaybackEventType = PlaybackEvent['type']

export type PlaybackEventOf<T extends PlaybackEventType> = Extract<PlaybackEvent, { type: T }>

export interface EventOrigin {
  seq: number
  timestamp: string
  /** The source line; one line may give several events. */
  lineId: string
}

export type PlaybackEventDetail =
  | { type: 'session_start'; version: number; cwd?: string; parentSession?: string; parentEntry?: string }
  | { type: 'session_end'; reason: string }
  | { type: 'user_prompt'; text: string; images: ImageSource[]; submissionId?: string }
  | { type: 'agent_message'; text: string; images: ImageSource[] }
  | { type: 'agent_thought'; text: string }
  | { type: 'tool_call'; callId: string; name: string; input: Record<string, unknown> }
  | { type: 'tool_call_update'; callId: string; status: 'running' }
  | { type: 'tool_call_update'; callId: string; status: 'completed' | 'failed'; output: string | Content[] }
  | { type: 'plan'; items: PlanRecord['plan']['items'] }
  | {
      type: 'permission'
      requestId: string
      status: 'requested'
      tool: string
      title: string
      options: PermissionOption[]
      callId?: string
    }
  | { type: 'permission'; requestId: string; status: PermissionOutcome; optionId?: string; clientId?: string }
  | { type: 'file_read'; path: string; size: number; callId?: string }
  | { type: 'file_write'; path: string; size: number; callId?: string }
  | { type: 'error'; message: string; kind?: string; runId?: string }

export type PermissionOutcome = PermissionResultRecord['permissionResult']['outcome']

/** The events of one line, in order. Bookkeeping lines give none. */
export function eventsOf(line: Line): PlaybackEvent[] {
  const checked = checkLine(line)
  const origin = { seq: line.seq, timestamp: checked.timestamp, lineId: line.id }
  return detailsOf(checked).map((detail) => ({ ...origin, ...detail }))
}

function detailsOf(line: Line): PlaybackEventDetail[] {
  switch (line.type) {
    case 'session': {
      const { version, cwd, parentSession, parentEntry } = line
      return [{ type: 'session_start', version, ...present({ cwd, parentSession, parentEntry }) }]
    }
    case 'session_end':
      return [{ type: 'session_end', reason: line.sessionEnd.reason }]
    case 'message':
      return detailsOfMessage(line)
    case 'tool_start':
      return [{ type: 'tool_call_update', callId: line.toolStart.callId, status: 'running' }]
    case 'plan':
      return [{ type: 'plan', items: line.plan.items }]
    case 'permission_request': {
      const { requestId, tool, title, options, callId } = line.permissionRequest
      return [{ type: 'permission', requestId, status: 'requested', tool, title, options, ...present({ callId }) }]
    }
    case 'permission_result': {
      const { requestId, outcome, optionId, clientId } = line.permissionResult
      return [{ type: 'permission', requestId, status: outcome, ...present({ optionId, clientId }) }]
    }
    case 'file_read': {
      const { path, size, callId } = line.fileRead
      return [{ type: 'file_read', path, size, ...present({ callId }) }]
    }
    case 'file_write': {
      const { path, size, callId } = line.fileWrite
      return [{ type: 'file_write', path, size, ...present({ callId }) }]
    }
    case 'attempt': {
      const { error, runId } = line.attempt
      return error ? [{ type: 'error', message: error.message, kind: error.kind, ...present({ runId }) }] : []
    }
    case 'error': {
      const { message, kind, runId } = line.error
      return [{ type: 'error', message, ...present({ kind, runId }) }]
    }
    case 'gap':
      return [{ type: 'error', message: line.gap.reason, kind: 'damage' }]
    default:
      return []
  }
}

function detailsOfMessage({ id, message }: MessageEntry): PlaybackEventDetail[] {
  switch (message.role) {
    case 'user': {
      const { submissionId } = message
      const prompt = { text: textIn(message.content), images: imagesIn(message.content) }
      return [{ type: 'user_prompt', ...prompt, ...present({ submissionId }) }]
    }
    case 'assistant': {
      const { error, runId } = message
      const said = message.content.flatMap(detailsOfAnswer)
      if (!error) return said
      return [...said, { type: 'error', message: error.message, kind: error.kind, ...present({ runId }) }]
    }
    case 'tool':
      return message.content.flatMap(detailsOfResult)
    case 'bashExecution':
      return detailsOfBash(id, message.bashExecution ?? { command: '', output: textIn(message.content) })
    default:
      return []
  }
}

function detailsOfAnswer(block: Content): PlaybackEventDetail[] {
  switch (block.type) {
    case 'text':
      return [{ type: 'agent_message', text: block.text.content, images: [] }]
    case 'image':
      return [{ type: 'agent_message', text: '', images: [block.image.source] }]
    case 'reasoning':
      return [{ type: 'agent_thought', text: block.reasoning.text }]
    case 'tool_use': {
      const { id, name, input } = block.toolUse
      return [{ type: 'tool_call', callId: id, name, input }]
    }
    case 'tool_result':
      return detailsOfResult(block)
    default:
      block satisfies never
      return []
  }
}

function detailsOfResult(block: Content): PlaybackEventDetail[] {
  if (block.type !== 'tool_result') return []
  const { toolUseId, isError, content } = block.toolResult
  return [{ type: 'tool_call_update', callId: toolUseId, status: isError ? 'failed' : 'completed', output: content }]
}

/**
 * A command that a person ran has no tool call of a model; its line stands for call and result. Without an exit
 * code it did not end by itself.
 */
function detailsOfBash(callId: string, bash: BashExecution): PlaybackEventDetail[] {
  const status = bash.exitCode === 0 && !bash.cancelled ? 'completed' : 'failed'
  return [
    { type: 'tool_call', callId, name: 'bash', input: { command: bash.command } },
    { type: 'tool_call_update', callId, status, output: bash.output },
  ]
}

export function textIn(content: readonly Content[]): string {
  return content.flatMap((block) => (block.type === 'text' ? [block.text.content] : [])).join('\n')
}

function imagesIn(content: readonly Content[]): ImageSource[] {
  return content.flatMap((block) => (block.type === 'image' ? [block.image.source] : []))
}

/** Drops members without a value: optional members are absent, never undefined. */
function present<T extends Record<string, unknown>>(members: T): Present<T> {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined)) as Present<T>
}

type Present<T> = { [K in keyof T]?: Exclude<T[K], undefined> }
