import { replaceFile } from '@tapetree/session/util/replace-file'
import { existsSync, readFileSync } from 'node:fs'
import { appendFile, mkdir } from 'node:fs/promises'
import { dirname } from 'node:path'

const maxEntries = 1000
/** Longer text was pasted, and is not stored. */
const longest = 10_000

/** A line of the file. A plain string is a prompt whose session was not open yet. */
type StoredPrompt = string | { text: string; session: string }

/**
 * The history of prompts, in a file with one JSON value per line that only its owner can read. Without a file, it lasts as long as the
 * process.
 */
export class History {
  readonly #file: string | undefined
  #entries: string[] = []
  #lines = 0
  #writing: Promise<void> = Promise.resolve()

  constructor(file: string | undefined) {
    this.#file = file
  }

  /** Oldest first. */
  get entries(): readonly string[] {
    return this.#entries
  }

  /** Synchronous, so that history is ready for the first key. An unreadable file counts as empty. */
  load(): void {
    if (this.#file === undefined) return
    const lines = linesOf(this.#file)
    this.#lines = lines.length
    this.#entries = [...lines.slice(-maxEntries).flatMap(read).map(textOf), ...this.#entries]
  }

  /** Rejects if the file cannot be written; the entry stays in memory. */
  async add(text: string, sessionId?: string): Promise<void> {
    if (text.trim() === '' || text.length > longest || this.#entries.at(-1) === text) return
    this.#entries = [...this.#entries.slice(-maxEntries + 1), text]
    const prompt = sessionId === undefined ? text : { text, session: sessionId }
    this.#writing = this.#writing.catch(() => undefined).then(() => this.#write(prompt))
    await this.#writing
  }

  /** Holds a lock: other terminals append too, and shortening the file would lose their entries. */
  async #write(prompt: StoredPrompt): Promise<void> {
    const file = this.#file
    if (file === undefined) return
    await mkdir(dirname(file), { recursive: true, mode: 0o700 })
    // Imported on demand: the screen must appear quickly.
    const { withFileLock } = await import('@tapetree/session/stores/file')
    await withFileLock(file, async () => {
      await appendFile(file, lineOf(prompt), { mode: 0o600 })
      this.#lines++
      if (this.#lines > 2 * maxEntries) await this.#shorten(file)
    })
  }

  /** Keeps the last entries of the file, from all terminals. */
  async #shorten(file: string): Promise<void> {
    const kept = linesOf(file).flatMap(read).slice(-maxEntries)
    await replaceFile(file, kept.map(lineOf).join(''))
    this.#lines = kept.length
  }
}

/** Removes the prompts of a session from a history file. `isFrom` decides about prompts that were stored without a session. */
export async function forgetPrompts(
  file: string,
  { sessionId, isFrom }: { sessionId: string; isFrom: (text: string) => boolean },
): Promise<void> {
  if (!existsSync(file)) return
  const { withFileLock } = await import('@tapetree/session/stores/file')
  await withFileLock(file, async () => {
    const isKept = (prompt: StoredPrompt): boolean =>
      typeof prompt === 'string' ? !isFrom(prompt) : prompt.session !== sessionId
    await replaceFile(file, linesOf(file).flatMap(read).filter(isKept).map(lineOf).join(''))
  })
}

function linesOf(file: string): string[] {
  return contentOf(file)
    .split('\n')
    .filter((line) => line !== '')
}

function contentOf(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch {
    // The file does not exist yet, or is not readable.
    return ''
  }
}

function read(line: string): StoredPrompt[] {
  try {
    const prompt = JSON.parse(line) as Partial<Record<'text' | 'session', unknown>> | string | null
    if (typeof prompt === 'string') return [prompt]
    const { text, session } = prompt ?? {}
    return typeof text === 'string' && typeof session === 'string' ? [{ text, session }] : []
  } catch {
    // A torn line of a killed process. The others are intact.
    return []
  }
}

function textOf(prompt: StoredPrompt): string {
  return typeof prompt === 'string' ? prompt : prompt.text
}

function lineOf(prompt: StoredPrompt): string {
  return `${JSON.stringify(prompt)}\n`
}
