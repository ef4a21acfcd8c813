import type { WaitingFor } from '@tapetree/client'
import type { SessionSource } from '../../session-source.ts'
import { footerLine } from '../views/footer.ts'
import { statusLine } from '../views/status-line.ts'
import type { Appearance } from './appearance.ts'
import type { CurrentSession } from '../chat/current-session.ts'
import { SubagentCost } from './subagent-cost.ts'
import type { Transcript } from '@tapetree/session'

export interface SessionLinesOptions {
  session: CurrentSession
  source: Pick<SessionSource, 'models' | 'list'>
  appearance: Appearance
  now: () => number
  onChange: () => void
}

/** Lines about the session outside the conversation: the activity of its run, and the footer. */
export class SessionLines {
  readonly #options: SessionLinesOptions
  #waiting: { value: WaitingFor | null; since: number } | undefined
  /** By `provider/id`; undefined while it is loading or if it is unknown. */
  readonly #windows = new Map<string, number | undefined>()

  readonly #subagents: SubagentCost

  constructor(options: SessionLinesOptions) {
    this.#options = options
    this.#subagents = new SubagentCost(options)
  }

  status(width: number): string[] {
    const { session, appearance, now } = this.#options
    const { handle } = session
    if (!handle) return []
    const run = handle.state('run')
    const value = run?.waitingFor ?? null
    if (this.#waiting?.value !== value) this.#waiting = { value, since: now() }
    const line = statusLine({
      transcript: handle.transcript,
      run,
      waitingSince: this.#waiting.since,
      width,
      theme: appearance.theme,
      now: now(),
    })
    return line === undefined ? [] : [line]
  }

  footer(width: number): string {
    const { session, appearance, now } = this.#options
    const { handle, access } = session
    if (!handle || !access) return ''
    const { transcript } = handle
    const own = handle.state('usage') ?? transcript.usage
    return footerLine({
      config: handle.state('config'),
      usage: { cost: own.cost + this.#subagents.of(handle, session.cwd) },
      contextTokens: contextTokensOf(transcript),
      contextWindow: this.#window(),
      run: transcript.run,
      access,
      presence: handle.state('presence'),
      width,
      theme: appearance.theme,
      now: now(),
    })
  }

  /** The context window of the current model. Requested once, and only when there is usage to compare with it. */
  #window(): number | undefined {
    const { session, source, onChange } = this.#options
    const model = session.handle?.state('config')?.model
    if (!model || session.handle?.transcript.usage.totalTokens === 0) return undefined
    const reference = `${model.provider}/${model.modelId}`
    if (!this.#windows.has(reference)) {
      this.#windows.set(reference, undefined)
      void source.models().then(
        (models) => {
          this.#windows.set(reference, models.find((each) => each.reference === reference)?.contextTokens)
          onChange()
        },
        // Without a list of models there is no gauge. Opening the list shows the error.
        () => undefined,
      )
    }
    return this.#windows.get(reference)
  }
}

const searched = 200

/** Tokens of the last request and its answer, as the provider counted them: the size of the next context. */
function contextTokensOf({ path }: Transcript): number | undefined {
  const { items } = path
  for (let index = items.length - 1; index >= Math.max(0, items.length - searched); index--) {
    const item = items.at(index)
    // Messages before it are no longer sent.
    if (item?.type === 'compaction') return undefined
    if (item?.type !== 'assistant' || !item.usage) continue
    const { inputTokens = 0, outputTokens = 0, totalTokens } = item.usage
    return totalTokens ?? inputTokens + outputTokens
  }
  return undefined
}
