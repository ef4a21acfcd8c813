import { checkLine } from '../line/check-line.ts'
import type { Line } from '../line/line.ts'

/**
 * The calls above a piece of a path whose results are in it or are still to come. A result is shown with its call, so
 * the piece begins above them.
 */
export class CallsAbove {
  /** Calls further up than this are left out: a result may have no call at all. */
  static readonly maxReach = 100
  readonly #ids: Set<string>

  /** The calls whose results are still to come. */
  constructor(open: Iterable<string> = []) {
    this.#ids = new Set(open)
  }

  get areAny(): boolean {
    return this.#ids.size > 0
  }

  /** Takes the lines of the path from the newest back. */
  goBackTo(line: Line): void {
    const checked = checkLine(line)
    if (checked.type !== 'message') return
    for (const block of checked.message.content) {
      if (block.type === 'tool_use') this.#ids.delete(block.toolUse.id)
      else if (block.type === 'tool_result') this.#ids.add(block.toolResult.toolUseId)
    }
  }
}
