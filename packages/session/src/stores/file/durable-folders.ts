import { dirname } from 'node:path'
import type { FilePort } from './file-port.ts'

/**
 * Creates folders that survive a power cut: a folder is durable when its parent is synced. Syncs each parent
 * once, even for existing folders, because the process that made them may have died first.
 */
export class DurableFolders {
  readonly #port: FilePort
  /** Above this folder, only newly created folders are synced. */
  readonly #root: string
  readonly #safe = new Set<string>()

  constructor(port: FilePort, root: string) {
    this.#port = port
    this.#root = root
  }

  async make(folder: string): Promise<void> {
    const above = dirname(folder)
    const isThere = this.#port.exists(folder)
    if (isThere && (this.#safe.has(folder) || !folder.startsWith(this.#root) || above === folder)) return
    await this.make(above)
    if (!isThere) this.#port.makeFolder(folder)
    try {
      await this.#port.syncFolder(above)
    } catch (error) {
      // A parent that we may not read existed before, and so did this folder.
      if (!isThere || folder !== this.#root || (error as NodeJS.ErrnoException).code !== 'EACCES') throw error
    }
    this.#safe.add(folder)
  }
}
