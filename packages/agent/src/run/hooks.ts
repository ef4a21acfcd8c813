import type { Message, ToolUse } from '@tapetree/session'
import type { EntryDraft } from '@tapetree/session/format'
import type { CompactionReason } from '../summary/compaction.ts'
import type { Answer, Question, ToolOutput } from '../tools/tool.ts'

/**
 * The points at which extensions act in a session. No hook throws or hangs: the extension host reports a failing
 * extension, and the session continues without its result. After the signal is aborted, hooks are not awaited.
 */
export interface Hooks {
  /** Before a run: may change the prompt and the system prompt, and add messages that the model sees. */
  beforeAgentStart(start: AgentStart, signal?: AbortSignal): Promise<PromptChanges>
  /** Before each request: may change the system prompt for the rest of the run, and add messages. */
  turnStart(turn: TurnEvent, signal?: AbortSignal): Promise<TurnChanges>
  turnEnd(turn: TurnEvent, signal?: AbortSignal): Promise<TurnChanges>
  /** Returns the call to run, or a sentence for the model that says why it is not run. */
  toolCall(call: ToolUse, signal?: AbortSignal): Promise<ToolUse | string>
  /** Returns the result to keep. */
  toolResult(call: ToolUse, output: ToolOutput, signal?: AbortSignal): Promise<ToolOutput>
  /** Returns the messages for this request only. `changedBy` names the extensions that changed them. */
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
  /** The same hooks bound to one session, for what they append and ask. */
  forSession?(session: HookSession): Hooks
}

/** What extensions may do in a session. */
export interface HookSession {
  readonly id: string
  readonly cwd: string
  /** The last entry of the conversation; null if it has none. */
  readonly leafId: string | null
  /** Appends to the head of the open run, or else to the leaf. */
  append(draft: EntryDraft): Promise<void>
  /** Labels an entry of this session; an empty label removes it. */
  setLabel(entryId: string, label: string): Promise<void>
  /** Entries by id, with their latest labels, on all branches. */
  labels(): ReadonlyMap<string, string>
  setName(name: string): Promise<void>
  /** Queues a message from this sender. If nothing runs, it starts a run. */
  send(message: { text: string; delivery: 'steer' | 'follow-up'; sender: string }): Promise<void>
  /** `asker` is the name of the extension. The question is withdrawn when the signal is aborted. */
  ask(asker: string, question: Question, signal: AbortSignal): Promise<Answer>
}

export interface AgentStart {
  runId: string
  /** The text of the user; empty when a run is resumed or continued. */
  prompt: string
  systemPrompt: string
}

export interface TurnEvent {
  runId: string
  /** Counted from 1 in each run. */
  turn: number
  /** The system prompt in force. */
  systemPrompt: string
}

export interface TurnChanges {
  /** Absent: it stays as it is. */
  systemPrompt?: string
  /** Messages for the model, appended to the log. */
  messages: string[]
}

export interface PromptChanges {
  systemPrompt: string
  messages: string[]
  /** What the model gets in place of the text of the user, and the extensions that changed it. */
  prompt?: { text: string; changedBy: string[] }
}

export interface BeforeCompact {
  reason: CompactionReason
  instructions?: string
}

export const noHooks: Hooks = {
  beforeAgentStart: ({ systemPrompt }) => Promise.resolve({ systemPrompt, messages: [] }),
  turnStart: () => Promise.resolve({ messages: [] }),
  turnEnd: () => Promise.resolve({ messages: [] }),
  toolCall: (call) => Promise.resolve(call),
  toolResult: (_, output) => Promise.resolve(output),
  context: (messages) => Promise.resolve({ messages, changedBy: [] }),
  beforeCompact: ({ instructions }) => Promise.resolve(instructions === undefined ? {} : { instructions }),
  sessionStart: () => Promise.resolve(),
  sessionEnd: () => Promise.resolve(),
}
