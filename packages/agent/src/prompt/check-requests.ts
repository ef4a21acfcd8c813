import type { Session } from '@tapetree/session'
import { fromDisk, type DiskLine, type Line, type RequestReference } from '@tapetree/session/format'
import type { ReasoningPolicy } from '@tapetree/session/view'
import type { Model, ThinkingLevel } from '../models/model.ts'
import { inlineImages } from './images.ts'

export interface RequestCheck {
  seq: number
  entryId: string
  /** `changed`: an extension changed the messages, so the request cannot be rebuilt from the log alone. */
  outcome: 'same' | 'different' | 'changed' | 'unknown-model'
}

export interface RequestCheckOptions {
  /** The model that answered, if it is known. */
  model: (provider: string, modelId: string) => Model | undefined
  reasoning?: ReasoningPolicy
}

/** Rebuilds the request of every answer in a session from the log, and compares its hash with the recorded one. */
export async function checkRequests(session: Session, options: RequestCheckOptions): Promise<RequestCheck[]> {
  const checks: RequestCheck[] = []
  for await (const stored of session.lines()) {
    if (stored.type !== 'line') continue
    const line = fromDisk(JSON.parse(stored.text) as DiskLine, stored.seq)
    const outcome = await checkAnswer(session, line, options)
    if (outcome) checks.push({ seq: stored.seq, entryId: line.id, outcome })
  }
  return checks
}

/** The same for one answer. Undefined for an entry that no model made. */
export async function checkRequest(
  session: Session,
  entryId: string,
  options: RequestCheckOptions,
): Promise<RequestCheck['outcome'] | undefined> {
  return checkAnswer(session, await session.getEntry(entryId), options)
}

async function checkAnswer(
  session: Session,
  line: Line,
  { model: modelOf, reasoning = 'auto' }: RequestCheckOptions,
): Promise<RequestCheck['outcome'] | undefined> {
  const request = requestOf(line)
  if (line.type !== 'message' || line.message.role !== 'assistant' || !request) return undefined
  const { provider = '', model: modelId = '', thinkingLevel } = line.message
  return compare(session, request, { model: modelOf(provider, modelId), thinkingLevel, reasoning })
}

interface Sent {
  model: Model | undefined
  thinkingLevel: string | undefined
  reasoning: ReasoningPolicy
}

async function compare(session: Session, request: RequestReference, sent: Sent): Promise<RequestCheck['outcome']> {
  const { leafId, params = {}, sha256 } = request
  if (params['changedBy'] !== undefined) return 'changed'
  if (!sent.model) return 'unknown-model'
  const context = await session.getContext({ leafId, reasoning: sent.reasoning })
  const messages = context.messages.map(({ message }) => message)
  const { maxOutputTokens, temperature } = params
  const made = sent.model.prepare({
    system: context.system?.prompt ?? '',
    tools: context.system?.tools ?? [],
    messages: await inlineImages(messages, (blob) => session.getBlob(blob)),
    thinkingLevel: (sent.thinkingLevel ?? 'off') as ThinkingLevel,
    ...(typeof maxOutputTokens === 'number' && { maxOutputTokens }),
    ...(typeof temperature === 'number' && { temperature }),
  })
  return made.reference.sha256 === sha256 ? 'same' : 'different'
}

function requestOf(line: Line): RequestReference | undefined {
  return 'request' in line ? line.request : undefined
}
