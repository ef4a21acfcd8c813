import type { Transcript, SessionStore } from '@tapetree/session'
import type { Io } from '../command-line/io.ts'
import { JsonPrinter } from './json-printer.ts'
import { JsonlPrinter } from './jsonl-printer.ts'
import { Progress } from './progress.ts'
import type { RunOptions } from './run-options.ts'
import type { RunPrinter } from './run-printer.ts'
import { TextPrinter } from './text-printer.ts'

interface PrinterOptions {
  io: Io
  store: SessionStore
  sessionId: string
  format: RunOptions['format']
  /** What is on stdout already: nothing of a new session. */
  transcript: Transcript
  isNew: boolean
  /** Only the answer as a whole is printed, because it has to fit a schema. */
  isWhole: boolean
}

export interface Printers {
  printer: RunPrinter
  progress: Progress
  close: () => Promise<void>
}

/** What prints a run on stdout, and what tells of it on stderr. */
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
