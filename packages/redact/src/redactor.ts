import { redactJson } from './redact-json.ts'
import { redactText } from './redact.ts'
import { ByteStream, TextStream, type RedactingByteStream, type RedactingStream } from './redacting-stream.ts'
import type { RedactionPolicy } from './redaction-policy.ts'
import { scannersFor, type Scanner } from './scanner.ts'
import { secretsOf } from './known-values.ts'

/** The one step between what was said and what is kept. */
export interface Redactor {
  /** What it was made from, to make the same in another process. */
  readonly policy: RedactionPolicy
  text(text: string): string
  /** The same value with its strings redacted; what belongs to a provider, pictures, hashes and ids stay as they are. */
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

/** What is secret where nobody says more: what our own environment calls so. */
export function defaultPolicy(): RedactionPolicy {
  return { secrets: secretsOf(process.env) }
}
