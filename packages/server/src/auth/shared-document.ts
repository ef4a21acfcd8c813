import type { Clock } from '@tapetree/agent/run'
import { FileLockedError, withFileLock } from '@tapetree/session/stores/file'
import { replaceFile } from '@tapetree/session/util/replace-file'
import { readFileSync, statSync } from 'node:fs'
import { chmod, mkdir, readdir, readFile, rm } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { RequestProblem } from '../util/problem-error.ts'

/** A small text that several processes share, such as the tokens of a service. */
export interface SharedDocument {
  /** For messages. */
  readonly name: string
  /** Another one if the content may have changed. Asked with every request. */
  version(): string
  /** The content of that version; undefined if it was never written. Throws if it cannot be read. */
  content(): string | undefined
  /**
   * Reads and writes it in one step, whatever other processes do. Nothing is written if `change` returns undefined. It may
   * be called more than once.
   */
  change(change: (content: string | undefined) => string | undefined): Promise<void>
  /** Learns of a change now instead of some time later. Absent if `version` knows it at once. */
  reload?(): Promise<void>
}

/** A file that only its owner can read. Changes are made under a kernel lock. */
export class FileDocument implements SharedDocument {
  readonly name: string

  constructor(file: string) {
    this.name = file
  }

  /** Each version is a new inode with a later time. */
  version(): string {
    const found = statSync(this.name, { bigint: true, throwIfNoEntry: false })
    return found ? [found.dev, found.ino, found.size, found.mtimeNs].join(' ') : 'absent'
  }

  content(): string | undefined {
    try {
      return readFileSync(this.name, 'utf8')
    } catch (error) {
      return absent(error as NodeJS.ErrnoException)
    }
  }

  /** Makes sure that only its owner can read it. */
  async protect(): Promise<void> {
    await chmod(this.name, 0o600)
  }

  async change(change: (content: string | undefined) => string | undefined): Promise<void> {
    await mkdir(dirname(this.name), { recursive: true, mode: 0o700 })
    await withFileLock(this.name, async () => {
      const content = change(await readFile(this.name, 'utf8').catch(absent))
      if (content === undefined) return
      await removeLeftovers(this.name)
      await write(this.name, content)
    }).catch(unlessLocked)
  }
}

/** A document in a database; see `PostgresLogStore.document`. */
export interface DocumentTable {
  read(): Promise<{ version: number; content: string } | undefined>
  write(content: string, version: number): Promise<boolean>
}

export interface DatabaseDocumentOptions {
  name: string
  table: DocumentTable
  clock: Clock
  /** Ends the polling. */
  closing: AbortSignal
}

/**
 * A text in a database that all servers of a service share. Each knows the changes of the others within a second, and at once
 * if it is told to reload.
 */
export class DatabaseDocument implements SharedDocument {
  readonly name: string
  readonly #options: DatabaseDocumentOptions
  #known: { version: number; content: string } | undefined

  private constructor(options: DatabaseDocumentOptions) {
    this.#options = options
    this.name = options.name
  }

  static async open(options: DatabaseDocumentOptions): Promise<DatabaseDocument> {
    const document = new DatabaseDocument(options)
    await document.#read()
    void document.#poll()
    return document
  }

  version(): string {
    return String(this.#known?.version ?? 0)
  }

  content(): string | undefined {
    return this.#known?.content
  }

  async change(change: (content: string | undefined) => string | undefined): Promise<void> {
    for (;;) {
      await this.#read()
      const before = this.#known
      const content = change(before?.content)
      if (content === undefined) return
      const version = before?.version ?? 0
      if (await this.#options.table.write(content, version)) {
        this.#take({ version: version + 1, content })
        return
      }
      // Another process was faster. One of them always succeeds.
    }
  }

  async reload(): Promise<void> {
    await this.#read()
  }

  async #read(): Promise<void> {
    const found = await this.#options.table.read()
    if (found) this.#take(found)
  }

  /** An earlier read may be answered later. */
  #take(read: { version: number; content: string }): void {
    if (read.version >= (this.#known?.version ?? 0)) this.#known = read
  }

  async #poll(): Promise<void> {
    const { clock, closing } = this.#options
    while (!closing.aborted) {
      await clock.wait(pollMs, closing).catch(() => undefined)
      // While the database cannot be reached, what was last read is in force.
      await this.#read().catch(() => undefined)
    }
  }
}

const pollMs = 1000

function absent(error: NodeJS.ErrnoException): undefined {
  if (error.code !== 'ENOENT') throw error
  return undefined
}

/** Removes temporary files of processes that died. Under the lock no other process is writing. */
async function removeLeftovers(file: string): Promise<void> {
  const folder = dirname(file)
  const isOurs = (name: string): boolean => name.startsWith(`${basename(file)}.`) && name.endsWith('.tmp')
  for (const name of (await readdir(folder)).filter(isOurs)) await rm(join(folder, name), { force: true })
}

/** Replaces the file and sets a distinct time: two files written in quick succession may share time and inode. */
async function write(file: string, text: string): Promise<void> {
  await replaceFile(file, text, {
    prefix: `${basename(file)}.`,
    prepare: async (handle) => {
      const before = statSync(file, { throwIfNoEntry: false })
      const seconds = Math.max(Date.now(), Math.floor(before?.mtimeMs ?? 0) + 1) / 1000
      await handle.utimes(seconds, seconds)
    },
  })
}

function unlessLocked(error: unknown): never {
  if (!(error instanceof FileLockedError)) throw error
  throw new RequestProblem(503, 'tokens-locked', 'Another process holds the lock on the token file. Try again.')
}
