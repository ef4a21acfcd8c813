import type { Cause, NodeEntry, SystemEntry } from '../line/entry.ts'
import { textIn } from './event.ts'
import type { BlobReference, Content, ImageSource, Message, MessageError, Usage } from '../line/message.ts'

/** One item on a screen. `id` is that of its entry, which labels and branches refer to. */
export type TranscriptItem =
  | UserItem
  | AssistantItem
  | ToolResultItem
  | BashItem
  | CompactionItem
  | BranchSummaryItem
  | CustomItem
  | SystemItem
  | ModelItem
  | ThinkingLevelItem
  | GapItem

interface ItemBase {
  readonly id: string
  readonly seq: number
  readonly timestamp: string
  /** The client command that caused it: screens remove their optimistic copy. */
  readonly cause?: Cause
}

export interface UserItem extends ItemBase {
  readonly type: 'user'
  readonly content: readonly Content[]
  readonly submissionId?: string
}

export interface AssistantItem extends ItemBase {
  readonly type: 'assistant'
  /** In the order of the message's content. */
  readonly parts: readonly AssistantPart[]
  readonly model?: string
  readonly provider?: string
  readonly stopReason?: string
  readonly error?: MessageError
  readonly usage?: Usage
  readonly durationMs?: number
}

export type AssistantPart =
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'reasoning'; readonly text: string }
  | { readonly type: 'image'; readonly source: ImageSource }
  | ToolCallPart

export interface ToolCallPart {
  readonly type: 'tool_call'
  readonly callId: string
  readonly name: string
  readonly input: Record<string, unknown>
  /** `pending` without an open run means that the call has no result on this branch. */
  readonly status: 'pending' | 'running' | 'completed' | 'failed'
  readonly result?: ToolCallResult
}

export interface ToolCallResult {
  readonly callId: string
  /** The entry that contains it. */
  readonly entryId: string
  readonly isError: boolean
  readonly content: string | readonly Content[]
}

/** Results without an open call on this path. */
export interface ToolResultItem extends ItemBase {
  readonly type: 'tool_result'
  readonly results: readonly ToolCallResult[]
}

/** A command that a person ran. */
export interface BashItem extends ItemBase {
  readonly type: 'bash'
  readonly command: string
  readonly output: string
  readonly exitCode?: number
  readonly cancelled?: boolean
  readonly truncated?: boolean
  readonly outputBlob?: BlobReference
  readonly excludeFromContext?: boolean
}

export interface CompactionItem extends ItemBase {
  readonly type: 'compaction'
  readonly summary: string
  readonly firstKeptEntryId?: string
  readonly tokensBefore?: number
}

export interface BranchSummaryItem extends ItemBase {
  readonly type: 'branch_summary'
  readonly summary: string
  readonly fromId: string | null
}

export interface CustomItem extends ItemBase {
  readonly type: 'custom'
  readonly custom:
    | { readonly type: 'entry'; readonly customType: string; readonly data: Record<string, unknown> }
    /** Sent to the model, unlike an entry. */
    | { readonly type: 'message'; readonly content: readonly Content[] }
}

export interface SystemItem extends ItemBase {
  readonly type: 'system'
  readonly system: SystemEntry['system']
}

export interface ModelItem extends ItemBase {
  readonly type: 'model'
  readonly provider: string
  readonly modelId: string
}

export interface ThinkingLevelItem extends ItemBase {
  readonly type: 'thinking_level'
  readonly thinkingLevel: string
}

/** A placeholder for something that cannot be shown. */
export interface GapItem extends ItemBase {
  readonly type: 'gap'
  readonly gap:
    | { readonly type: 'lost'; readonly lines: number }
    | { readonly type: 'damaged'; readonly reason: string }
    /** An entry is referenced but missing from the log. */
    | { readonly type: 'missing' }
    /** The transcript starts in the middle of the log. */
    | { readonly type: 'not_loaded' }
}

/** What a node adds to its path. */
export interface Contribution {
  readonly item: TranscriptItem | null
  readonly results: readonly ToolCallResult[]
}

export const noContribution: Contribution = { item: null, results: [] }

export function contributionOf(entry: NodeEntry): Contribution {
  if (entry.type === 'message' && entry.message.role === 'tool') return { item: null, results: resultsOf(entry) }
  const item = itemOf(entry)
  return item ? { item, results: [] } : noContribution
}

/** The calls of an item, with their indices among its parts. */
export function callsIn(item: TranscriptItem | null): { callId: string; part: number }[] {
  if (item?.type !== 'assistant') return []
  return item.parts.flatMap((part, index) => (part.type === 'tool_call' ? [{ callId: part.callId, part: index }] : []))
}

