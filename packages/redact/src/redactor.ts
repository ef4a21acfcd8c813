import { ByteStream, TextStream, type RedactingByteStream, type RedactingStream } from './redacting-stream.ts'
import { secretsOf, type RedactionPolicy } from './redaction-policy.ts'
import { scannersFor, type Scanner } from './scanner.ts'

/** Removes secrets from content before it is stored. */
export interface Redactor {
  /** Its policy, to create the same redactor in another process. */
  readonly policy: RedactionPolicy
  text(text: string): string
  /** The same value with its strings redacted; provider data, images, hashes and ids stay unchanged. */
  json<T>(value: T): T
  bytes(bytes: Uint8Array): Uint8Array
  /** For text that arrives in pieces. */
  stream(): RedactingStream
  /** For bytes that arrive in pieces. */
  byteStream(): RedactingByteStream
}

export function createRedactor(policy: RedactionPolicy = {}): Redactor {
  const scanners = scannersFor(policy)
  return {
    policy,
    text: (text) => redactText(text, scanners),
    json: (value) => redactJson(value, scanners),
    bytes: (bytes) => redactBytes(bytes, scanners),
    stream: () => new TextStream(scanners),
    byteStream: () => new ByteStream(scanners),
  }
}

function redactBytes(bytes: Uint8Array, scanners: readonly Scanner[]): Uint8Array {
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('latin1')
  const redacted = redactText(text, scanners)
  return redacted === text ? bytes : Buffer.from(redacted, 'latin1')
}

/** The default policy: the secrets of our own environment. */
export function defaultPolicy(): RedactionPolicy {
  return { secrets: secretsOf(process.env) }
}

/**
 * The value with all its strings redacted, including keys. Provider data, ids, hashes and images must stay unchanged.
 * Returns the same object if nothing changed.
 */
function redactJson<T>(value: T, scanners: readonly Scanner[]): T {
  return redactValue(value, { scanners, key: '' }) as T
}

interface Place {
  scanners: readonly Scanner[]
  /** The name of the value, because a secret may be recognized by its name. */
  key: string
}

function redactValue(value: unknown, place: Place): unknown {
  if (typeof value === 'string') return redactString(value, place)
  if (Array.isArray(value)) {
    const items = value.map((item) => redactValue(item, place))
    return items.some((item, index) => item !== value[index]) ? items : value
  }
  if (typeof value !== 'object' || value === null) return value
  return redactObject(value as Record<string, unknown>, place.scanners)
}

function redactObject(object: Record<string, unknown>, scanners: readonly Scanner[]): Record<string, unknown> {
  if (isPicture(object)) return object
  const entries = Object.entries(object)
  const redacted = entries.map(([key, value]): [string, unknown] => [
    redactText(key, scanners),
    isOpaque(key, value) ? value : redactValue(value, { scanners, key }),
  ])
  const isSame = redacted.every(([key, value], index) => key === entries[index]?.[0] && value === entries[index][1])
  return isSame ? object : fromEntries(redacted)
}

function redactString(text: string, { scanners, key }: Place): string {
  // As in the text of the JSON, where a secret is recognized by the name before it.
  if (key !== '' && text.length <= maxNamedLength && isOneWord(text)) {
    const lead = `${key}: "`
    const named = redactText(`${lead}${text}"`, scanners)
    if (named.startsWith(lead)) return named.slice(lead.length, -1)
  }
  return redactText(text, scanners)
}

const maxNamedLength = 4200

function isOneWord(text: string): boolean {
  return text.length >= 6 && !/[\s"'\\]/.test(text)
}

const opaqueKeys = new Set([
  ...['signature', 'thoughtSignature', 'thought_signature', 'providerMetadata', 'provider_metadata', 'providerOptions'],
  ...['encrypted_content', 'encryptedContent', 'redactedData', 'redacted_data'],
  ...['id', 'toolUseId', 'tool_use_id', 'callId', 'call_id', 'runId', 'run_id', 'submissionId', 'submission_id'],
  ...['parentId', 'parent_id', 'sha256'],
])

/** Data that a provider signed or encrypted, and identifiers. Only a value of the expected type counts. */
function isOpaque(key: string, value: unknown): boolean {
  return opaqueKeys.has(key) && (typeof value !== 'string' || !/\s/.test(value))
}

/** `{ type: 'base64', mediaType, data }`, also in the spelling of providers and MCP servers. */
function isPicture(object: Record<string, unknown>): boolean {
  const mediaType = object['mediaType'] ?? object['media_type'] ?? object['mimeType']
  return typeof object['data'] === 'string' && typeof mediaType === 'string' && object['type'] !== 'url'
}

/** Two keys that become equal are both kept. */
function fromEntries(entries: readonly [string, unknown][]): Record<string, unknown> {
  const object: Record<string, unknown> = {}
  for (const [key, value] of entries) {
    let free = key
    for (let count = 2; Object.hasOwn(object, free); count++) free = `${key} ${count}`
    Object.defineProperty(object, free, { value, enumerable: true, writable: true, configurable: true })
  }
  return object
}

/** Replaces every secret by a marker such as `[redacted: github-token]`. Redacting twice changes nothing. */
function redactText(text: string, scanners: readonly Scanner[]): string {
  return scanners.reduce((before, scanner) => {
    const { output } = scanner.scan({
      text: before,
      offset: 0,
      from: 0,
      afterSecret: -1,
      isWhole: true,
    })
    // If nothing was found, the same string is not held twice.
    return output === before ? before : output
  }, text)
}
