import { contextSize } from '@tapetree/agent/run'
import type { Content, Context, Session } from '@tapetree/session'
import type { CompactionEntry, Entry } from '@tapetree/session/format'
import { segmentsOf } from '../../sessions/segments.ts'
import { describeEntry } from '../../text/describe-entry.ts'
import type { ContextCompaction, ContextOverview } from '../../tui/chat-services.ts'

/** About what an image costs, in characters of text. */
const imageCharacters = 6400
const droppedLines = 200

/** What the context of the next request consists of, and what the newest summary replaced. */
export async function contextOverview(session: Session): Promise<ContextOverview> {
  const context = await session.getContext()
  const tokens = await contextSize(session)
  const compaction = await compactionOf(session, context)
  return { tokens, parts: partsOf(context, tokens), ...(compaction && { compaction }) }
}

/** Shares the tokens out by characters: providers count only the sum. */
function partsOf({ system, messages }: Context, tokens: number): ContextOverview['parts'] {
  const characters = new Map<string, number>()
  const add = (name: string, count: number): void => {
    if (count > 0) characters.set(name, (characters.get(name) ?? 0) + count)
  }
  if (system) {
    add('system prompt and instructions', system.prompt.length)
    add('tool descriptions', JSON.stringify(system.tools).length)
  }
  for (const { message, made } of messages) {
    const { bashExecution } = message
    if (bashExecution) add('your commands', bashExecution.command.length + bashExecution.output.length)
    for (const block of message.content) {
      const name = made === 'summary' ? 'summaries' : categoryOf(block, message.role)
      add(name, charactersOf(block))
    }
  }
  const sum = [...characters.values()].reduce((total, count) => total + count, 0)
  return [...characters]
    .map(([name, count]) => ({ name, tokens: Math.round((tokens * count) / sum) }))
    .sort((left, right) => right.tokens - left.tokens)
}

function categoryOf(block: Content, role: string): string {
  switch (block.type) {
    case 'text':
      return role === 'user' ? 'your messages' : role === 'assistant' ? 'answers' : 'notices'
    case 'reasoning':
      return 'reasoning'
    case 'image':
      return 'images'
    case 'tool_use':
      return 'tool calls'
    case 'tool_result':
      return 'tool output'
    default:
      return block satisfies never
  }
}

function charactersOf(block: Content): number {
  switch (block.type) {
    case 'text':
      return block.text.content.length
    case 'reasoning':
      return block.reasoning.text.length
    case 'image':
      return imageCharacters
    case 'tool_use':
      return block.toolUse.name.length + JSON.stringify(block.toolUse.input).length
    case 'tool_result': {
      const { content } = block.toolResult
      return typeof content === 'string' ? content.length : content.reduce((sum, each) => sum + charactersOf(each), 0)
    }
    default:
      return block satisfies never
  }
}

async function compactionOf(session: Session, context: Context): Promise<ContextCompaction | undefined> {
  const [first] = context.messages
  if (first?.made !== 'summary') return undefined
  const [path] = segmentsOf(await session.getTree(), session.leafId)
  const entries = path?.nodes.map(({ entry }) => entry) ?? []
  const at = entries.findIndex(({ id }) => id === first.entryId)
  const entry = entries[at]
  if (entry?.type !== 'compaction') return undefined
  return {
    beforeId: entry.parentId,
    tokensBefore: entry.compaction.tokensBefore,
    dropped: droppedBy(entry, entries).slice(-droppedLines).map(lineOf),
    messagesAfter: entries.slice(at + 1).filter(({ type }) => type === 'message').length,
  }
}

/** If the first kept entry is missing, everything before the summary is dropped. */
function droppedBy({ id, compaction }: CompactionEntry, entries: readonly Entry[]): Entry[] {
  const kept = entries.findIndex((entry) => entry.id === compaction.firstKeptEntryId)
  const end = kept === -1 ? entries.findIndex((entry) => entry.id === id) : kept
  return entries.slice(0, end).filter(({ type }) => type === 'message')
}

function lineOf(entry: Entry): string {
  const { kind, words } = describeEntry(entry)
  return `${kind}: ${words}`
}
