import type { AgentEvent } from '@tapetree/agent'

/** What the agent process reports to the tour, one JSON object per line. */
export type TourNews =
  | { type: 'session'; sessionId: string }
  | { type: 'text'; text: string }
  | { type: 'call'; tool: string; input: Record<string, unknown> }
  | { type: 'output'; text: string }
  | { type: 'result'; text: string }
  | { type: 'end'; outcome: string }

export function newsOf(event: AgentEvent): TourNews[] {
  if (event.type === 'delta' && event.kind === 'text') return [{ type: 'text', text: event.text }]
  if (event.type === 'delta' && event.kind === 'tool_output') return [{ type: 'output', text: event.text }]
  if (event.type !== 'line' || event.committed.line.type !== 'message') return []
  return event.committed.line.message.content.flatMap((block): TourNews[] => {
    if (block.type === 'tool_use') return [{ type: 'call', tool: block.toolUse.name, input: block.toolUse.input }]
    if (block.type !== 'tool_result') return []
    const { content } = block.toolResult
    const words =
      typeof content === 'string' ? content : content.map((each) => (each.type === 'text' ? each.text.content : ''))
    return [{ type: 'result', text: [words].flat().join('\n') }]
  })
}
