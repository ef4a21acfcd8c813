import type { ToolResult, ToolUse } from '@tapetree/session'
import type { AgentEvent } from '../run/agent-event.ts'
import { toAgentEvent } from './events.ts'

/** What most embedders want to hear, and nothing else. */
export interface StreamCallbacks {
  onTextDelta?: (text: string) => void
  onToolCall?: (call: ToolUse) => void
  onToolResult?: (result: ToolResult) => void
  onComplete?: () => void
  onError?: (error: Error) => void
}

/** A listener for `subscribe` that calls back. */
export function callBack(callbacks: StreamCallbacks): (event: AgentEvent) => void {
  return (event) => {
    for (const told of toAgentEvent(event)) {
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
