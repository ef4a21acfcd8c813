import type { FakeApi } from '@tapetree/agent/testing'
import { costOf, type ReadBlock, type Reading, type ReadUsage } from './read-bytes.ts'
import type { Subject } from './subjects.ts'

/** An assistant message as a line of the log has it. */
export interface LoggedMessage {
  role: string
  content: Record<string, unknown>[]
  usage?: Record<string, number>
  /** The kinds that were skipped. */
  skipped?: Record<string, number>
  /** Of the error, if the answer failed and lies beside the path. */
  kind?: string | undefined
}

/** Where the log differs from an independent reading of the bytes. */
export function compareAnswer(reading: Reading, message: LoggedMessage, subject: Subject): string[] {
  const problems = compareBlocks(reading.blocks, loggedBlocks(message, subject.api))
  if (!reading.usage) return problems
  if (!message.usage) return [...problems, 'the log has no usage']
  return [
    ...problems,
    ...compareUsage(reading.usage, message.usage),
    ...compareCost(reading.usage, message.usage['cost'] ?? Number.NaN, subject),
  ]
}

/** The log has the cost that the host reports; without a report, the cost that the prices give. Both agree within 1 %. */
function compareCost(usage: ReadUsage, logged: number, { prices }: Subject): string[] {
  const computed = costOf(prices, usage)
  const { reportedCost = computed } = usage
  const isClose = (left: number, right: number, tolerance: number): boolean =>
    Math.abs(left - right) <= tolerance * Math.abs(right) + 1e-15
  return [
    ...(isClose(logged, reportedCost, 1e-9) ? [] : [`the cost is ${logged} for ${reportedCost}`]),
    ...(isClose(computed, reportedCost, 0.01) ? [] : [`the host charges ${reportedCost} for ${computed}`]),
  ]
}

/** The unknown kinds of an answer that the log does not count. */
export function uncounted(counted: ReadonlySet<string>, { skipped = {} }: LoggedMessage): string[] {
  const kinds = Object.entries(skipped).flatMap(([kind, count]) => (count > 0 ? [kind] : []))
  return [...counted]
    .filter((name) => name !== 'no-type' && name !== 'nothing' && !kinds.some((kind) => kind.endsWith(`:${name}`)))
    .map((name) => `the log does not count the unknown ${name} among ${kinds.join(', ')}`)
}

/** Where what the log has of a broken or aborted answer is not the beginning of the whole answer. */
export function compareBeginning(reading: Reading, message: LoggedMessage, { api }: Subject): string[] {
  const problems = compareWithBeginning(reading, loggedBlocks(message, api))
  // The last reasoning of a broken answer does not name its item: it may belong to the item before it, or begin a new one.
  const asNewItem = loggedBlocks(message, api, { keepsUnnamed: true })
  return problems.length > 0 && compareWithBeginning(reading, asNewItem).length === 0 ? [] : problems
}

function compareWithBeginning(reading: Reading, logged: ReadBlock[]): string[] {
  const last = logged.length - 1
  return logged.flatMap((block, place) => {
    const whole = reading.blocks[place]
    if (whole?.type !== block.type) return [`the log has ${block.type} for ${whole?.type ?? 'nothing'} at ${place}`]
    return place < last || !isBeginning(block, whole) ? compareBlocks([whole], [block]) : []
  })
}

function isBeginning(block: ReadBlock, whole: ReadBlock): boolean {
  if (block.type === 'call' || whole.type === 'call') {
    return (
      block.type === 'call' && whole.type === 'call' && block.name === whole.name && whole.input.startsWith(block.input)
    )
  }
  return [whole.text, withoutLineBreak(whole.text)].some((text) => text.startsWith(block.text))
}

function loggedBlocks(message: LoggedMessage, api: FakeApi, { keepsUnnamed = false } = {}): ReadBlock[] {
  const blocks = message.content.map(blockOf)
  // Gemini sends pieces, and a part that is skipped may lie between two pieces of reasoning.
  const isMerged = api === 'openai' || api === 'google'
  const kept = isMerged
    ? mergeReasoning(blocks, keepsUnnamed)
    : api === 'openaiCompatible'
      ? blocks.filter(hasText)
      : blocks
  return kept.map(({ block }) => block)
}

