import {
  asJson,
  defined,
  errorText,
  listOf,
  numberIn,
  textIn,
  type EventReader,
  type Json,
  type ResponseNotes,
} from './event-reader.ts'

/** The members that do not count as unknown. */
const knownMembers = new Set([
  ...['candidates', 'usageMetadata', 'promptFeedback'],
  ...['modelVersion', 'responseId', 'createTime', 'modelStatus'],
])

/**
 * Keeps the parts of a Gemini answer that we use; the provider package rejects an answer if any other part has an
 * unexpected shape.
 */
export class GeminiEvents implements EventReader {
  readonly #notes: ResponseNotes

  constructor(notes: ResponseNotes) {
    this.#notes = notes
  }

  read(chunk: Json): Json[] {
    if (chunk['error'] !== undefined && chunk['error'] !== null) return [{ error: errorOf(chunk['error']) }]
    const candidates = listOf(chunk['candidates']).filter(({ index }) => (numberIn(index) ?? 0) === 0)
    const { blockReason } = asJson(chunk['promptFeedback'])
    const usage = usageOf(chunk['usageMetadata'])
    const unknown = Object.keys(chunk).find((member) => !knownMembers.has(member))
    const isEmpty = candidates.length === 0 && blockReason === undefined && !usage
    if (isEmpty && unknown !== undefined) return this.#notes.skip(`event:${unknown}`)
    return [
      {
        ...defined({ responseId: textIn(chunk['responseId']) }),
        ...(candidates.length > 0 && { candidates: candidates.map((each) => this.#candidate(each)) }),
        ...(typeof blockReason === 'string' && { promptFeedback: { blockReason } }),
        ...(usage && { usageMetadata: usage }),
      },
    ]
  }

  #candidate(candidate: Json): Json {
    const given = asJson(candidate['content'])['parts']
    return defined({
      content: Array.isArray(given) ? { parts: listOf(given).flatMap((part) => this.#part(part)) } : undefined,
      finishReason: textIn(candidate['finishReason']),
      finishMessage: textIn(candidate['finishMessage']),
      continuationToken: textIn(candidate['continuationToken']),
    })
  }

  #part(part: Json): Json[] {
    const signature = defined({ thoughtSignature: textIn(part['thoughtSignature']) })
    if (part['functionCall']) return [{ functionCall: part['functionCall'], ...signature }]
    const text = textIn(part['text'])
    if (text !== undefined) return [{ text, ...(part['thought'] === true && { thought: true }), ...signature }]
    const kind = Object.keys(part).find((key) => key !== 'thoughtSignature' && key !== 'thought')
    if (kind !== undefined) this.#notes.skip(`part:${kind}`)
    // A signature without text belongs to the part before it.
    return Object.keys(signature).length > 0 ? [{ text: '', ...signature }] : []
  }
}

function errorOf(error: unknown): Json {
  const { code, status, details } = asJson(error)
  return {
    code: numberIn(code) ?? null,
    message: errorText(error),
    status: textIn(status) ?? '',
    ...(Array.isArray(details) && { details }),
  }
}

function usageOf(given: unknown): Json | undefined {
  if (typeof given !== 'object' || given === null) return undefined
  const counted = Object.entries(given).map(([name, value]) => [name, numberIn(value)] as const)
  return defined(Object.fromEntries(counted))
}
