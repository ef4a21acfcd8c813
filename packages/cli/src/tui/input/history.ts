import { replaceFile } from '@tapetree/session/util/replace-file'
import { readFileSync } from 'node:fs'
import { appendFile, mkdir } from 'node:fs/promises'
import { dirname } from 'node:path'

const maxEntries = 1000
/** What is longer was pasted, and is not kept. */
const longest = 10_000

/** What was typed, in a file of one JSON string a line that only its owner may read. Without a file it is forgotten at the end. */
export class History {
  readonly #file: string | undefined
  #entries: string[] = []
  #lines = 0
  #writing: Promise<void> = Promise.resolve()

  constructor(file: string | undefined) {
    this.#file = file
  }

  /** The oldest first. */
  get entries(): readonly string[] {
    return this.#entries
  }

  /** At once, so that it is there for the first key. A file that cannot be read is an empty one: nobody is kept from typing by it. */
  load(): void {
    if (this.#file === undefined) return
    const lines = linesOf(this.#file)
    this.#lines = lines.length
    this.#entries = [...lines.slice(-maxEntries).flatMap(read), ...this.#entries]
  }

  /** Rejects where it cannot be kept; it is remembered all the same. */
  async add(text: string): Promise<void> {
    if (text.trim() === '' || text.length > longest || this.#entries.at(-1) === text) return
    this.#entries = [...this.#entries.slice(-maxEntries + 1), text]
    this.#writing = this.#writing.catch(() => undefined).then(() => this.#write(text))
    await this.#writing
  }

  /** Under a lock: other terminals add to the file too, and would lose what they add while it is shortened. */
  async #write(text: string): Promise<void> {
    const file = this.#file
    if (file === undefined) return
    await mkdir(dirname(file), { recursive: true, mode: 0o700 })
    // Loaded when it is needed: the screen must appear quickly.
    const { withFileLock } = await import('@tapetree/session/stores/file')
    await withFileLock(file, async () => {
      await appendFile(file, `${JSON.stringify(text)}\n`, { mode: 0o600 })
      this.#lines++
      if (this.#lines > 2 * maxEntries) await this.#shorten(file)
    })
  }

  /** Keeps the last entries of the file, whichever terminal added them. */
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
    // There is none yet, or it is not ours to read.
    return ''
  }
}

function read(line: string): string[] {
  try {
    const entry: unknown = JSON.parse(line)
    return typeof entry === 'string' ? [entry] : []
  } catch {
    // A torn line of a process that was killed. The others are good.
    return []
  }
}
