import { ruleSchema } from '@tapetree/agent/permissions'
import { isQuestion, type SessionHandle } from '@tapetree/client'
import type { PermissionRequest } from '@tapetree/session/view'
import { ruleText } from './run-options.ts'

/** A permission that was refused because no user was present. */
export interface Refusal {
  title: string
  /** The rule that would have allowed it, as typed after `--allow`; undefined if it always asks. */
  rules: readonly string[]
}

interface RefuseOptions {
  handle: SessionHandle
  /** Whether this client answers requests of this run. */
  isOurs: (runId: string) => boolean
  /** Whether another client, such as the writer of stdin, may still answer. */
  isSomebodyThere: () => boolean
  /** Called once for each question that waits for an answer. */
  onWaiting: (request: PermissionRequest) => void
  /** Called for a question of the agent that no client can answer. */
  onUnanswered: (request: PermissionRequest) => void
}

const noUserPresent =
  'No user is present, because this is a run without a screen. Continue without it as far as possible.'

/** Refuses requests when no user is present. Any attached screen may answer first. */
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

  /** Also called when a client has left. */
  look(): void {
    const { handle, isOurs, isSomebodyThere, onWaiting } = this.#options
    const { run, permissions } = handle.transcript
    // All requests, including those of subagents, belong to the active run.
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

  /** Permissions refused to a run. */
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
    // Another client answered first: nothing to refuse.
    handle.answer(requestId, { outcome: 'rejected', text: noUserPresent }).catch(() => undefined)
  }
}

/** The log stores with each option the rules that choosing it would add. */
function rulesOf({ options }: PermissionRequest): string[] {
  const always = options.find(({ kind }) => kind === 'allow_always') as { grant?: { rules?: unknown } } | undefined
  const rules: unknown = always?.grant?.rules
  if (!Array.isArray(rules)) return []
  return rules.flatMap((rule) => {
    const { data } = ruleSchema.safeParse(rule)
    return data ? [ruleText(data)] : []
  })
}
