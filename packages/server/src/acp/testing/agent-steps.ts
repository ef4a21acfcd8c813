/** What a scripted agent does, in a prompt. */
export type AgentStep =
  | { do: 'say' | 'think'; text: string }
  /** Sends this update, also for a session that does not exist. */
  | { do: 'update'; update: object; sessionId?: string }
  /** Sends this update after the end of the turn. */
  | { do: 'late'; update: object }
  /** Asks for permission and tells the answer. */
  | { do: 'ask'; call: { toolCallId: string } }
  /** Reads a file through the client, or writes it. */
  | { do: 'file'; path: string; content?: string }
  /** Runs a command in a terminal of the client, and tells how it ended. */
  | { do: 'run'; command: string; outputByteLimit?: number }
  /** Writes a file itself, without the client. */
  | { do: 'write'; path: string }
  | { do: 'flood'; count: number; size: number }
  /** Waits until the turn is cancelled. */
  | { do: 'wait' }
  /** Waits until the turn is cancelled or steered. */
  | { do: 'await-steer' }
  /** Never ends, and ignores a cancel. */
  | { do: 'hang' }
  /** Writes this text to stdout, so often. */
  | { do: 'garbage'; text: string; times?: number }
  | { do: 'die' }

/** The prompt that makes the agent do this. */
export function steps(...all: AgentStep[]): string {
  return JSON.stringify(all)
}

export const say = (text: string): AgentStep => ({ do: 'say', text })
export const think = (text: string): AgentStep => ({ do: 'think', text })
export const wait: AgentStep = { do: 'wait' }
export const die: AgentStep = { do: 'die' }
export const hang: AgentStep = { do: 'hang' }

/** A new call, or a change of one. */
export const call = (toolCallId: string, more: object = {}): AgentStep => ({
  do: 'update',
  update: { sessionUpdate: 'tool_call', toolCallId, title: `Call ${toolCallId}`, kind: 'other', ...more },
})
export const change = (toolCallId: string, more: object): AgentStep => ({
  do: 'update',
  update: { sessionUpdate: 'tool_call_update', toolCallId, ...more },
})

/** The content of a call that shows this text. */
export const shows = (text: string): object => ({ content: [{ type: 'content', content: { type: 'text', text } }] })
