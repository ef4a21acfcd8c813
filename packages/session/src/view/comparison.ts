import { SessionError } from '../errors.ts'
import type { Entry } from '../line/entry.ts'
import { isNote, type Line } from '../line/line.ts'
import type { Message } from '../line/message.ts'
import type { CheckRecord } from '../line/record.ts'
import { toldDiagnostics } from './diagnostics.ts'

/** Two entries of a session, with what each has after the last entry that both have in common. */
export interface Comparison {
  /** Null if they have nothing in common. */
  commonAncestor: string | null
  left: ComparedSide
  right: ComparedSide
  /** How the files of the left side became those of the right side. Absent if they were not compared. */
  files?: ComparedFiles
}

export interface ComparedSide {
  leafId: string
  entryCount: number
  messageCount: number
  /** From after the common ancestor to the leaf; if there are very many, the newest. */
  entries: EntrySummary[]
  usage: { inputTokens: number; outputTokens: number; totalTokens: number; cost: number }
  /** How long its runs took, without the time between them. */
  runMs: number
  /** The checks of its files, oldest first. */
  checks: CheckResult[]
}

/** One entry in a list. */
export interface EntrySummary {
  id: string
  parentId: string | null
  seq: number
  type: string
  timestamp: string
  role?: string
  /** The start of its text. */
  preview: string
  label?: string
}

export interface CheckResult extends Pick<CheckRecord['check'], 'command' | 'exitCode' | 'durationMs'> {
  timestamp: string
}

export interface ComparedFiles {
  /** Why the files cannot be compared, as a sentence. Then there are no changes. */
  problem?: string
  /** The first of them, by path. */
  changes: FileDiff[]
  changedCount: number
  /** Of all changes. */
  addedLines: number
  removedLines: number
}

export interface FileDiff {
  /** Relative to the folder of the session. */
  path: string
  change: 'added' | 'changed' | 'removed'
  /** 0 for a file that is not text. */
  addedLines: number
  removedLines: number
  isBinary: boolean
  /** A unified diff, if it was asked for. */
  patch?: string
  /** The diff is incomplete or missing, because all diffs together are too long. */
  isCut?: true
}

const maxEntries = 1000
const previewLength = 200

/** Compares two entries of a log, without their files. Throws `entry-not-found` if one does not exist. */
export function compareEntries(
  lines: Iterable<Line>,
  { left, right, labels }: { left: string; right: string; labels: ReadonlyMap<string, string> },
): Comparison {
  const log = readLog(lines)
  const leftPath = pathTo(left, log.entries)
  const rightPath = pathTo(right, log.entries)
  const onLeft = new Set(leftPath.map(({ id }) => id))
  const commonAncestor = rightPath.findLast(({ id }) => onLeft.has(id))?.id ?? null
  const sideOf = (leafId: string, path: readonly Entry[]): ComparedSide => {
    const own = path.slice(path.findIndex(({ id }) => id === commonAncestor) + 1)
    const ids = new Set([leafId, ...own.map(({ id }) => id)])
    const runs = new Set(own.flatMap((entry) => (entry.type === 'message' ? (entry.message.runId ?? []) : [])))
    return {
      leafId,
      entryCount: own.length,
      messageCount: own.filter(({ type }) => type === 'message').length,
      entries: own.slice(-maxEntries).map((entry) => summarizeEntry(entry, labels)),
      usage: usageOf(own),
      runMs: [...runs].reduce((sum, run) => sum + (log.runMs.get(run) ?? 0), 0),
      checks: log.checks.filter(({ entryId }) => entryId !== null && ids.has(entryId)).map(({ result }) => result),
    }
  }
  return { commonAncestor, left: sideOf(left, leftPath), right: sideOf(right, rightPath) }
}

interface ReadLog {
  entries: ReadonlyMap<string, Entry>
  runMs: ReadonlyMap<string, number>
  checks: readonly { entryId: string | null; result: CheckResult }[]
}

