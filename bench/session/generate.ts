import { closeSync, mkdirSync, openSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { newId } from '@tapetree/session'
import { sealLine, type DiskLine } from '@tapetree/session/format'

/** Writes the log of a session that was compacted: many entries before, the same few after. No sync: it is only read. */
export function writeCompactedSession(
  folder: string,
  session: { id: string; entries: number; after: number },
): { bytes: number } {
  mkdirSync(join(folder, session.id), { recursive: true })
  const log = new LineWriter(join(folder, session.id, 'events.jsonl'))
  log.line({ type: 'session', id: session.id, timestamp, version: 1, cwd: '/home/someone/project' })
  log.line({ type: 'writer', id: newId(), timestamp, writer: { term: 1, host: 'h', process: '1', format: 1 } })
  log.entry('model_change', { provider: 'some', model_id: 'model' })
  const before = session.entries - session.after - 3
  for (let index = 0; index < before; index++) log.entry('message', message(index))
  const kept = log.entry('message', message(0))
  log.entry('compaction', { summary: 'What was said before.', first_kept_entry_id: kept, tokens_before: 100_000 })
  for (let index = 0; index < session.after; index++) log.entry('message', message(index))
  return { bytes: log.close() }
}

interface PlainSession {
  id: string
  messages: number
  cwd?: string
  /** The text of a message after its number. Default: the same for all. */
  text?: (index: number) => string
}

/** Writes the log of a session that was never compacted: its context is all of it. About 70 MB for 100,000 messages. */
export function writePlainSession(folder: string, session: PlainSession): { bytes: number } {
  const { cwd = '/home/someone/project', text = () => shortWords } = session
  mkdirSync(join(folder, session.id), { recursive: true })
  const log = new LineWriter(join(folder, session.id, 'events.jsonl'))
  log.line({ type: 'session', id: session.id, timestamp, version: 1, cwd })
  log.line({ type: 'writer', id: newId(), timestamp, writer: { term: 1, host: 'h', process: '1', format: 1 } })
  for (let index = 0; index < session.messages; index++) log.entry('message', message(index, text(index)))
  return { bytes: log.close() }
}

const timestamp = '2026-11-01T12:00:00.000Z'
/** About 1 KB on disk, as an ordinary entry is. */
const longWords = 'Some words of a conversation about code, with a path like src/index.ts and a number. '.repeat(9)
const shortWords = longWords.slice(0, 450)

function message(index: number, words = longWords): Record<string, unknown> {
  const role = index % 2 === 0 ? 'user' : 'assistant'
  return { role, content: [{ type: 'text', text: { content: `${index}: ${words}` } }] }
}

class LineWriter {
  readonly #fd: number
  #seq = 0
  #parent: string | null = null
  #held: string[] = []
  #bytes = 0

  constructor(path: string) {
    this.#fd = openSync(path, 'w', 0o600)
  }

  line(line: DiskLine): void {
    this.#held.push(sealLine(line, ++this.#seq).text)
    if (this.#held.length === 2000) this.#flush()
  }

  entry(type: string, payload: Record<string, unknown>): string {
    const id = newId()
    this.line({ type, id, parent_id: this.#parent, timestamp, [type]: payload })
    this.#parent = id
    return id
  }

  close(): number {
    this.#flush()
    closeSync(this.#fd)
    return this.#bytes
  }

  #flush(): void {
    if (this.#held.length > 0) this.#bytes += writeSync(this.#fd, `${this.#held.join('\n')}\n`)
    this.#held = []
  }
}
