import { dirname } from 'node:path'
import type { FilePort } from './file-port.ts'

/**
 * Makes folders that survive a power cut: a folder is safe when the one above it is synced. That is done once for each, also
 * where it was there already, because whoever made it may have died before.
 */
export class DurableFolders {
  readonly #port: FilePort
  /** Above this one only what has to be made is ours to sync. */
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
      // A folder above ours that may not be read was made by somebody else, and so was ours.
      if (!isThere || folder !== this.#root || (error as NodeJS.ErrnoException).code !== 'EACCES') throw error
    }
    this.#safe.add(folder)
  }
}
