import { randomBytes } from 'node:crypto'
import { open, rm, type FileHandle } from 'node:fs/promises'

/** A file beside another one, for its owner only, that is gone at the end unless somebody moved it. */
export class PrivateFile implements AsyncDisposable {
  readonly path: string
  readonly #file: FileHandle
  #size = 0

  private constructor(path: string, file: FileHandle) {
    this.path = path
    this.#file = file
  }

  static async create(beside: string): Promise<PrivateFile> {
    const path = `${beside}.${randomBytes(4).toString('hex')}.part`
    return new PrivateFile(path, await open(path, 'wx', 0o600))
  }

  get size(): number {
    return this.#size
  }

  /** Small pieces are written together. */
  async writeAll(pieces: AsyncIterable<string | Uint8Array>, signal: AbortSignal): Promise<void> {
    let waiting: Uint8Array[] = []
    let waitingBytes = 0
    const flush = async (): Promise<void> => {
      await this.#file.writev(waiting)
      this.#size += waitingBytes
      waiting = []
      waitingBytes = 0
    }
    for await (const piece of pieces) {
      signal.throwIfAborted()
      const bytes = Buffer.from(piece)
      waiting.push(bytes)
      waitingBytes += bytes.length
      if (waitingBytes >= flushBytes) await flush()
    }
    if (waiting.length > 0) await flush()
    await this.#file.sync()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#file.close()
    await rm(this.path, { force: true })
  }
}

const flushBytes = 256 * 1024
