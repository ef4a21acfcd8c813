import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

export interface DraftFileOptions {
  /** The folder of the drafts. Undefined: nothing is kept. */
  folder: string | undefined
  /** A draft comes back only where it was typed. */
  cwd: string
}

/** Typing is not slowed down by writing each letter. */
const writeAfterMs = 300
/** Longer text is not kept. */
const longest = 1_000_000

/**
 * Keeps text that was typed but not received in a file that only its owner can read, so that it survives the death of the process. Each
 * process has its own file; the next chat in the same folder takes over the newest one of a process that is gone.
 */
export class DraftFile {
  readonly #options: DraftFileOptions
  #text = ''
  #timer: NodeJS.Timeout | undefined

  constructor(options: DraftFileOptions) {
    this.#options = options
  }

  /** The draft that another process left in this folder; empty if there is none. It belongs to this process from now on. */
  take(): string {
    const { folder, cwd } = this.#options
    if (folder === undefined) return ''
    const left = namesIn(folder).flatMap((name) => readDraft(join(folder, name)) ?? [])
    // In a container, an earlier process had the same id.
    const isLeft = (pid: number): boolean => pid === process.pid || !isAlive(pid)
    const own = left.filter((draft) => draft.cwd === cwd && isLeft(draft.pid))
    const newest = own.toSorted((one, other) => one.writtenAt - other.writtenAt).at(-1)
    if (!newest) return ''
    this.keep(newest.text)
    this.flush()
    for (const { file, pid } of own) if (pid !== process.pid) rmSync(file, { force: true })
    return newest.text
  }

  keep(text: string): void {
    this.#text = text
    if (this.#options.folder === undefined) return
    this.#timer ??= setTimeout(() => this.flush(), writeAfterMs).unref()
  }

  /** Writes at once what is kept. A draft that cannot be written is only in memory. */
  flush(): void {
    const { folder, cwd } = this.#options
    if (folder === undefined || this.#timer === undefined) return
    clearTimeout(this.#timer)
    this.#timer = undefined
    const file = join(folder, `${process.pid}.json`)
    try {
      if (this.#text.trim() === '' || this.#text.length > longest) return rmSync(file, { force: true })
      mkdirSync(folder, { recursive: true, mode: 0o700 })
      const draft = { pid: process.pid, cwd, text: this.#text, writtenAt: Date.now() }
      writeFileSync(`${file}.new`, JSON.stringify(draft), { mode: 0o600 })
      renameSync(`${file}.new`, file)
    } catch {
      // The disk may be full; the text is still in the composer.
    }
  }
}

interface Draft {
  file: string
  pid: number
  cwd: string
  text: string
  writtenAt: number
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder).filter((name) => name.endsWith('.json'))
  } catch {
    // There are no drafts yet.
    return []
  }
}

function readDraft(file: string): Draft | undefined {
  try {
    const draft = JSON.parse(readFileSync(file, 'utf8')) as Partial<Record<keyof Draft, unknown>> | null
    const { pid, cwd, text, writtenAt } = draft ?? {}
    const isWhole = typeof pid === 'number' && typeof cwd === 'string' && typeof text === 'string'
    return isWhole && typeof writtenAt === 'number' ? { file, pid, cwd, text, writtenAt } : undefined
  } catch {
    // Not a draft, or another process has just taken it.
    return undefined
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}
