import { newId, type Cause, type Session } from '@tapetree/session'
import type { PermissionOption, PermissionRequestRecord, PermissionResultRecord } from '@tapetree/session/format'
import { SessionSuspended, type Answer, type Question } from '../tools/tool.ts'

export type PermissionRequest = PermissionRequestRecord['permissionRequest']
export type PermissionResult = PermissionResultRecord['permissionResult']

/** An option with a grant. The grant is stored with the request, so that it survives a restart. */
export interface RequestOption extends PermissionOption {
  grant?: Record<string, unknown>
}

/** The answer of a client. The request, not the client, determines the grant. */
export type RequestAnswer = Omit<PermissionResult, 'grant'>

/** Whether an answer was accepted. The first answer wins; later ones are told who was first. */
export type Answered = { type: 'taken' } | { type: 'too-late'; by: PermissionResult | undefined }

/**
 * Requests to the user, stored in the log. Several may be pending, any client may answer, and a request survives a
 * restart.
 */
export class Requests {
  #session: Session
  readonly #waiting = new Map<string, (result: PermissionResult) => void>()
  readonly #results = new Map<string, PermissionResult>()
  /** Requests that were answered before their call asked again after a restart. */
  readonly #early = new Map<string, PermissionRequest>()
  /** Answers that are being written: for other clients the request is already answered. */
  readonly #taken = new Map<string, { request: PermissionRequest; over: Promise<void> }>()
  #stop: () => void

  constructor(session: Session) {
    this.#session = session
    this.#stop = this.#follow(session)
  }

  /** Switches to another handle of the same session, before the current one is closed. */
  moveTo(session: Session): void {
    this.#stop()
    this.#session = session
    this.#stop = this.#follow(session)
  }

  get pending(): PermissionRequest[] {
    return this.#session.pendingPermissions.filter(({ requestId }) => !this.#taken.has(requestId))
  }

