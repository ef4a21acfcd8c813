import { replaceFile } from '@tapetree/session/util/replace-file'
import { readFileSync } from 'node:fs'
import { appendFile, mkdir } from 'node:fs/promises'
import { dirname } from 'node:path'

const maxEntries = 1000
/** Longer text was pasted, and is not stored. */
const longest = 10_000

/**
 * The history of prompts, in a file with one JSON string per line that only its owner can read. Without a file, it lasts as long as the
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
    this.#entries = [...lines.slice(-maxEntries).flatMap(read), ...this.#entries]
  }

  /** Rejects if the file cannot be written; the entry stays in memory. */
  async add(text: string): Promise<void> {
    if (text.trim() === '' || text.length > longest || this.#entries.at(-1) === text) return
    this.#entries = [...this.#entries.slice(-maxEntries + 1), text]
    this.#writing = this.#writing.catch(() => undefined).then(() => this.#write(text))
    await this.#writing
  }

  /** Holds a lock: other terminals append too, and shortening the file would lose their entries. */
  async #write(text: string): Promise<void> {
    const file = this.#file
    if (file === undefined) return
    await mkdir(dirname(file), { recursive: true, mode: 0o700 })
    // Imported on demand: the screen must appear quickly.
    const { withFileLock } = await import('@tapetree/session/stores/file')
    await withFileLock(file, async () => {
      await appendFile(file, `${JSON.stringify(text)}\n`, { mode: 0o600 })
      this.#lines++
      if (this.#lines > 2 * maxEntries) await this.#shorten(file)
    })
  }

  /** Keeps the last entries of the file, from all terminals. */
  async #shorten(file: string): Promise<void> {
    const kept = linesOf(file).flatMap(read).slice(-maxEntries)
    await replaceFile(file, kept.map((entry) => `${JSON.stringify(entry)}\n`).join(''))
    this.#lines = kept.length
  }
}

function linesOf(file: string): string[] {
  return textOf(file)
    .split('\n')
    .filter((line) => line !== '')
}

function textOf(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch {
    // The file does not exist yet, or is not readable.
    return ''
  }
}

function read(line: string): string[] {
  try {
    const entry: unknown = JSON.parse(line)
    return typeof entry === 'string' ? [entry] : []
  } catch {
    // A torn line of a killed process. The others are intact.
    return []
  }
}