interface LoggedBlock {
  block: ReadBlock
  itemId: string | undefined
}

function blockOf(content: Record<string, unknown>): LoggedBlock {
  const inner = content[content['type'] as string] as LoggedContent
  const { anthropic, openai, google } = inner.provider_metadata ?? {}
  const itemId = openai?.['itemId']
  switch (content['type']) {
    case 'text':
      return { block: { type: 'text', text: inner.content ?? '' }, itemId }
    case 'reasoning': {
      const { text = '', signature } = inner
      const redacted = anthropic?.['redactedData']
      return {
        block: { type: 'reasoning', text, ...(signature && { signature }), ...(redacted && { redacted }) },
        itemId,
      }
    }
    default: {
      const { id, name = '', input, partial_input: partial } = inner
      const signature = google?.['thoughtSignature']
      const block = { type: 'call' as const, id, name, input: partial ?? JSON.stringify(input) }
      return { block: { ...block, ...(signature && { signature }) }, itemId }
    }
  }
}

/** The members of text, reasoning and calls in the log. */
interface LoggedContent {
  content?: string
  text?: string
  signature?: string
  id?: string
  name?: string
  input?: unknown
  partial_input?: string
  provider_metadata?: Record<string, Record<string, string> | undefined>
}

/** Reasoning without text holds what a compatible host wants back, such as a signature. */
function hasText({ block }: LoggedBlock): boolean {
  return block.type !== 'reasoning' || block.text !== ''
}

/** The log has a block for each summary of an item. */
function mergeReasoning(blocks: LoggedBlock[], keepsUnnamed: boolean): LoggedBlock[] {
  const merged: LoggedBlock[] = []
  for (const each of blocks) {
    const last = merged.at(-1)
    const isSameItem = last?.itemId === each.itemId || (each.itemId === undefined && !keepsUnnamed)
    if (each.block.type === 'reasoning' && last?.block.type === 'reasoning' && isSameItem) {
      last.block = { ...last.block, ...each.block, text: last.block.text + each.block.text }
    } else merged.push({ ...each })
  }
  return merged
}

function compareBlocks(read: ReadBlock[], logged: ReadBlock[]): string[] {
  const kinds = (blocks: ReadBlock[]): string => blocks.map(({ type }) => type).join(' ')
  if (kinds(read) !== kinds(logged)) return [`the log has ${kinds(logged) || 'nothing'} for ${kinds(read)}`]
  return read.flatMap((block, place) => {
    const other = logged[place] as ReadBlock
    // The agent drops one line break at the very beginning of an answer.
    const isFirstText = place === 0 && block.type === 'text' && other.type === 'text'
    const isDropped = isFirstText && other.text === withoutLineBreak(block.text)
    return compareBlock(isDropped ? { ...block, text: other.text } : block, other)
  })
}

function withoutLineBreak(text: string): string {
  return text.startsWith('\n') ? text.slice(1) : text
}

function compareBlock(read: ReadBlock, logged: ReadBlock): string[] {
  const differences = Object.entries(read).flatMap(([member, value]) => {
    const have = (logged as unknown as Record<string, unknown>)[member]
    const isSame = member === 'input' ? isSameJson(String(value), String(have)) : value === undefined || value === have
    return isSame ? [] : [`${read.type} ${member} is ${JSON.stringify(have)} for ${JSON.stringify(value)}`]
  })
  return differences
}

function isSameJson(left: string, right: string): boolean {
  try {
    return JSON.stringify(JSON.parse(left)) === JSON.stringify(JSON.parse(right))
  } catch {
    return left === right
  }
}

function compareUsage(usage: ReadUsage, logged: Record<string, number>): string[] {
  const pairs: [string, number | undefined][] = [
    ['input_tokens', usage.input],
    ['output_tokens', usage.output],
    ['cache_read_tokens', usage.cacheRead],
    ['cache_write_tokens', usage.cacheWrite],
    ['reasoning_tokens', usage.reasoning],
  ]
  return pairs.flatMap(([member, count]) =>
    count === undefined || (logged[member] ?? 0) === count ? [] : [`usage ${member} is ${logged[member]} for ${count}`],
  )
}
