import type { Transcript, TranscriptItem } from '@tapetree/session'
import { plainItem } from '../views/plain-item.ts'

/** Which items have been said, so that each is said once and what is added to it afterwards too. */
export class HeardItems {
  #heard = new Map<string, string[]>()

  /** Without saying them: those that were there before. */
  skip(items: Iterable<TranscriptItem>): void {
    for (const item of items) this.#heard.set(item.id, plainItem(item))
  }

  /** Lines that are new. An item is said when it is in the log: half sentences are not read aloud. */
  news({ path }: Transcript, isBusy: boolean): string[] {
    const lines: string[] = []
    for (const item of path.items.slice(-window)) {
      const now = isBusy ? finished(item) : plainItem(item)
      const before = this.#heard.get(item.id)
      if (before && before.length === now.length && before.every((line, index) => line === now[index])) continue
      const known = new Set(before)
      lines.push(...now.filter((line) => !known.has(line)))
      this.#heard.set(item.id, now)
    }
    this.#forgetOldest()
    return lines
  }

  #forgetOldest(): void {
    for (const id of this.#heard.keys()) {
      if (this.#heard.size <= mostHeard) return
      this.#heard.delete(id)
    }
  }
}

/** Only the newest can change. */
const window = 50
/** Who goes back further hears the last of them once more. */
const mostHeard = 3000

/** Calls that still run are said when they are done. */
function finished(item: TranscriptItem): string[] {
  if (item.type !== 'assistant') return plainItem(item)
  const parts = item.parts.filter((part) => part.type !== 'tool_call' || part.result !== undefined)
  return plainItem({ ...item, parts })
}
