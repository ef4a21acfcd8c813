import type { SessionHandle } from '@tapetree/client'
import type { SessionSource } from '../../session-source.ts'

export interface SubagentCostOptions {
  source: Pick<SessionSource, 'list'>
  now: () => number
  onChange: () => void
}

const askEveryMs = 2000
/** A call of a subagent that is farther up has ended, and what it cost is known. */
const recentItems = 20
const listed = 500

/**
 * What the subagents of a session cost, in US dollars. Their sessions are logs of their own: the list of sessions is asked when a session
 * is shown, and from time to time while one of its newest answers calls a subagent.
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
    // What cannot be listed now is asked for again later.
    const sessions = await source.list({ limit: listed, ...(cwd !== undefined && { cwd }) }).catch(() => [])
    this.#isAsking = false
    if (sessionId !== this.#sessionId) return
    const own = sessions.filter(({ subagent, parentSession }) => subagent && parentSession === sessionId)
    const cost = own.reduce((sum, each) => sum + each.cost, 0)
    // The list has the newest sessions only: what was known does not become less.
    if (cost <= this.#cost) return
    this.#cost = cost
    onChange()
  }
}
