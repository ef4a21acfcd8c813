import type { Entry } from '../line/entry.ts'
import type { Node } from '../state/tree.ts'

/** Entries used last, so that the next turn does not read its context again. Bounded by the size of their lines. */
export class EntryCache {
  readonly #held = new Map<Node, Entry>()
  #size = 0

  get(node: Node): Entry | undefined {
    return this.#held.get(node)
  }

  put(node: Node, entry: Entry): void {
    // Taken out and put back: the map's order is the order of use.
    if (this.#held.delete(node)) this.#size -= node.size
    this.#held.set(node, entry)
    this.#size += node.size
    if (this.#size > maxHeldBytes) this.#evict()
  }

  /** A quarter at once: a map that loses its first key again and again has to step over all that are gone. */
  #evict(): void {
    for (const oldest of this.#held.keys()) {
      if (this.#size <= maxHeldBytes * 0.75) return
      this.#held.delete(oldest)
      this.#size -= oldest.size
    }
  }
}

const maxHeldBytes = 32 * 1024 * 1024
