import type {
  CompactionEntry,
  Entry,
  ModelChangeEntry,
  ModelReference,
  SystemEntry,
  ThinkingLevelEntry,
} from '../line/entry.ts'
import { text, type Content, type Message, type ToolResult, type ToolUse } from '../line/message.ts'

/** What the model sees at one leaf, with the source of each part. */
export interface Context {
  messages: ContextMessage[]
  system: SystemEntry['system'] | null
  model: ModelReference | null
  thinkingLevel: string | null
  /** The entries that set `system`, `model` and `thinkingLevel`. */
  provenance: { systemId: string | null; modelId: string | null; thinkingLevelId: string | null }
  /** Repairs that make a provider accept the request, as sentences. */
  repairs: string[]
}

export interface ContextMessage {
  /** The entry that this message comes from. */
  entryId: string
  message: Message
  /** Set if the message is not stored in the log in this form. */
  made?: 'summary' | 'missing-result' | 'orphan-result'
}

/** How reasoning is sent back to the model that produced it. */
export type ReasoningPolicy = 'auto' | 'turn' | 'never'

export interface ContextInput {
  /** The entries of the context path, oldest first: from the first kept entry to the leaf. */
  path: readonly Entry[]
  /** The newest compaction on the path; older ones have no effect. */
  compaction: CompactionEntry | null
  system: SystemEntry | null
  model: ModelChangeEntry | null
  thinking: ThinkingLevelEntry | null
  keptIsMissing?: boolean
  reasoning?: ReasoningPolicy
}

/**
 * Builds the messages of a request that a provider accepts. Pure: the same entries always give the same
 * messages, so a resumed session sends the same bytes.
 */
export function buildContext(input: ContextInput): Context {
  const repairs: string[] = []
  if (input.keptIsMissing) {
    repairs.push(`The first entry kept by compaction ${input.compaction?.id} is not on this path.`)
  }
  const messages = pairResults(spokenMessages(input), repairs)
  const model = input.model?.modelChange ?? null
  return {
    messages: withoutForeignReasoning(messages, { policy: input.reasoning ?? 'auto', model }),
    system: input.system?.system ?? null,
    model,
    thinkingLevel: input.thinking?.thinkingLevel.thinkingLevel ?? null,
    provenance: {
      systemId: input.system?.id ?? null,
      modelId: input.model?.id ?? null,
      thinkingLevelId: input.thinking?.id ?? null,
    },
    repairs,
  }
}

/** The messages that entries contribute to the context. */
function spokenMessages({ path, compaction }: ContextInput): ContextMessage[] {
  const spoken: ContextMessage[] = []
  if (compaction) spoken.push(summary(compaction.id, 'compactionSummary', compaction.compaction.summary))
  for (const entry of path) {
    if (entry.type === 'branch_summary') {
      spoken.push(summary(entry.id, 'branchSummary', entry.branchSummary.summary))
    } else if (entry.type === 'message' && !entry.message.bashExecution?.excludeFromContext) {
      spoken.push({ entryId: entry.id, message: entry.message })
    }
  }
  return spoken
}

function summary(entryId: string, role: 'compactionSummary' | 'branchSummary', words: string): ContextMessage {
  return { entryId, message: { role, content: [text(words)] }, made: 'summary' }
}

/** An assistant message and the indices of its results, in the order of its calls. */
interface Turn {
  spoken: ContextMessage
  results: (ContextMessage | undefined)[]
}

function isToolBlock({ type }: Content): boolean {
  return type === 'tool_use' || type === 'tool_result'
}

