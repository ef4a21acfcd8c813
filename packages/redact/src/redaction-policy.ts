import { hash } from 'node:crypto'

/** What is secret beyond what is known by its shape, and what is not secret although it looks so. */
export interface RedactionPolicy {
  /** Values that are replaced wherever they stand, by name: the keys of the providers in use, secrets of the environment. */
  secrets?: Readonly<Record<string, string>>
  /**
   * What the user lets pass: the name of a secret or of a variable in text, or `sha256:` and the hash of a value in hex. A value that
   * is allowed by name is allowed wherever it stands.
   */
  allow?: readonly string[]
}

/** How a value is named in `allow` without being written there. */
export function allowanceOf(value: string): string {
  return `sha256:${hash('sha256', value)}`
}

/** Shorter values are words and numbers that stand everywhere. */
export const minLength = 8

/**
 * The variables of an environment whose names say that their values are secret. Values that are paths, plain words or numbers are not,
 * whatever their names say.
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

/** The ways in which a value is written into text: as it is, in JSON, in a URL, in bytes, and in base64 of something around it. */
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

/** The characters of base64 that depend on the value alone when so many bytes stand before it. */
function encodedAt(bytes: Buffer, offset: number): string {
  const encoded = Buffer.concat([Buffer.alloc(offset), bytes]).toString('base64')
  const start = Math.ceil((offset * 8) / 6)
  const end = Math.floor(((offset + bytes.length) * 8) / 6)
  return encoded.slice(start, end)
}
