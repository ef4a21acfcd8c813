import { createRedactor, secretsOf, type Redactor } from '@tapetree/agent/settings'
import { pino, type DestinationStream, type Logger } from 'pino'

export type Log = Pick<Logger, 'debug' | 'info' | 'warn' | 'error'>

export interface LogOptions {
  level?: 'debug' | 'info' | 'warn' | 'error' | 'silent'
  /** The destination. Default: standard error, which keeps standard output free. */
  destination?: DestinationStream
  /** Default: redacts known key formats, and secrets of the environment. */
  redactor?: Redactor
}

/** Logs one JSON object per line. Redacts tokens, cookies and keys in everything. */
export function createLog(options: LogOptions = {}): Log {
  const { level = 'info', redactor = createRedactor({ secrets: secretsOf(process.env) }) } = options
  const { destination = pino.destination({ dest: 2, sync: true }) } = options
  return pino(
    {
      level,
      base: null,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      redact: { paths: secretPaths, censor: '[redacted]' },
      serializers: { error: errorFields, err: errorFields },
      hooks: { streamWrite: (line) => redactLine(line, redactor) },
    },
    destination,
  )
}

const secretNames = [
  'authorization',
  'cookie',
  '["set-cookie"]',
  '["sec-websocket-protocol"]',
  'token',
  'code',
  'password',
]
const secretPaths = secretNames.flatMap((name) => {
  const below = name.startsWith('[') ? name : `.${name}`
  return [name, `*${below}`, `*.*${below}`]
})

/** The cause often has the only useful message. */
function errorFields(error: unknown): unknown {
  if (!(error instanceof Error)) return error
  const { name, message, stack, cause } = error
  return { name, message, stack, ...(cause !== undefined && { cause: errorFields(cause) }) }
}

function redactLine(line: string, redactor: Redactor): string {
  try {
    return `${JSON.stringify(redactor.json(withoutTokens(JSON.parse(line))))}\n`
  } catch {
    // Not JSON: redact it as text.
    return redactor.text(line)
  }
}

/** Our own tokens, anywhere in a text. */
function withoutTokens(value: unknown): unknown {
  if (typeof value === 'string') return value.replaceAll(ownToken, '[redacted]')
  if (Array.isArray(value)) return value.map(withoutTokens)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, withoutTokens(inner)]))
}

const ownToken = /tapetree_[0-9a-f]{16}_[\w-]{43}/g
