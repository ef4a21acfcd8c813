import { write } from 'node:fs'
import { open, readFile, rm, type FileHandle } from 'node:fs/promises'
import { join } from 'node:path'
import { Worker } from 'node:worker_threads'
import type { Content } from '@tapetree/session'
import type { LiveText } from '@tapetree/session/view'

/**
 * The text that is being streamed, kept beside the log until its entry is durable. After a crash it shows the partial
 * answer.
 */
export interface Draft {
  /** The text is in the file within 250 ms or after 4 KiB, whichever comes first. */
  add(live: LiveText): void
  /** Call when the item is in the log and nothing is in flight. */
  clear(): Promise<void>
  /** Keeps the text that is in flight. */
  close(): Promise<void>
}

/** For stores that have no folder on this machine. */
export const noDraft: Draft = { add: () => undefined, clear: () => Promise.resolve(), close: () => Promise.resolve() }

// Half of the promised 250 ms: a busy machine needs the rest.
const maxBehindMs = 125
/** How often all drafts are checked for text that is due. */
const roundMs = 25
const maxBehindLength = 4096
const fileName = 'draft.jsonl'

export function openDraft(localFolder: string | undefined): Draft {
  return localFolder === undefined ? noDraft : new DraftFile(join(localFolder, fileName))
}

/** Text of one part that has not been written yet. */
interface Unwritten {
  first: LiveText
  text: string
}

class DraftFile implements Draft {
  readonly #path: string
  #file: FileHandle | undefined
  #unwritten: Unwritten[] = []
  #length = 0
  #isEmpty = true
  /** Serializes the writes to one file. Streaming does not wait for them. */
  #lastWork: Promise<void> = Promise.resolve()
  #openWork = 0

  constructor(path: string) {
    this.#path = path
  }

  add(live: LiveText): void {
    const last = this.#unwritten.at(-1)
    if (last && last.first.item === live.item && last.first.part === live.part) last.text += live.text
    else this.#unwritten.push({ first: live, text: live.text })
    this.#length += live.text.length
    if (this.#length >= maxBehindLength) this.#flush()
    else unwrittenDrafts.add(this)
  }

  async clear(): Promise<void> {
    this.#forget()
    if (this.#isEmpty) return
    this.#isEmpty = true
    await this.#do((file) => file.truncate(0))
  }

  async close(): Promise<void> {
    // Text that is still here belongs to an answer that was not appended: the next process finds it.
    if (this.#unwritten.length > 0) this.#flush()
    await this.#lastWork
    await this.#file?.close().catch(() => undefined)
    this.#file = undefined
  }

  /** The next write for an open file, if no other write to it is in progress. Otherwise the draft writes by itself. */
  takeUnwritten(): DraftWrite | undefined {
    if (this.#file && this.#openWork === 0) return [this.#file.fd, this.#takeLines()]
    this.#flush()
    return undefined
  }

  /** Tracks a write of text from `takeUnwritten` that the caller does. */
  follow(written: Promise<void>): void {
    this.#openWork++
    this.#lastWork = written.then(() => void this.#openWork--)
  }

  #flush(): void {
    const lines = this.#takeLines()
    void this.#do((file) => file.appendFile(lines))
  }

  #takeLines(): string {
    const lines = this.#unwritten.map(({ first, text }) => `${JSON.stringify(lineOf(first, text))}\n`).join('')
    this.#forget()
    this.#isEmpty = false
    return lines
  }

  #forget(): void {
    unwrittenDrafts.delete(this)
    this.#unwritten = []
    this.#length = 0
  }

  #do(work: (file: FileHandle) => Promise<unknown>): Promise<void> {
    this.#openWork++
    this.#lastWork = this.#lastWork.then(async () => {
      try {
        this.#file ??= await open(this.#path, 'a', 0o600)
        await work(this.#file)
      } catch {
        // A draft that cannot be written is skipped.
      } finally {
        this.#openWork--
      }
    })
    return this.#lastWork
  }
}

/** The drafts of all sessions that have unwritten text, with one timer for all of them. */
class UnwrittenDrafts {
  /** When the text of each draft arrived, oldest first. */
  readonly #since = new Map<DraftFile, number>()
  #timer: NodeJS.Timeout | undefined

