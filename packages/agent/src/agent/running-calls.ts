import type { Content, Line, Session } from '@tapetree/session'
import { Listeners } from '@tapetree/session/util/listeners'

/** Calls that have started and have no result yet, as the log says. */
export class RunningCalls {
  readonly #toolOf = new Map<string, string>()
  readonly #changes = new Listeners<void>()
  readonly #stop: () => void

  constructor(session: Session) {
    this.#stop = session.subscribe(({ line }) => this.#take(line))
  }

  /** Resolves when this is true of the tools that run. */
  async until(isSo: (tools: readonly string[]) => boolean): Promise<void> {
    while (!isSo([...this.#toolOf.values()])) {
      const { promise, resolve } = Promise.withResolvers<void>()
      const stop = this.#changes.add(resolve)
      await promise
      stop()
    }
  }

  close(): void {
    this.#stop()
  }

  #take(line: Line): void {
    if (line.type === 'tool_start') this.#toolOf.set(line.toolStart.callId, line.toolStart.name)
    else if (line.type === 'message') this.#takeResults(line.message.content)
    else return
    this.#changes.notify()
  }

  #takeResults(content: readonly Content[]): void {
    for (const block of content) {
      if (block.type === 'tool_result') this.#toolOf.delete(block.toolResult.toolUseId)
    }
  }
}
