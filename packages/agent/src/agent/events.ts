import type { ToolResult, ToolUse } from '@tapetree/session'
import type { Line } from '@tapetree/session/format'
import type { AgentEvent, AgentListener } from '../run/events.ts'

/**
 * The answers and calls of the agent. `messageId` is the entry of the answer or result that an event belongs to. A
 * failed answer has an id but no entry; a run that failed before its answer has none.
 */
export type AgentViewEvent =
  | { type: 'text_delta'; messageId: string; text: string }
  | { type: 'tool_call'; messageId: string; call: ToolUse }
  | { type: 'tool_result'; messageId: string; result: ToolResult }
  | { type: 'complete'; messageId: string }
  | { type: 'error'; messageId: string; message: string }

/**
 * The work of its tools. `messageId` is the answer that made the call; it is empty if the answer came before the
 * subscription.
 */
export type ToolViewEvent =
  | { type: 'tool_started'; messageId: string; callId: string; name: string }
  | { type: 'tool_completed'; messageId: string; callId: string; result: ToolResult }
  | { type: 'tool_failed'; messageId: string; callId: string; result: ToolResult }

export interface Subscribable {
  readonly session: { readonly id: string }
  subscribe(listener: AgentListener): () => void
}

/** Only the events of the agent itself. */
export function agentEvents(
  agent: Subscribable,
  listener: (event: AgentViewEvent & { sessionId: string }) => void,
): () => void {
  let answerId = ''
  return agent.subscribe((event) => {
    answerId = answerAfter(event, answerId)
    for (const told of agentEventsOf(event, answerId)) listener({ ...told, sessionId: agent.session.id })
  })
}

/** Only the events of its tools. */
export function toolEvents(
  agent: Subscribable,
  listener: (event: ToolViewEvent & { sessionId: string }) => void,
): () => void {
  /** The answer that made each open call. */
  const madeBy = new Map<string, string>()
  return agent.subscribe((event) => {
    if (event.type !== 'line') return
    const { line } = event.committed
    for (const callId of callsIn(line)) madeBy.set(callId, line.id)
    for (const told of toToolEvents(line, (callId) => madeBy.get(callId) ?? '')) {
      listener({ ...told, sessionId: agent.session.id })
      if (told.type !== 'tool_started') madeBy.delete(told.callId)
    }
  })
}

/** `answerId` is the answer that was last heard of. */
export function agentEventsOf(event: AgentEvent, answerId = ''): AgentViewEvent[] {
  if (event.type === 'delta') {
    return event.kind === 'text' ? [{ type: 'text_delta', messageId: event.item, text: event.text }] : []
  }
  return event.type === 'line' ? fromLine(event.committed.line, answerId) : []
}

function answerAfter(event: AgentEvent, before: string): string {
  if (event.type === 'delta') return event.kind === 'tool_output' ? before : event.item
  if (event.type !== 'line') return before
  const { line } = event.committed
  if (line.type === 'run_start') return ''
  return line.type === 'message' && line.message.role === 'assistant' ? line.id : before
}

function fromLine(line: Line, answerId: string): AgentViewEvent[] {
  switch (line.type) {
    case 'message':
      return line.message.content.flatMap((block): AgentViewEvent[] => {
        if (block.type === 'tool_use') return [{ type: 'tool_call', messageId: line.id, call: block.toolUse }]
        if (block.type === 'tool_result') return [{ type: 'tool_result', messageId: line.id, result: block.toolResult }]
        return []
      })
    case 'run_end':
      return line.runEnd.outcome === 'completed' ? [{ type: 'complete', messageId: answerId }] : []
    case 'error':
      return [{ type: 'error', messageId: answerId, message: line.error.message }]
    default:
      return []
  }
}

function callsIn(line: Line): string[] {
  if (line.type !== 'message') return []
  return line.message.content.flatMap((block) => (block.type === 'tool_use' ? [block.toolUse.id] : []))
}

function toToolEvents(line: Line, messageOf: (callId: string) => string): ToolViewEvent[] {
  if (line.type === 'tool_start') {
    const { callId, name } = line.toolStart
    return [{ type: 'tool_started', messageId: messageOf(callId), callId, name }]
  }
  if (line.type !== 'message') return []
  return line.message.content.flatMap((block): ToolViewEvent[] => {
    if (block.type !== 'tool_result') return []
    const { toolResult: result } = block
    const { toolUseId: callId } = result
    return [{ type: result.isError ? 'tool_failed' : 'tool_completed', messageId: messageOf(callId), callId, result }]
  })
}

/** The events that most embedders need. */
export interface StreamCallbacks {
  onTextDelta?: (text: string) => void
  onToolCall?: (call: ToolUse) => void
  onToolResult?: (result: ToolResult) => void
  onComplete?: () => void
  onError?: (error: Error) => void
}

/** A listener for `subscribe` that calls back. */
export function fromCallbacks(callbacks: StreamCallbacks): (event: AgentEvent) => void {
  return (event) => {
    for (const told of agentEventsOf(event)) {
      switch (told.type) {
        case 'text_delta':
          callbacks.onTextDelta?.(told.text)
          break
        case 'tool_call':
          callbacks.onToolCall?.(told.call)
          break
        case 'tool_result':
          callbacks.onToolResult?.(told.result)
          break
        case 'complete':
          callbacks.onComplete?.()
          break
        case 'error':
          callbacks.onError?.(new Error(told.message))
          break
        default:
          told satisfies never
      }
    }
  }
}
