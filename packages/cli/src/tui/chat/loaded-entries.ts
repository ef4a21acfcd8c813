import type { SessionHandle } from '@tapetree/client'

/** More items than anybody scrolls through; what is before them is read again when it comes into sight. */
const maxItems = 3000
const keptEntries = 1500
const patience = 1000

/** How much of a long conversation is held in memory while nobody looks at its beginning. */
export class LoadedEntries {
  #most = maxItems

  trim(handle: SessionHandle): void {
    if (handle.transcript.path.items.length <= this.#most) return
    handle.forgetOlder(keptEntries)
    // A conversation with a damaged place in it may keep all: that is not tried with every word again.
    this.#most = Math.max(maxItems, handle.transcript.path.items.length + patience)
  }
}
