import type { SessionHandle } from '@tapetree/client'

/** More items than a user scrolls through; older ones are loaded again when they come into view. */
const maxItems = 3000
const keptEntries = 1500
const patience = 1000

/** How much of a long conversation stays in memory while its beginning is out of view. */
export class LoadedEntries {
  #most = maxItems

  trim(handle: SessionHandle): void {
    if (handle.transcript.path.items.length <= this.#most) return
    handle.forgetOlder(keptEntries)
    // A damaged conversation may have to keep everything: does not retry after every token.
    this.#most = Math.max(maxItems, handle.transcript.path.items.length + patience)
  }
}
