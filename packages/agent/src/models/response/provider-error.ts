import { parseJson } from '@tapetree/session/util/json'
import { classifyError, type ErrorFacts } from './classify-error.ts'
import { ModelError, type ModelErrorKind } from '../model.ts'

interface ErrorContext {
  provider: string
  apiKey?: string | undefined
  now: number
}

/**
 * Converts anything that a provider package threw, or put into its stream, to the only error that leaves the adapter.
 */
export function toModelError(error: unknown, { provider, apiKey, now }: ErrorContext): ModelError {
  if (error instanceof ModelError) {
    error.message = withoutKeys(error.message, apiKey)
    return error
  }
  const facts = factsOf(error)
  const kind = ownErrors.get(facts.name) ?? classifyError(facts)
  return new ModelError(kind, sentence({ provider, apiKey, kind, facts }), {
    status: facts.status,
    retryAfterMs: retryAfterMs(facts, now),
    // The error of a provider package contains the whole request; only its cause is kept.
    cause: isApiCallError(error) ? error.cause : error,
  })
}

interface Facts extends ErrorFacts {
  name: string
  headers: Record<string, string | undefined>
  /** Its message, without the body. */
  message: string
}

function factsOf(error: unknown): Facts {
  const thrown = asRecord(error)
  const body = asRecord(thrown['data'] ?? parseJson(textOf(thrown['responseBody']) ?? ''))
  const status = statusOf(thrown) ?? statusOf(asRecord(body['error']))
  const isTransport = isTransportError(thrown, status)
  const message = wordsIn(body) ?? (isTransport ? deepestMessage(thrown) : textOf(thrown['message'])) ?? ''
  const rawBody = textOf(thrown['responseBody']) ?? JSON.stringify(thrown['data'] ?? '')
  return {
    name: textOf(thrown['name']) ?? '',
    status: status !== undefined && status >= 400 ? status : undefined,
    codes: codesOf([thrown, body, asRecord(body['error']), asRecord(asRecord(body['response'])['error'])]),
    headers: lowerCaseNames(asRecord(thrown['responseHeaders'])),
    message,
    text: `${message.slice(0, longestBody)}\n${rawBody.slice(0, longestBody)}`,
    isTransport,
  }
}

/** The message in a body, in one of the usual members. */
function wordsIn(body: Record<PropertyKey, unknown>): string | undefined {
  const { error, message, detail } = body
  return textOf(asRecord(error)['message']) ?? textOf(error) ?? textOf(message) ?? textOf(detail)
}

/** "other side closed" is more useful than "failed to process successful response". */
function deepestMessage(thrown: Record<PropertyKey, unknown>, depth = 0): string | undefined {
  const below =
    depth < 5 && thrown['cause'] !== undefined ? deepestMessage(asRecord(thrown['cause']), depth + 1) : undefined
  return below ?? textOf(thrown['message'])
}

const longestBody = 8192

/** Errors that the provider package creates itself. */
const ownErrors = new Map<string, ModelErrorKind>([
  ['AI_LoadAPIKeyError', 'auth'],
  ['AI_LoadSettingError', 'auth'],
  ['AI_InvalidArgumentError', 'invalid-request'],
  ['AI_InvalidPromptError', 'invalid-request'],
  ['AI_NoSuchModelError', 'invalid-request'],
  ['AI_UnsupportedFunctionalityError', 'invalid-request'],
  // The answer could not be read: a line that is not JSON, a chunk with an unknown shape, an incomplete stream.
  ['AI_EmptyResponseBodyError', 'network'],
  ['AI_InvalidResponseDataError', 'network'],
  ['AI_JSONParseError', 'network'],
  ['AI_TypeValidationError', 'network'],
])

/** By its marker: each provider package may have its own class. */
function isApiCallError(error: unknown): error is Error {
  return asRecord(error)[Symbol.for('vercel.ai.error.AI_APICallError')] === true
}

function isTransportError(thrown: Record<PropertyKey, unknown>, status: number | undefined): boolean {
  if (status !== undefined && status >= 400) return false
  if (isApiCallError(thrown)) return status !== undefined || thrown['isRetryable'] === true || hasSystemCode(thrown)
  // The message of the Anthropic package if the first event cannot be read.
  if (thrown['message'] === 'Expected a normalized Anthropic stream error') return true
  return hasSystemCode(thrown)
}

/** `ECONNRESET`, `UND_ERR_SOCKET` and similar codes, on the error or in its causes. */
function hasSystemCode(thrown: Record<PropertyKey, unknown>, depth = 0): boolean {
  const code = textOf(thrown['code']) ?? ''
  if (/^(?:E(?!RR_)[A-Z_]+$|UND_ERR_(?!INVALID)|ERR_(?:STREAM|SSL|TLS|HTTP2)_)|CERT/.test(code)) return true
  return depth < 5 && thrown['cause'] !== undefined && hasSystemCode(asRecord(thrown['cause']), depth + 1)
}