  add(draft: DraftFile): void {
    if (this.#since.has(draft)) return
    this.#since.set(draft, performance.now())
    this.#timer ??= setInterval(() => this.#flushDue(), roundMs).unref()
  }

  delete(draft: DraftFile): void {
    this.#since.delete(draft)
    if (this.#since.size > 0) return
    clearInterval(this.#timer)
    this.#timer = undefined
  }

  #flushDue(): void {
    const drafts: DraftFile[] = []
    const writes: DraftWrite[] = []
    const due = performance.now() - maxBehindMs
    for (const [draft, since] of this.#since) {
      if (since > due) break
      const write = draft.takeUnwritten()
      if (!write) continue
      drafts.push(draft)
      writes.push(write)
    }
    if (writes.length === 0) return
    const thread = writes.length < manyDrafts ? undefined : (writerThread ??= new WriterThread())
    const written = thread?.isReady ? thread.write(writes) : writeHere(writes)
    for (const draft of drafts) draft.follow(written)
  }
}

/** A file descriptor and the text to append to the file. */
type DraftWrite = [fd: number, lines: string]

/**
 * A write costs this thread far more than a message to another thread. From this many drafts on, that thread is worth
 * its memory.
 */
const manyDrafts = 20

async function writeHere(writes: readonly DraftWrite[]): Promise<void> {
  await Promise.all(writes.map(([fd, lines]) => new Promise<void>((resolve) => write(fd, lines, () => resolve()))))
}

const threadSource = `
const { writeSync } = require('node:fs')
const { parentPort } = require('node:worker_threads')
parentPort.on('message', ({ id, writes }) => {
  for (const [fd, lines] of writes) {
    try {
      writeSync(fd, lines)
    } catch {
      // A draft that cannot be written is skipped.
    }
  }
  parentPort.postMessage(id)
})
`

/** Writes the drafts of many sessions, one message for all of them. */
class WriterThread {
  readonly #worker = new Worker(threadSource, { eval: true, name: 'drafts', stdin: true, execArgv: [] })
  readonly #open = new Map<number, () => void>()
  #sent = 0
  /** False while the thread starts: text does not wait for it. */
  isReady = false

  constructor() {
    this.#worker.once('online', () => (this.isReady = true))
    this.#worker.on('message', (id: number) => this.#end(id))
    // A listener for messages keeps the process alive, so this comes after it.
    this.#worker.unref()
    this.#worker.on('error', () => undefined)
    this.#worker.once('exit', () => {
      writerThread = undefined
      for (const id of [...this.#open.keys()]) this.#end(id)
    })
  }

  write(writes: readonly DraftWrite[]): Promise<void> {
    const id = ++this.#sent
    // The process must not end before the text is written.
    this.#worker.ref()
    this.#worker.postMessage({ id, writes })
    return new Promise((resolve) => this.#open.set(id, resolve))
  }

  #end(id: number): void {
    this.#open.get(id)?.()
    this.#open.delete(id)
    if (this.#open.size === 0) this.#worker.unref()
  }
}

let writerThread: WriterThread | undefined

const unwrittenDrafts = new UnwrittenDrafts()

function lineOf({ item, run, part, kind, off }: LiveText, text: string): Record<string, unknown> {
  return { item, run_id: run, part, kind, off, text }
}

export interface DraftText {
  item: string
  content: Content[]
}

/** The last answer that was being streamed, as far as it was written. */
export async function readDraft(localFolder: string): Promise<DraftText | undefined> {
  const written = await readFile(join(localFolder, fileName), 'utf8').catch(() => '')
  let item: string | undefined
  let parts = new Map<number, { kind: string; text: string }>()
  for (const line of written.split('\n')) {
    const live = parseLine(line)
    if (!live) continue
    if (live.item !== item) parts = new Map()
    item = live.item
    const before = parts.get(live.part)?.text ?? ''
    // After a lost line, only the text before it is kept.
    if (live.off <= before.length)
      parts.set(live.part, { kind: live.kind, text: before.slice(0, live.off) + live.text })
  }
  if (item === undefined) return undefined
  const inOrder = [...parts].sort(([left], [right]) => left - right)
  return { item, content: inOrder.map(([, part]) => contentOf(part)) }
}

/** Only the input of a call is known, so it becomes text. */
function contentOf({ kind, text }: { kind: string; text: string }): Content {
  if (kind === 'reasoning') return { type: 'reasoning', reasoning: { text } }
  return { type: 'text', text: { content: text } }
}

function parseLine(line: string): { item: string; part: number; kind: string; off: number; text: string } | undefined {
  try {
    const { item, part, kind, off, text } = JSON.parse(line) as Record<string, unknown>
    if (typeof item !== 'string' || typeof kind !== 'string' || typeof text !== 'string') return undefined
    if (typeof part !== 'number' || typeof off !== 'number') return undefined
    return { item, part, kind, off, text }
  } catch {
    return undefined // the last line may be torn
  }
}

/** All text of the draft, for observers of a session that another process owns. */
export async function readLiveDraft(localFolder: string): Promise<LiveText[]> {
  const written = await readFile(join(localFolder, fileName), 'utf8').catch(() => '')
  return written.split('\n').flatMap((line): LiveText[] => {
    const live = parseLine(line)
    return live ? [{ type: 'delta', ...live, kind: live.kind as LiveText['kind'] }] : []
  })
}

export async function removeDraft(localFolder: string): Promise<void> {
  await rm(join(localFolder, fileName), { force: true })
}
