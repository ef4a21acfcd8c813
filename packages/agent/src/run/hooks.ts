import type { EntryDraft, Message, ToolUse } from '@tapetree/session'
import type { CompactionReason } from '../summary/compaction.ts'
import type { Answer, Question, ToolOutput } from '../tools/tool.ts'

/**
 * Where extensions have their say in a session. None of these throws or hangs: what goes wrong in an extension is reported by
 * whoever runs it, and the session goes on as if it had said nothing. Once the signal is aborted nobody is waited for.
 */
export interface Hooks {
  /** Before a run: may change the system prompt, and add a message that the model sees. */
  beforeAgentStart(start: AgentStart, signal?: AbortSignal): Promise<{ systemPrompt: string; messages: string[] }>
  turnStart(turn: TurnEvent, signal?: AbortSignal): Promise<void>
  turnEnd(turn: TurnEvent, signal?: AbortSignal): Promise<void>
  /** The call as it is to be carried out, or a sentence for the model on why it is not. */
  toolCall(call: ToolUse, signal?: AbortSignal): Promise<ToolUse | string>
  /** The result as it is to be kept. */
  toolResult(call: ToolUse, output: ToolOutput, signal?: AbortSignal): Promise<ToolOutput>
  /** What the model sees, in this request only. `changedBy` names who changed it. */
  context(
    messages: readonly Message[],
    signal?: AbortSignal,
  ): Promise<{ messages: readonly Message[]; changedBy: string[] }>
  beforeCompact(
    compaction: BeforeCompact,
    signal?: AbortSignal,
  ): Promise<{ instructions?: string; cancelledBy?: string }>
  sessionStart(session: { sessionId: string }): Promise<void>
  sessionEnd(session: { sessionId: string }): Promise<void>
  /** The same hooks for one session: what they append, and whom they ask, is there. */
  forSession?(session: HookSession): Hooks
}

/** What extensions may do in a session. */
export interface HookSession {
  readonly id: string
  readonly cwd: string
  /** Appends where the conversation stands, also while a run goes on. */
  append(draft: EntryDraft): Promise<void>
  /** `asker` is the name of the extension. The question is withdrawn when the signal is aborted. */
  ask(asker: string, question: Question, signal: AbortSignal): Promise<Answer>
}

export interface AgentStart {
  runId: string
  /** What the user said; empty where a run goes on. */
  prompt: string
  systemPrompt: string
}

export interface TurnEvent {
  runId: string
  /** Counted from 1 in each run. */
  turn: number
}

export interface BeforeCompact {
  reason: CompactionReason
  instructions?: string
}

export const noHooks: Hooks = {
  beforeAgentStart: ({ systemPrompt }) => Promise.resolve({ systemPrompt, messages: [] }),
  turnStart: () => Promise.resolve(),
  turnEnd: () => Promise.resolve(),
  toolCall: (call) => Promise.resolve(call),
  toolResult: (_, output) => Promise.resolve(output),
  context: (messages) => Promise.resolve({ messages, changedBy: [] }),
  beforeCompact: ({ instructions }) => Promise.resolve(instructions === undefined ? {} : { instructions }),
  sessionStart: () => Promise.resolve(),
  sessionEnd: () => Promise.resolve(),
}
