import type { Content, Message, Session } from '@tapetree/session'
import type { CompactionEntry, Entry, SystemEntry } from '@tapetree/session/format'
import { estimateTokenCount } from 'tokenx'

type System = SystemEntry['system']

/** About the cost of a large image; a small one costs less. */
const imageTokens = 1600
/** The overhead that a provider adds to each message. */
const messageTokens = 4

/**
 * The number of tokens in the context at the leaf: the count of the provider for its newest answer, plus an estimate of
 * the entries after it. Entries before a count are not read.
 */
export async function contextSize(session: Session): Promise<number> {
  const path = await session.getContextPath()
  return countedTokens(path) ?? estimateContext(path, await systemInForce(session, path))
}

/** The tokens of a context path by the count of the provider. Undefined if it has no count. */
export function countedTokens(path: readonly Entry[]): number | undefined {
  let tokens = 0
  for (let index = path.length - 1; index >= 0; index--) {
    const entry = path[index] as Entry
    // Counts from before it describe an older context.
    if (entry.type === 'compaction') return undefined
    const counted = entry.type === 'message' ? countOf(entry.message) : undefined
    if (counted !== undefined) return tokens + counted
    tokens += entry.type === 'system' ? systemTokens(entry.system) : entryTokens(entry)
  }
  return undefined
}

/** The same by estimate alone. */
export function estimateContext(path: readonly Entry[], system: System | null): number {
  const speaking = speakingCompaction(path)
  let tokens = (system ? systemTokens(system) : 0) + (speaking ? entryTokens(speaking) : 0)
  for (const entry of path) if (entry.type !== 'compaction') tokens += entryTokens(entry)
  return tokens
}

/** The newest compaction of a context path. Older ones are not in the context. */
export function speakingCompaction(path: readonly Entry[]): CompactionEntry | undefined {
  return path.findLast((entry) => entry.type === 'compaction')
}

/** The system prompt and tools in force; they may have been set before the path begins. */
export async function systemInForce(session: Session, path: readonly Entry[]): Promise<System | null> {
  const entry = path.findLast((each) => each.type === 'system')
  return entry ? entry.system : (await session.getContext()).system
}

/** Estimates live as long as their objects. */
const estimates = new WeakMap<object, number>()

/** An estimate of what an entry adds to the context. The caller must exclude all but the newest compaction. */
export function entryTokens(entry: Entry): number {
  switch (entry.type) {
    case 'message':
      return estimated(entry, () => tokensOfMessage(entry.message))
    case 'compaction':
      return estimated(entry, () => spokenTokens(entry.compaction.summary))
    case 'branch_summary':
      return estimated(entry, () => spokenTokens(entry.branchSummary.summary))
    case 'system':
    case 'model_change':
    case 'thinking_level':
    case 'custom':
    case 'gap':
    case 'unknown':
    case 'label':
    case 'session_info':
      return 0
    default:
      entry satisfies never
      return 0
  }
}

/** The tokens of a text that is a message by itself. */
export function spokenTokens(text: string): number {
  return messageTokens + textTokens(text)
}

export function textTokens(text: string): number {
  return estimateTokenCount(text)
}

function systemTokens(system: System): number {
  return estimated(system, () => textTokens(system.prompt) + textTokens(JSON.stringify(system.tools)))
}

function estimated(source: object, estimate: () => number): number {
  const known = estimates.get(source)
  if (known !== undefined) return known
  const tokens = estimate()
  estimates.set(source, tokens)
  return tokens
}

/** Everything up to and including this answer, as its provider counted it. */
function countOf(message: Message): number | undefined {
  const { role, usage, stopReason } = message
  if (role !== 'assistant' || !usage?.inputTokens) return undefined
  // The count of a stopped answer may be from before its text.
  const isWhole = usage.outputTokens !== undefined && stopReason !== 'aborted'
  const output = isWhole ? 0 : tokensOfMessage(message)
  return Math.max(usage.totalTokens ?? 0, usage.inputTokens + Math.max(usage.outputTokens ?? 0, output))
}

function tokensOfMessage({ content, bashExecution }: Message): number {
  if (bashExecution?.excludeFromContext) return 0
  const command = bashExecution ? textTokens(bashExecution.command) + textTokens(bashExecution.output) : 0
  return messageTokens + Math.max(command, tokensOfContent(content))
}

function tokensOfContent(content: readonly Content[]): number {
  return content.reduce((sum, block) => sum + tokensOfBlock(block), 0)
}

function tokensOfBlock(block: Content): number {
  switch (block.type) {
    case 'text':
      return textTokens(block.text.content)
    case 'reasoning':
      return textTokens(block.reasoning.text)
    case 'image':
      return imageTokens
    case 'tool_use':
      return messageTokens + textTokens(block.toolUse.name) + textTokens(JSON.stringify(block.toolUse.input))
    case 'tool_result': {
      const { content } = block.toolResult
      return messageTokens + (typeof content === 'string' ? textTokens(content) : tokensOfContent(content))
    }
    default:
      block satisfies never
      return 0
  }
}
