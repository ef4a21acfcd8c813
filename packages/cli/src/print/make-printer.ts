import type { SessionStore } from '@tapetree/session'
import type { Transcript } from '@tapetree/session/view'
import type { Io } from '../command-line/io.ts'
import { JsonPrinter, JsonlPrinter } from './json-printer.ts'
import { Progress } from './progress.ts'
import type { RunOptions } from './run-options.ts'
import type { RunPrinter } from './run-result.ts'
import { TextPrinter } from './text-printer.ts'
import type { SessionHandle } from '@tapetree/client'

interface PrinterOptions {
  io: Io
  store: SessionStore
  sessionId: string
  format: RunOptions['format']
  /** The last line already printed; none for a new session. */
  transcript: Transcript
  isNew: boolean
  /** Prints only the complete answer, because it must match a schema. */
  isWhole: boolean
}

export interface Printers {
  printer: RunPrinter
  progress: Progress
  close: () => Promise<void>
}

/** Prints a run on stdout, and its progress on stderr. */
export async function makePrinters(options: PrinterOptions): Promise<Printers> {
  const { io, store, sessionId, format, transcript, isNew, isWhole } = options
  const after = transcript.seq
  const common = { io, after }
  if (format === 'text') {
    const printer = new TextPrinter(io.stdout, { after, isWhole })
    const progress = new Progress({ ...common, showsWords: !printer.streams, endLine: () => printer.endLine() })
    return { printer, progress, close: async () => undefined }
  }
  const progress = new Progress({ ...common, showsWords: true, endLine: async () => undefined })
  if (format === 'json') return { printer: new JsonPrinter(io.stdout), progress, close: async () => undefined }
  const session = await store.open(sessionId, { readOnly: true })
  const printer = new JsonlPrinter({ stdout: io.stdout, session, after: isNew ? 0 : after })
  return { printer, progress, close: () => session.close() }
}

interface PacedPrinterOptions {
  print: (transcript: Transcript) => Promise<void>
  /** Output is no longer possible. */
  onFailure: () => void
}

/** Prints a transcript as it grows. A slow reader gets larger chunks but misses nothing. */
export class PacedPrinter {
  readonly #handle: SessionHandle
  readonly #options: PacedPrinterOptions
  readonly #stop: () => void
  #isDue = false
  #printing: Promise<void> | undefined
  #failure: Error | undefined

  constructor(handle: SessionHandle, options: PacedPrinterOptions) {
    this.#handle = handle
    this.#options = options
    this.#stop = handle.subscribe(({ type }) => {
      if (type === 'transcript') this.#wake()
    })
  }

  /** Resolves when everything so far is printed. Rejects if printing fails. */
  async settled(): Promise<void> {
    this.#wake()
    await this.#printing
    if (this.#failure !== undefined) throw this.#failure
  }

  close(): void {
    this.#stop()
  }

  #wake(): void {
    this.#isDue = true
    this.#printing ??= this.#printAll().finally(() => (this.#printing = undefined))
  }

  async #printAll(): Promise<void> {
    while (this.#isDue && this.#failure === undefined) {
      this.#isDue = false
      try {
        await this.#options.print(this.#handle.transcript)
      } catch (error) {
        this.#failure = error instanceof Error ? error : new Error(String(error))
        this.#options.onFailure()
      }
    }
  }
}