  /** Whether a request for this call is pending, or has an answer that the call has not received yet. */
  hasAsked(call: Pick<PermissionRequest, 'callId' | 'tool' | 'input'>): boolean {
    return [...this.#session.pendingPermissions, ...this.#early.values()].some((each) => isSameCall(each, call))
  }

  /** The grants in force, oldest first. */
  get grants(): readonly Record<string, unknown>[] {
    return this.#session.grants
  }

  /**
   * Waits for the answer. A pending request of an earlier process for the same call is reused if it asks the same. If it does not, because a
   * hook changed the input in another way or the sandbox is gone, for example, it is withdrawn. When the signal is aborted, the request is
   * withdrawn, unless the session is suspended.
   */
  async ask(request: Omit<PermissionRequest, 'requestId'>, signal: AbortSignal): Promise<PermissionResult> {
    signal.throwIfAborted()
    const early = this.#takeEarly(request)
    if (early) return early
    // A request whose answer is being written is reused too.
    const asked = this.#session.pendingPermissions.filter((each) => isSameCall(each, request))
    const known = asked.find((each) => asksTheSame(each, request))
    for (const each of asked) if (each !== known) await this.answer({ requestId: each.requestId, outcome: 'cancelled' })
    const requestId = known?.requestId ?? newId()
    const { promise, resolve, reject } = Promise.withResolvers<PermissionResult>()
    // The append below may take a while, and this promise has no other handler until then.
    promise.catch(() => undefined)
    this.#waiting.set(requestId, resolve)
    const withdraw = (): void => {
      // The caller is gone, whether the request is pending or was answered in time.
      const isWithdrawn = !(signal.reason instanceof SessionSuspended)
      if (isWithdrawn) void this.answer({ requestId, outcome: 'cancelled' }).catch(() => undefined)
      reject(signal.reason as Error)
    }
    signal.addEventListener('abort', withdraw, { once: true })
    try {
      if (!known)
        await this.#session.append({ type: 'permission_request', permissionRequest: { ...request, requestId } })
      if (signal.aborted) withdraw()
      return await promise
    } finally {
      signal.removeEventListener('abort', withdraw)
      // A resumed run may send the same request again before this one settles.
      if (this.#waiting.get(requestId) === resolve) this.#waiting.delete(requestId)
    }
  }

  /** Accepts an answer. An option id stands for the outcome and grant of that option. */
  async answer(answer: RequestAnswer, cause?: Cause): Promise<Answered> {
    const { requestId } = answer
    const request = this.pending.find((each) => each.requestId === requestId)
    if (!request) {
      // The first answer is known when it is durable.
      await this.#taken.get(requestId)?.over
      return { type: 'too-late', by: this.#results.get(requestId) }
    }
    const permissionResult = completed(answer, request)
    const { promise: over, resolve } = Promise.withResolvers<void>()
    this.#taken.set(requestId, { request, over })
    try {
      await this.#session.append({ type: 'permission_result', permissionResult }, cause && { cause })
    } finally {
      this.#taken.delete(requestId)
      resolve()
    }
    return { type: 'taken' }
  }

  close(): void {
    this.#stop()
  }

  #follow(session: Session): () => void {
    return session.subscribe(({ line }) => {
      if (line.type === 'permission_result') this.#settle(line.permissionResult)
    })
  }

  #settle(result: PermissionResult): void {
    if (this.#results.has(result.requestId)) return
    this.#results.set(result.requestId, result)
    const tell = this.#waiting.get(result.requestId)
    const request = this.#taken.get(result.requestId)?.request
    if (tell) tell(result)
    else if (request && result.outcome !== 'cancelled') this.#early.set(result.requestId, request)
    const [oldest] = this.#results.keys()
    if (this.#results.size > maxRemembered && oldest !== undefined) {
      this.#results.delete(oldest)
      this.#early.delete(oldest)
    }
  }

  /** The answer that this request already has; it is used once. */
  #takeEarly(request: Omit<PermissionRequest, 'requestId'>): PermissionResult | undefined {
    for (const [requestId, early] of this.#early) {
      if (!isSameCall(early, request) || !asksTheSame(early, request)) continue
      this.#early.delete(requestId)
      return this.#results.get(requestId)
    }
    return undefined
  }
}

/** For how many requests the first answer is remembered. */
const maxRemembered = 1000

/** A running command may ask about several hosts at the same time: each is a request of its own. */
function isSameCall(
  left: Pick<PermissionRequest, 'callId' | 'tool' | 'input'>,
  right: Pick<PermissionRequest, 'callId' | 'tool' | 'input'>,
): boolean {
  const isSame = left.callId !== undefined && left.callId === right.callId && left.tool === right.tool
  return isSame && left.input?.['host'] === right.input?.['host']
}

/** As a person sees it: what is to run, and where. */
function asksTheSame(
  left: Pick<PermissionRequest, 'title' | 'input'>,
  right: Pick<PermissionRequest, 'title' | 'input'>,
): boolean {
  return left.title === right.title && JSON.stringify(left.input) === JSON.stringify(right.input)
}

function completed(
  { requestId, outcome, optionId, text, clientId }: RequestAnswer,
  request: PermissionRequest,
): PermissionResult {
  const said = { requestId, ...(text !== undefined && { text }), ...(clientId !== undefined && { clientId }) }
  if (optionId === undefined) return { ...said, outcome }
  const option: RequestOption | undefined = request.options.find((each) => each.optionId === optionId)
  if (!option) throw new TypeError(`Request ${requestId} has no option ${optionId}.`)
  const { kind, grant } = option
  if (kind === 'reject_once' || kind === 'reject_always') return { ...said, outcome: 'rejected', optionId }
  return { ...said, outcome: 'allowed', optionId, ...(kind === 'allow_always' && grant && { grant }) }
}

type Request = Omit<PermissionRequest, 'requestId'>

/** Sends a question as a permission request and converts the result to an answer. Undefined if it is withdrawn. */
export async function askUser(
  { question, options }: Question,
  asker: Omit<Request, 'title' | 'options'>,
  ask: (request: Request) => Promise<PermissionResult | undefined>,
): Promise<Answer> {
  const asked = options.map(({ label }, index) => ({ optionId: String(index + 1), label, kind: 'answer' as const }))
  const { input, ...rest } = asker
  const result = await ask({ ...rest, title: question, ...(input && { input }), options: asked })
  if (!result) return { text: '', isCancelled: true }
  const chosen = asked.find(({ optionId }) => optionId === result.optionId)?.label
  return { text: result.text ?? chosen ?? '', isCancelled: result.outcome !== 'allowed' }
}
