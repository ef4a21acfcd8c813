import { PassThrough, Readable } from 'node:stream'
import type { Io, Output } from '../command-line/io.ts'

export interface TestIoOptions {
  stdin?: string
  env?: Io['env']
  cwd?: string
  home?: string
  signal?: AbortSignal
  /** Both are terminals, as if a user were present. */
  isTTY?: boolean
  columns?: number
}

/** An `Io` that records what is written. */
export interface TestIo extends Io {
  readonly out: () => string
  readonly err: () => string
}

export function testIo(options: TestIoOptions = {}): TestIo {
  const { stdin, env = {}, cwd = process.cwd(), home = '/nonexistent', signal, isTTY = false, columns } = options
  const out = new Kept(isTTY, columns)
  const err = new Kept(isTTY, columns)
  const input = stdin === undefined ? new PassThrough().end() : Readable.from([Buffer.from(stdin)])
  return {
    stdin: Object.assign(input, { isTTY }),
    stdout: out,
    stderr: err,
    env,
    cwd,
    home,
    signal: signal ?? new AbortController().signal,
    out: () => out.text,
    err: () => err.text,
  }
}

class Kept implements Output {
  readonly isTTY: boolean
  readonly columns?: number
  #bytes: Buffer[] = []

  constructor(isTTY: boolean, columns: number | undefined) {
    this.isTTY = isTTY
    if (columns !== undefined) this.columns = columns
  }

  get text(): string {
    return Buffer.concat(this.#bytes).toString()
  }

  write(text: string | Uint8Array, done?: (error?: Error | null) => void): boolean {
    this.#bytes.push(Buffer.from(text))
    if (done) queueMicrotask(done)
    return true
  }
}