function readLog(lines: Iterable<Line>): ReadLog {
  const entries = new Map<string, Entry>()
  const runMs = new Map<string, number>()
  const checks: { entryId: string | null; result: CheckResult }[] = []
  let leafId: string | null = null
  for (const line of lines) {
    if ('parentId' in line) {
      // In a damaged log with a repeated id, the first entry counts.
      if (!entries.has(line.id)) entries.set(line.id, line)
      if (!isNote(line)) leafId = line.id
    } else if (line.type === 'leaf') leafId = line.leaf.targetId
    else if (line.type === 'run_end') runMs.set(line.runEnd.runId, line.runEnd.durationMs ?? 0)
    else if (line.type === 'check') {
      const { command, exitCode, durationMs, entryId = leafId } = line.check
      checks.push({ entryId, result: { command, exitCode, durationMs, timestamp: line.timestamp } })
    }
  }
  return { entries, runMs, checks }
}

/** From the root to the entry, inclusive. */
function pathTo(entryId: string, entries: ReadonlyMap<string, Entry>): Entry[] {
  const path = new Set<Entry>()
  let entry = entries.get(entryId)
  if (!entry) throw new SessionError('entry-not-found', `No entry ${entryId} in this session.`)
  while (entry && !path.has(entry)) {
    path.add(entry)
    entry = entry.parentId === null ? undefined : entries.get(entry.parentId)
  }
  return [...path].reverse()
}

function usageOf(entries: readonly Entry[]): ComparedSide['usage'] {
  const sum = { inputTokens: 0, outputTokens: 0, totalTokens: 0, cost: 0 }
  for (const entry of entries) {
    const usage = entry.type === 'message' ? entry.message.usage : undefined
    if (!usage) continue
    const { inputTokens = 0, outputTokens = 0, totalTokens = inputTokens + outputTokens, cost = 0 } = usage
    sum.inputTokens += inputTokens
    sum.outputTokens += outputTokens
    sum.totalTokens += totalTokens
    sum.cost += cost
  }
  return sum
}

export function summarizeEntry(entry: Entry, labels: ReadonlyMap<string, string>): EntrySummary {
  const { id, parentId, seq, type, timestamp } = entry
  const label = labels.get(id)
  return {
    id,
    parentId,
    seq,
    type,
    timestamp,
    ...(entry.type === 'message' && { role: entry.message.role }),
    preview: previewOf(entry),
    ...(label !== undefined && { label }),
  }
}

function previewOf(entry: Entry): string {
  switch (entry.type) {
    case 'message':
      return cut(wordsOf(entry.message))
    case 'compaction':
      return cut(entry.compaction.summary)
    case 'branch_summary':
      return cut(entry.branchSummary.summary)
    case 'model_change':
      return `${entry.modelChange.provider}/${entry.modelChange.modelId}`
    case 'thinking_level':
      return entry.thinkingLevel.thinkingLevel
    case 'custom':
      return entry.custom.customType
    case 'label':
      return entry.label.label ?? ''
    case 'session_info':
      return cut(entry.sessionInfo.name)
    case 'gap':
      return entry.gap.reason
    case 'system':
    case 'unknown':
      return ''
    default:
      return entry satisfies never
  }
}

function wordsOf({ role, content, bashExecution }: Message): string {
  if (bashExecution) return `$ ${bashExecution.command}`
  for (const block of content) {
    if (block.type === 'text' && block.text.content.trim() !== '') {
      const words = block.text.content.trim()
      return (role === 'custom' ? toldDiagnostics(words)?.title : undefined) ?? words
    }
    if (block.type === 'tool_use') return `${block.toolUse.name} ${JSON.stringify(block.toolUse.input)}`
    if (block.type === 'tool_result' && typeof block.toolResult.content === 'string') return block.toolResult.content
  }
  return ''
}

function cut(text: string): string {
  return text.length > previewLength ? text.slice(0, previewLength).toWellFormed() : text
}