/** Some providers send the status as a code. */
function statusOf(value: Record<PropertyKey, unknown>): number | undefined {
  const given = value['statusCode'] ?? value['code'] ?? value['status']
  const status = typeof given === 'string' && /^\d{3}$/.test(given) ? Number(given) : given
  return typeof status === 'number' && status >= 100 && status <= 599 ? status : undefined
}

function codesOf(places: Record<PropertyKey, unknown>[]): string[] {
  const details = places.flatMap(({ details }) => (Array.isArray(details) ? details.map(asRecord) : []))
  const given = [...places, ...details].flatMap(({ code, type, status, reason }) => [code, type, status, reason])
  return given.flatMap((each) => (typeof each === 'string' ? [each.toLowerCase()] : []))
}

function sentence({
  provider,
  apiKey,
  kind,
  facts,
}: Omit<ErrorContext, 'now'> & { kind: ModelErrorKind; facts: Facts }): string {
  const status = facts.status === undefined ? '' : ` (${facts.status})`
  const said = withoutKeys(facts.message, apiKey).replace(/\s+/g, ' ').trim().slice(0, 500)
  return `${provider} ${happened[kind]}${status}${said === '' ? '.' : `: ${said}`}`
}

const happened: Record<ModelErrorKind, string> = {
  'rate-limited': 'has limited the rate of requests',
  overloaded: 'is not available at the moment',
  network: 'could not be reached or closed the connection',
  'context-overflow': 'does not accept a request of this length',
  auth: 'does not accept the API key',
  quota: 'reports that the quota or the credit is exhausted',
  refused: 'refused to answer',
  'empty-answer': 'returned an empty answer',
  'invalid-request': 'does not accept the request',
  unknown: 'failed',
}

/** Some servers repeat the key that they received. Shorter keys are placeholders, such as `none`. */
function withoutKeys(text: string, apiKey = ''): string {
  const rest = apiKey.length < 8 ? text : text.replaceAll(apiKey, '[key]')
  return rest.replace(/\b(?:sk|pk|gsk|xai|key|AIza|Bearer)[-_ ]?[A-Za-z0-9_*-]{12,}/g, '[key]')
}

function lowerCaseNames(headers: Record<PropertyKey, unknown>): Record<string, string | undefined> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), textOf(value)]))
}

function textOf(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined
}

function asRecord(value: unknown): Record<PropertyKey, unknown> {
  return typeof value === 'object' && value !== null ? (value as Record<PropertyKey, unknown>) : {}
}

interface RetryHint {
  headers: Readonly<Record<string, string | undefined>>
  /** The text in the body of the provider. */
  text: string
}

/** How long the provider asks us to wait, if it does: from its headers, else from its text. */
export function retryAfterMs({ headers, text }: RetryHint, now: number): number | undefined {
  return fromMilliseconds(headers['retry-after-ms']) ?? fromHeader(headers['retry-after'], now) ?? fromWords(text)
}

const number = /^\s*\d+(?:\.\d+)?\s*$/

function fromMilliseconds(value: string | undefined): number | undefined {
  return value !== undefined && number.test(value) ? Math.ceil(Number(value)) : undefined
}

/** Seconds, or a date. */
function fromHeader(value: string | undefined, now: number): number | undefined {
  if (value === undefined) return undefined
  if (number.test(value)) return Math.ceil(Number(value) * 1000)
  // `Date.parse` accepts nearly anything, also -5; a date has letters.
  const date = /[a-z]/i.test(value) ? Date.parse(value) : Number.NaN
  return Number.isNaN(date) ? undefined : Math.max(0, date - now)
}

/**
 * Google sends `"retryDelay": "34.07s"`. Others write it in a sentence: `try again in 6m0.5s`, `in 20ms`, `retry after
 * 58 seconds`, `try again after 1 seconds`. A number without a unit is ignored.
 */
function fromWords(text: string): number | undefined {
  const google = /"retryDelay":\s*"(\d+(?:\.\d+)?)s"/.exec(text)
  if (google) return Math.ceil(Number(google[1]) * 1000)
  const sentence = /\b(?:try again|retry) (?:in|after) ((?:\d{1,9}(?:\.\d{1,9})? ?[a-z]{1,12}[ ,]{0,2}){1,4})/i.exec(
    text,
  )
  let waitMs: number | undefined
  for (const [, amount, unit = ''] of (sentence?.[1] ?? '').matchAll(/(\d+(?:\.\d+)?) ?([a-z]+)/gi)) {
    const unitMs = unitsInMs.find(([pattern]) => pattern.test(unit))?.[1]
    if (unitMs === undefined) break
    waitMs = (waitMs ?? 0) + Number(amount) * unitMs
  }
  return waitMs === undefined ? undefined : Math.ceil(waitMs)
}

const unitsInMs: readonly [unit: RegExp, ms: number][] = [
  [/^(?:ms|milliseconds?)$/i, 1],
  [/^(?:s|secs?|seconds?)$/i, 1000],
  [/^(?:m|mins?|minutes?)$/i, 60_000],
  [/^(?:h|hrs?|hours?)$/i, 3_600_000],
  [/^(?:d|days?)$/i, 86_400_000],
]
