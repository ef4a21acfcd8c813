import type { DiskLine } from '@tapetree/session'
import { closeSync, openSync, readSync } from 'node:fs'

/** A model call in a log, as far as usage needs it. */
export type UsageLine =
  | { type: 'folder'; cwd: string }
  | {
      type: 'call'
      /** The id of the line: the same in a fork. */
      id: string
      timestamp: string
      model: string
      usage: CallUsage
    }

/** Named as in the log. */
export interface CallUsage {
  input_tokens?: number
  output_tokens?: number
  cache_read_tokens?: number
  cache_write_tokens?: number
  cost?: number
}

/**
 * The folder and the model calls of a log. Parses only lines with token counts and reads synchronously: a thousand logs take less than a
 * second.
 */
export function* usageIn(path: string): Generator<UsageLine> {
  const file = openSync(path, 'r')
  try {
    let kept = 0
    let isFirst = true
    let buffer = shared
    for (
      let count = readSync(file, buffer, { offset: kept });
      count > 0;
      count = readSync(file, buffer, { offset: kept })
    ) {
      const bytes = buffer.subarray(0, kept + count)
      const end = bytes.lastIndexOf(newline) + 1
      if (end > 0 && isFirst) yield* folderIn(bytes)
      if (end > 0) yield* callsIn(bytes.subarray(0, end))
      isFirst &&= end === 0
      kept = bytes.length - end
      // A line longer than the buffer needs a larger one.
      const next = kept < buffer.length ? buffer : Buffer.alloc(buffer.length * 2)
      bytes.copy(next, 0, end)
      buffer = next
    }
  } finally {
    closeSync(file)
  }
}

/** Shared by all reads: reading is synchronous, so two logs are never read at the same time. */
const shared = Buffer.alloc(1024 * 1024)
const newline = 0x0a
const mark = Buffer.from('"usage":')

/** In the header, which is the first line. */
function folderIn(bytes: Buffer): UsageLine[] {
  const cwd = parsed(bytes.toString('utf8', 0, bytes.indexOf(newline)))?.['cwd']
  return typeof cwd === 'string' ? [{ type: 'folder', cwd }] : []
}

function* callsIn(bytes: Buffer): Generator<UsageLine> {
  for (let at = bytes.indexOf(mark); at !== -1;) {
    const end = bytes.indexOf(newline, at)
    const line = parsed(bytes.toString('utf8', bytes.lastIndexOf(newline, at) + 1, end))
    const call = line && callOf(line)
    if (call) yield call
    at = bytes.indexOf(mark, end)
  }
}

function callOf(line: DiskLine): UsageLine | undefined {
  const { message, usage } = line as { message?: MessageCounts; usage?: UsageCounts }
  const said =
    line.type === 'usage' ? { ...usage, usage: usage?.tokens } : line.type === 'message' ? message : undefined
  if (!said?.usage) return undefined
  const model = `${said.provider ?? '?'}/${said.model ?? '?'}`
  return { type: 'call', id: line.id, timestamp: line.timestamp ?? '', model, usage: said.usage }
}

interface MessageCounts {
  provider?: string
  model?: string
  usage?: CallUsage
}

interface UsageCounts extends Omit<MessageCounts, 'usage'> {
  tokens?: CallUsage
}

function parsed(text: string): DiskLine | undefined {
  try {
    return JSON.parse(text) as DiskLine
  } catch {
    return undefined // a damaged line counts nothing; `log verify` reports it
  }
}
