import type { Readable } from 'node:stream'
import { OutputError } from './output-error.ts'

/** All that a command may touch of the process it runs in. Tests hand in their own. */
export interface Io {
  readonly stdin: Input
  readonly stdout: Output
  readonly stderr: Output
  readonly env: Readonly<Record<string, string | undefined>>
  /** Absolute. */
  readonly cwd: string
  readonly home: string
  /** Aborted by the first SIGINT or SIGTERM. The screen of the chat reads Ctrl-C as a key and is not told here. */
  readonly signal: AbortSignal
}

export type Input = Readable & { readonly isTTY?: boolean }

export interface Output {
  write(text: string | Uint8Array, done?: (error?: Error | null) => void): boolean
  readonly isTTY?: boolean
  readonly columns?: number
  readonly rows?: number
}

/** Resolves when the text has left, so that a slow reader slows the writer. Rejects with an `OutputError`. */
export function write(output: Output, text: string | Uint8Array): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  output.write(text, (error) => (error ? reject(new OutputError(error, { isTTY: output.isTTY === true })) : resolve()))
  return promise
}

/** Somebody sits before it who can be asked. */
export function isInteractive({ stdin, stdout }: Pick<Io, 'stdin' | 'stdout'>): boolean {
  return stdin.isTTY === true && stdout.isTTY === true
}