/** The same item with one call changed; other parts keep their identity. */
export function withCall(item: AssistantItem, changed: { part: number; call: ToolCallPart }): AssistantItem {
  return { ...item, parts: item.parts.with(changed.part, changed.call) }
}

/** Whether two items look the same, so that a screen need not redraw. Compares only what a path assembles. */
export function showsTheSame(left: TranscriptItem, right: TranscriptItem): boolean {
  if (left === right) return true
  if (left.seq !== right.seq || left.id !== right.id) return false
  if (left.type === 'tool_result' && right.type === 'tool_result') {
    return isSameList(left.results, right.results)
  }
  return (
    left.type === 'assistant' && right.type === 'assistant' && isSameList(left.parts.map(fate), right.parts.map(fate))
  )
}

function isSameList(left: readonly unknown[], right: readonly unknown[]): boolean {
  return left.length === right.length && left.every((value, index) => value === right[index])
}

/** Distinguishes two versions of a part: the result by identity, or the status of a call without one. */
function fate(part: AssistantPart): unknown {
  return part.type === 'tool_call' ? (part.result ?? part.status) : part
}

/** The base is spread last: a payload of a newer version may have members of any name. */
function itemOf(entry: NodeEntry): TranscriptItem | null {
  const base = baseOf(entry)
  switch (entry.type) {
    case 'message':
      return messageItem(base, entry.message)
    case 'system':
      return { type: 'system', ...base, system: entry.system }
    case 'model_change':
      return { type: 'model', ...base, provider: entry.modelChange.provider, modelId: entry.modelChange.modelId }
    case 'thinking_level':
      return { type: 'thinking_level', ...base, thinkingLevel: entry.thinkingLevel.thinkingLevel }
    case 'compaction':
      return { ...entry.compaction, type: 'compaction', ...base }
    case 'branch_summary':
      return { ...entry.branchSummary, type: 'branch_summary', ...base }
    case 'custom':
      return { type: 'custom', ...base, custom: { ...entry.custom, type: 'entry' } }
    case 'gap':
      return { type: 'gap', ...base, gap: { type: 'damaged', reason: entry.gap.reason } }
    case 'unknown':
      return null
    default:
      entry satisfies never
      return null
  }
}

function baseOf({ id, seq, timestamp, cause }: NodeEntry): ItemBase {
  return { id, seq, timestamp, ...(cause && { cause }) }
}

function messageItem(base: ItemBase, message: Message): TranscriptItem | null {
  const { role, content } = message
  switch (role) {
    case 'user': {
      const { submissionId } = message
      return { type: 'user', ...base, content, ...(submissionId !== undefined && { submissionId }) }
    }
    case 'assistant':
      return assistantItem(base, message)
    case 'bashExecution':
      return { ...(message.bashExecution ?? { command: '', output: textIn(content) }), type: 'bash', ...base }
    case 'custom':
      return { type: 'custom', ...base, custom: { type: 'message', content } }
    case 'compactionSummary':
      return { type: 'compaction', ...base, summary: textIn(content) }
    case 'branchSummary':
      return { type: 'branch_summary', ...base, summary: textIn(content), fromId: null }
    case 'tool':
      return null
    default:
      // A role of a newer version.
      role satisfies never
      return null
  }
}

function assistantItem(base: ItemBase, message: Message): AssistantItem {
  const { model, provider, stopReason, error, usage, durationMs } = message
  return {
    type: 'assistant',
    ...base,
    parts: message.content.flatMap(assistantPart),
    ...(model !== undefined && { model }),
    ...(provider !== undefined && { provider }),
    ...(stopReason !== undefined && { stopReason }),
    ...(error && { error }),
    ...(usage && { usage }),
    ...(durationMs !== undefined && { durationMs }),
  }
}

function assistantPart(block: Content): AssistantPart[] {
  switch (block.type) {
    case 'text':
      return [{ type: 'text', text: block.text.content }]
    case 'reasoning':
      return [{ type: 'reasoning', text: block.reasoning.text }]
    case 'image':
      return [{ type: 'image', source: block.image.source }]
    case 'tool_use': {
      const { id, name, input } = block.toolUse
      return [{ type: 'tool_call', callId: id, name, input, status: 'pending' }]
    }
    case 'tool_result':
      return []
    default:
      block satisfies never
      return []
  }
}

function resultsOf({ id, message }: NodeEntry & { type: 'message' }): ToolCallResult[] {
  return message.content.flatMap((block) => {
    if (block.type !== 'tool_result') return []
    const { toolUseId, isError, content } = block.toolResult
    return [{ callId: toolUseId, entryId: id, isError: isError ?? false, content }]
  })
}
