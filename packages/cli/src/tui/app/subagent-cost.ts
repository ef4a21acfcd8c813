import type { SessionHandle } from '@tapetree/client'
import type { SessionSource } from '../../session-source.ts'

export interface SubagentCostOptions {
  source: Pick<SessionSource, 'list'>
  now: () => number
  onChange: () => void
}

const askEveryMs = 2000
/** An earlier subagent call has ended and its cost is known. */
const recentItems = 20
const listed = 500

/**
 * The cost of the subagents of a session, in US dollars. Subagents have their own logs, so this lists sessions when a session is shown, and
 * periodically while a recent answer calls a subagent.
 */
export class SubagentCost {
  readonly #options: SubagentCostOptions
  #sessionId: string | undefined
  #cost = 0
  #asked: { seq: number; atMs: number } | undefined
  #isAsking = false

  constructor(options: SubagentCostOptions) {
    this.#options = options
  }

  /** As far as it is known; `onChange` is called when more is. */
  of(handle: SessionHandle, cwd: string | undefined): number {
    if (handle.sessionId !== this.#sessionId) {
      this.#sessionId = handle.sessionId
      this.#cost = 0
      this.#asked = undefined
    }
    if (!this.#isAsking && this.#isDue(handle)) void this.#ask(handle, cwd)
    return this.#cost
  }

  #isDue({ transcript }: SessionHandle): boolean {
    if (!this.#asked) return true
    const { seq, atMs } = this.#asked
    if (this.#options.now() - atMs < askEveryMs || (transcript.seq === seq && !transcript.run)) return false
    return transcript.path.items
      .slice(-recentItems)
      .some(
        (item) =>
          item.type === 'assistant' && item.parts.some((part) => part.type === 'tool_call' && part.name === 'task'),
      )
  }

  async #ask({ sessionId, transcript: { seq } }: SessionHandle, cwd: string | undefined): Promise<void> {
    const { source, now, onChange } = this.#options
    this.#isAsking = true
    this.#asked = { seq, atMs: now() }
    // If listing fails now, it is retried later.
    const sessions = await source.list({ limit: listed, ...(cwd !== undefined && { cwd }) }).catch(() => [])
    this.#isAsking = false
    if (sessionId !== this.#sessionId) return
    const own = sessions.filter(({ subagent, parentSession }) => subagent && parentSession === sessionId)
    const cost = own.reduce((sum, each) => sum + each.cost, 0)
    // The list has only the newest sessions: a known cost never shrinks.
    if (cost <= this.#cost) return
    this.#cost = cost
    onChange()
  }
}
