import { hash } from 'node:crypto'

/** Secrets that are not recognized by their shape, and allowed values that look like secrets. */
export interface RedactionPolicy {
  /** Values by name that are replaced everywhere: the keys of the providers in use, secrets of the environment. */
  secrets?: Readonly<Record<string, string>>
  /**
   * Values that the user allows: the name of a secret or of a variable in text, or `sha256:` and the hash of a value in
   * hex. A value that is allowed by name is allowed everywhere.
   */
  allow?: readonly string[]
}

/** The entry for a value in `allow` that does not contain the value. */
export function allowanceOf(value: string): string {
  return `sha256:${hash('sha256', value)}`
}

/** Shorter values are common words and numbers. */
export const minLength = 8

/**
 * The variables of an environment whose names mark them as secret. Values that are paths, plain words or numbers are
 * excluded, whatever their names.
 */
export function secretsOf(environment: Readonly<Record<string, string | undefined>>): Record<string, string> {
  const secrets: Record<string, string> = {}
  for (const [name, value] of Object.entries(environment)) {
    if (value !== undefined && isSecretName(name) && isSecretValue(value)) secrets[name] = value
  }
  return secrets
}

function isSecretName(name: string): boolean {
  return /(?:^|_)(?:(?:API|APP|ACCESS|PRIVATE|SECRET|AUTH)?_?KEY|TOKEN|SECRETS?|PASS|PASSWORD|PASSWD|PASSPHRASE|PWD|PAT|CREDENTIALS?|AUTH|DSN|DATABASE_URL|WEBHOOK(?:_URL)?|CONNECTION_STRING)(?:_|$)/i.test(
    name,
  )
}

function isSecretValue(value: string): boolean {
  return value.length >= minLength && !/^(?:[\d.]+|[a-z]+|true|false|(?:\.{0,2}|~)\/.*|[A-Za-z]:\\.*)$/i.test(value)
}

/** The encodings of a value in text: plain, in JSON, in a URL, in bytes, and in base64 of surrounding text. */
export function formsOf(value: string): string[] {
  if (value.length < minLength) return []
  const bytes = Buffer.from(value)
  const asText = [
    value,
    JSON.stringify(value).slice(1, -1),
    encodeURIComponent(value.toWellFormed()),
    bytes.toString('latin1'),
  ]
  const encoded = [0, 1, 2].map((offset) => encodedAt(bytes, offset)).filter((form) => form.length >= 12)
  const asUrl = encoded.map((form) => form.replaceAll('+', '-').replaceAll('/', '_'))
  return [...new Set([...asText, ...encoded, ...asUrl])]
}

/** The base64 characters that depend only on the value if this many bytes precede it. */
function encodedAt(bytes: Buffer, offset: number): string {
  const encoded = Buffer.concat([Buffer.alloc(offset), bytes]).toString('base64')
  const start = Math.ceil((offset * 8) / 6)
  const end = Math.floor(((offset + bytes.length) * 8) / 6)
  return encoded.slice(start, end)
}
