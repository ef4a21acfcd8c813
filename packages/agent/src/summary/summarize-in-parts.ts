import type { Session } from '@tapetree/session'
import type { RequestReference } from '@tapetree/session/format'
import { ModelError, type Model, type ModelLimits } from '../models/model.ts'
import { textTokens } from './context-size.ts'
import { beginning } from './conversation-text.ts'
import { summarize, type Summary } from './summarize.ts'

export interface LongSummaryRequest {
  session: Session
  model: Model
  /** The purpose in the `usage` records. */
  purpose: 'compaction' | 'branch_summary'
  system: string
  /** The conversation in pieces; at least one. */
  pieces: readonly string[]
  /** The summary that the new one replaces. */
  previous?: string
  /** Instructions of the user for the summary. */
  instructions?: string | undefined
  leafId: string | null
  signal: AbortSignal
}

export interface LongSummary {
  text: string
  /** The last of the calls that made it. */
  request: RequestReference
}

/** Estimates may be inaccurate, and a request contains more than its text. */
const usableShare = 0.8
const maxHalvings = 6
const minRoomTokens = 64

/**
 * Summarizes a conversation of any length. If it does not fit into one call, it is summarized in parts, and each call
 * extends the summary so far. Every paid call leaves its `usage` in the log, whatever its outcome.
 */
export async function summarizeInParts(request: LongSummaryRequest): Promise<LongSummary> {
  const maxOutputTokens = maxSummaryTokens(request.model.limits)
  const room = roomFor(request, maxOutputTokens)
  let { previous, rest } = start(request, room)
  let most = Infinity
  let halvings = 0
  for (;;) {
    const part = takePart(rest, Math.min(most, Math.max(minRoomTokens, room - textTokens(previous))))
    try {
      const summary = await tellPart(part, { ...request, previous, maxOutputTokens })
      if (part.rest.length === 0) return summary
      previous = summary.text
      rest = part.rest
    } catch (error) {
      most = Math.floor(part.tokens / 2)
      if (!isOverflow(error) || ++halvings > maxHalvings || most < minRoomTokens) throw error
    }
  }
}

function isOverflow(error: unknown): boolean {
  return error instanceof ModelError && error.kind === 'context-overflow'
}

interface PartRequest extends LongSummaryRequest {
  previous: string
  maxOutputTokens: number
}

async function tellPart(part: Part, request: PartRequest): Promise<LongSummary> {
  const { session, model, purpose, system, maxOutputTokens, signal, leafId } = request
  const prompt = promptOf(part, request)
  const keepUsage = async (paid: Pick<Summary, 'usage' | 'reference'>): Promise<void> => {
    const usage = { purpose, provider: model.provider, model: model.id, tokens: paid.usage ?? {} }
    await session.append({ type: 'usage', usage }, { request: { ...paid.reference, leafId } })
  }
  const summary = await summarize({ model, system, prompt, maxOutputTokens, signal, onFailed: keepUsage })
  await keepUsage(summary)
  signal.throwIfAborted()
  if (summary.text === '') throw new ModelError('unknown', `${model.id} returned no summary.`)
  return { text: summary.text, request: { ...summary.reference, leafId } }
}

/** The maximum length of a summary. */
export function maxSummaryTokens({ contextTokens, outputTokens }: ModelLimits): number {
  return Math.max(1, Math.min(outputTokens, Math.floor(contextTokens / 8), 8000))
}

/** Tokens that one call has for the summary so far and a part of the conversation. */
function roomFor({ model, system, instructions = '' }: LongSummaryRequest, maxOutputTokens: number): number {
  const usable = Math.floor((model.limits.contextTokens - maxOutputTokens) * usableShare)
  return Math.max(minRoomTokens, usable - textTokens(system) - textTokens(instructions))
}

/** A summary from a model with a larger window may be too long to carry along: then it is summarized like the rest. */
function start(
  { previous = '', pieces }: LongSummaryRequest,
  room: number,
): { previous: string; rest: readonly string[] } {
  if (textTokens(previous) <= room / 2) return { previous, rest: pieces }
  return { previous: '', rest: [`[Summary of what came before]\n${previous}`, ...pieces] }
}

interface Part {
  text: string
  tokens: number
  rest: readonly string[]
}

/** As many pieces as fit, but at least something: a piece that is too long by itself is split. */
function takePart(pieces: readonly string[], maxTokens: number): Part {
  let tokens = 0
  let count = 0
  for (const piece of pieces) {
    const added = textTokens(piece) + 1
    if (tokens + added > maxTokens) break
    tokens += added
    count++
  }
  if (count > 0) return { text: pieces.slice(0, count).join('\n\n'), tokens, rest: pieces.slice(count) }
  const [first = '', ...rest] = pieces
  const text = fittingBeginning(first, maxTokens)
  const left = first.slice(text.length)
  return { text, tokens: textTokens(text), rest: left === '' ? rest : [left, ...rest] }
}

function fittingBeginning(text: string, maxTokens: number): string {
  let fitting = text
  for (let tokens = textTokens(fitting); tokens > maxTokens; tokens = textTokens(fitting)) {
    fitting = beginning(fitting, Math.floor(Math.min(0.9, maxTokens / tokens) * fitting.length))
  }
  return fitting
}

function promptOf({ text, rest }: Part, { previous, instructions = '' }: PartRequest): string {
  const parts = [
    previous === '' ? '' : tagged('previous-summary', previous),
    tagged('conversation', text),
    instructions === '' ? '' : `The user asks for this in particular:\n${instructions}`,
    rest.length === 0 ? '' : 'The conversation goes on after this part; you will be given the rest next.',
    'Write the summary now.',
  ]
  return parts.filter((part) => part !== '').join('\n\n')
}

/** Text that looks like its own closing tag would escape from it. */
function tagged(tag: string, text: string): string {
  return `<${tag}>\n${text.replaceAll(/<\/(conversation|previous-summary)/gi, String.raw`<\/$1`)}\n</${tag}>`
}
