import { ruleSchema } from '@tapetree/agent'
import { isQuestion, type SessionHandle } from '@tapetree/client'
import type { PermissionRequest } from '@tapetree/session'
import { ruleText } from './run-options.ts'

/** A permission that was asked for and refused, because nobody was there to give it. */
export interface Refusal {
  title: string
  /** What would have allowed it, as it is typed behind `--allow`; none where it is asked every time. */
  rules: readonly string[]
}

interface RefuseOptions {
  handle: SessionHandle
  /** Whether what this run asks is for us to answer. */
  isOurs: (runId: string) => boolean
  /** Whether somebody may still answer, such as whoever writes stdin. */
  isSomebodyThere: () => boolean
  /** Told once of each question that waits for somebody. */
  onWaiting: (request: PermissionRequest) => void
  /** Told of a question of the agent's that nobody answers. */
  onUnanswered: (request: PermissionRequest) => void
}

const nobody =
  'Nobody is here to be asked, because this is a run without a screen. Go on without it as far as that is possible.'

/** Answers in the place of a person who is not there. Any other screen that is attached may answer first. */
export class RequestRefuser {
  readonly #refusals = new Map<string, Refusal[]>()
  readonly #options: RefuseOptions
  readonly #answered = new Set<string>()
  readonly #announced = new Set<string>()
  readonly #stop: () => void

  constructor(options: RefuseOptions) {
    this.#options = options
    this.#stop = options.handle.subscribe(({ type }) => {
      if (type === 'transcript' || type === 'state') this.look()
    })
  }

  /** Called too when somebody has left. */
  look(): void {
    const { handle, isOurs, isSomebodyThere, onWaiting } = this.#options
    const { run, permissions } = handle.transcript
    // What is asked, also by a subagent, is asked for the one run that goes on.
    if (!run || !isOurs(run.runId)) return
    for (const request of permissions) {
      const { requestId } = request
      if (this.#answered.has(requestId)) continue
      if (!isSomebodyThere()) this.#refuse(request, run.runId)
      else if (!this.#announced.has(requestId)) {
        this.#announced.add(requestId)
        onWaiting(request)
      }
    }
  }

  /** What was refused to a run. */
  to(runId: string): readonly Refusal[] {
    return this.#refusals.get(runId) ?? []
  }

  close(): void {
    this.#stop()
  }

  #refuse(request: PermissionRequest, runId: string): void {
    const { handle, onUnanswered } = this.#options
    const { requestId, title } = request
    this.#answered.add(requestId)
    if (isQuestion(request)) onUnanswered(request)
    else this.#refusals.set(runId, [...this.to(runId), { title, rules: rulesOf(request) }])
    // Somebody else was first: then there is nothing to refuse.
    handle.answer(requestId, { outcome: 'rejected', text: nobody }).catch(() => undefined)
  }
}

/** The log keeps with each option what choosing it would leave in force. */
function rulesOf({ options }: PermissionRequest): string[] {
  const always = options.find(({ kind }) => kind === 'allow_always') as { grant?: { rules?: unknown } } | undefined
  const rules: unknown = always?.grant?.rules
  if (!Array.isArray(rules)) return []
  return rules.flatMap((rule) => {
    const { data } = ruleSchema.safeParse(rule)
    return data ? [ruleText(data)] : []
  })
}
