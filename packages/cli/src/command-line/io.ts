import type { Readable } from 'node:stream'
import { jsonText } from '../text/json-text.ts'
import { createInterface } from 'node:readline'

/** Everything that a command may touch of its process. Tests pass their own. */
export interface Io {
  readonly stdin: Input
  readonly stdout: Output
  readonly stderr: Output
  readonly env: Readonly<Record<string, string | undefined>>
  /** Absolute. */
  readonly cwd: string
  readonly home: string
  /** Aborted by the first SIGINT or SIGTERM. The chat screen reads Ctrl-C as a key, so it does not abort this. */
  readonly signal: AbortSignal
  /** Calls the listener on SIGHUP, which otherwise stops the command like SIGTERM. Returns a function that removes it. */
  readonly onHangup?: (listener: () => void) => () => void
  /** Lets the command take this much longer to stop after SIGTERM, which otherwise ends the process after 5 s. */
  readonly extendStop?: (ms: number) => void
}

export type Input = Readable & { readonly isTTY?: boolean }

export interface Output {
  write(text: string | Uint8Array, done?: (error?: Error | null) => void): boolean
  readonly isTTY?: boolean
  readonly columns?: number
  readonly rows?: number
}

/** Resolves when the text is written, so that a slow reader slows the writer. Rejects with an `OutputError`. */
export function write(output: Output, text: string | Uint8Array): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  output.write(text, (error) => (error ? reject(new OutputError(error, { isTTY: output.isTTY === true })) : resolve()))
  return promise
}

/** Writes a message that nothing depends on. It is dropped if it cannot be written, as when the reader is gone. */
export function notify(output: Output, text: string): void {
  write(output, text).catch(() => undefined)
}

/** Whether a user at a terminal can answer questions. */
export function isInteractive({ stdin, stdout }: Pick<Io, 'stdin' | 'stdout'>): boolean {
  return stdin.isTTY === true && stdout.isTTY === true
}

/** Output cannot be written. */
export class OutputError extends Error {
  override readonly name = 'OutputError'
  readonly code: string
  /** The reader closed the pipe: not an error. */
  readonly isUnread: boolean

  constructor(cause: Error, { isTTY }: { isTTY: boolean }) {
    super(cause.message, { cause })
    this.code = (cause as NodeJS.ErrnoException).code ?? 'unknown'
    this.isUnread = goneCodes.includes(this.code) || (this.code === 'EIO' && isTTY)
  }
}

/** A destroyed stream lost its reader at an earlier write. */
const goneCodes = ['EPIPE', 'ECONNRESET', 'ERR_STREAM_DESTROYED']

/** A result for scripts: one line. Members are in snake_case, as on disk and on the wire. */
export async function printJson({ stdout }: Pick<Io, 'stdout'>, value: unknown): Promise<void> {
  await write(stdout, `${jsonText(value)}\n`)
}

/** Asks the user on the terminal, before any screen is drawn. End of input counts as an empty answer. */
export async function askLine(
  { stdin, stderr, signal }: Pick<Io, 'stdin' | 'stderr' | 'signal'>,
  question: string,
): Promise<string> {
  signal.throwIfAborted()
  await write(stderr, question)
  const lines = createInterface({ input: stdin, terminal: false })
  const { promise, resolve, reject } = Promise.withResolvers<string>()
  const stop = (): void => reject(signal.reason as Error)
  signal.addEventListener('abort', stop, { once: true })
  lines.once('line', (line) => resolve(line.trim()))
  lines.once('close', () => resolve(''))
  try {
    return await promise
  } finally {
    signal.removeEventListener('abort', stop)
    lines.close()
  }
}

/** Asks on the terminal. Anything but yes, including end of input, is no. */
export async function askYesNo({ stdin, stderr, signal }: Io, question: string): Promise<boolean> {
  await write(stderr, `${question} [y/N] `)
  const lines = createInterface({ input: stdin, signal })
  try {
    for await (const line of lines) return /^\s*y(?:es)?\s*$/i.test(line)
    return false
  } finally {
    lines.close()
  }
}

/** Follows the conventions of `NO_COLOR` and `FORCE_COLOR`; by default only terminals get color. */
export function hasColor(output: Pick<Output, 'isTTY'>, env: Io['env']): boolean {
  const { NO_COLOR: none, FORCE_COLOR: forced, TERM: terminal } = env
  if (none !== undefined && none !== '') return false
  if (forced !== undefined && forced !== '') return forced !== '0' && forced !== 'false'
  return output.isTTY === true && terminal !== 'dumb'
}

export interface Styles {
  bold: (text: string) => string
  dim: (text: string) => string
  red: (text: string) => string
  green: (text: string) => string
  yellow: (text: string) => string
  cyan: (text: string) => string
}

export function stylesFor(output: Pick<Output, 'isTTY'>, env: Io['env']): Styles {
  const style = hasColor(output, env)
    ? (open: number, close: number) => (text: string) => `\u001b[${open}m${text}\u001b[${close}m`
    : () => (text: string) => text
  return {
    bold: style(1, 22),
    dim: style(2, 22),
    red: style(31, 39),
    green: style(32, 39),
    yellow: style(33, 39),
    cyan: style(36, 39),
  }
}