/** Moves every result directly behind its assistant message; messages in between follow them. */
function pairResults(spoken: readonly ContextMessage[], repairs: string[]): ContextMessage[] {
  const turns: (Turn | ContextMessage)[] = []
  const open = new Map<string, { turn: Turn; index: number }>()
  for (const each of spoken) {
    const { message } = each
    if (message.role === 'user' && !message.content.some(isToolBlock)) {
      turns.push(each)
      continue
    }
    const results = resultsOf(message)
    for (const [index, result] of results.entries()) {
      const call = open.get(result.toolUseId)
      open.delete(result.toolUseId)
      if (call) call.turn.results[call.index] = resultMessage(each, result)
      else turns.push(orphan(each, result, index, repairs))
    }
    if (message.role === 'tool') continue
    // Some clients put results into the user message; its other content follows them.
    const rest = results.length === 0 ? each : withoutResults(each)
    const calls = callsOf(rest.message)
    if ((rest !== each || rest.message.role === 'assistant') && !hasSomethingToSend(rest.message)) continue
    if (calls.length === 0) {
      turns.push(rest)
      continue
    }
    const turn: Turn = { spoken: rest, results: calls.map(() => undefined) }
    for (const [index, call] of calls.entries()) open.set(call.id, { turn, index })
    turns.push(turn)
  }
  const paired: ContextMessage[] = []
  for (const turn of turns) {
    if ('results' in turn) paired.push(turn.spoken, ...resultsInOrder(turn, repairs))
    else paired.push(turn)
  }
  return paired
}

function resultsInOrder(turn: Turn, repairs: string[]): ContextMessage[] {
  const calls = callsOf(turn.spoken.message)
  return turn.results.map((result, index) => result ?? missingResult(turn.spoken, calls[index] as ToolUse, repairs))
}

function resultMessage(from: ContextMessage, result: ToolResult): ContextMessage {
  const content = from.message.content.filter((block) => block.type === 'tool_result' && block.toolResult === result)
  return { entryId: from.entryId, message: { ...from.message, role: 'tool', content } }
}

function withoutResults({ message, ...from }: ContextMessage): ContextMessage {
  return { ...from, message: { ...message, content: message.content.filter(({ type }) => type !== 'tool_result') } }
}

function missingResult(asked: ContextMessage, call: ToolUse, repairs: string[]): ContextMessage {
  repairs.push(`Call ${call.id} of ${call.name} has no result on this branch.`)
  return {
    entryId: asked.entryId,
    message: {
      role: 'tool',
      content: [
        {
          type: 'tool_result',
          toolResult: { toolUseId: call.id, isError: true, content: 'not run on this branch' },
        },
      ],
    },
    made: 'missing-result',
  }
}

/** A result whose call is no longer in the context becomes a user message. */
function orphan(from: ContextMessage, result: ToolResult, index: number, repairs: string[]): ContextMessage {
  repairs.push(`Result ${index + 1} of entry ${from.entryId} answers no call in the context.`)
  const blocks: Content[] = typeof result.content === 'string' ? [text(result.content)] : result.content
  return {
    entryId: from.entryId,
    message: { role: 'user', content: [text(`Result of an earlier call (${result.toolUseId}):`), ...blocks] },
    made: 'orphan-result',
  }
}

export function callsOf(message: Message): ToolUse[] {
  if (message.role !== 'assistant') return []
  return message.content.flatMap((block) => (block.type === 'tool_use' ? [block.toolUse] : []))
}

export function resultsOf(message: Message): ToolResult[] {
  return message.content.flatMap((block) => (block.type === 'tool_result' ? [block.toolResult] : []))
}

function hasSomethingToSend(message: Message): boolean {
  return message.content.some((block) =>
    block.type === 'text' ? block.text.content !== '' : block.type !== 'reasoning',
  )
}

/** Reasoning is signed for the model that produced it, and an aborted message has only part of it. */
function withoutForeignReasoning(
  messages: ContextMessage[],
  options: { policy: ReasoningPolicy; model: ModelReference | null },
): ContextMessage[] {
  // A result that became a user message does not start a turn.
  const turnStart = messages.findLastIndex(({ message, made }) => message.role === 'user' && made === undefined)
  return messages.map((each, index) => {
    const { message } = each
    if (message.role !== 'assistant' || !message.content.some((block) => block.type === 'reasoning')) return each
    const isOwn = message.provider === options.model?.provider && message.model === options.model?.modelId
    const isAllowed = options.policy === 'auto' || (options.policy === 'turn' && index > turnStart)
    if (isOwn && isAllowed && message.stopReason !== 'aborted') return each
    return { ...each, message: { ...message, content: message.content.filter((block) => block.type !== 'reasoning') } }
  })
}
