import {
  newId,
  type Cause,
  type PermissionOption,
  type PermissionRequestRecord,
  type PermissionResultRecord,
  type Session,
} from '@tapetree/session'
import { SessionSuspended, type Answer, type Question } from '../tools/tool.ts'

export type PermissionRequest = PermissionRequestRecord['permissionRequest']
export type PermissionResult = PermissionResultRecord['permissionResult']

/** An option that, once chosen, leaves something in force. It is kept with the question, so that a restart does not lose it. */
export interface RequestOption extends PermissionOption {
  grant?: Record<string, unknown>
}

/** What a client says. What stays in force is decided by the question and not by who answers it. */
export type RequestAnswer = Omit<PermissionResult, 'grant'>

/** How an answer was taken: the first one counts, and whoever comes later is told who was first. */
export type Answered = { type: 'taken' } | { type: 'too-late'; by: PermissionResult | undefined }

/**
 * Questions to the user, kept in the log: several may wait, any client may answer, and a question asked before a restart is the
 * same question after it.
 */
export class Requests {
  #session: Session
  readonly #waiting = new Map<string, (result: PermissionResult) => void>()
  readonly #results = new Map<string, PermissionResult>()
  /** Questions that were answered while nobody waited: asked before a restart, and answered before their call asks again. */
  readonly #early = new Map<string, PermissionRequest>()
  /** Answers on their way to the disk: for everybody else the question is answered already. */
  readonly #taken = new Map<string, { request: PermissionRequest; over: Promise<void> }>()
  #stop: () => void

  constructor(session: Session) {
    this.#session = session
    this.#stop = this.#follow(session)
  }

  /** Goes on through another handle on the same session, before the one that it has is closed. */
  moveTo(session: Session): void {
    this.#stop()
    this.#session = session
    this.#stop = this.#follow(session)
  }

  get pending(): PermissionRequest[] {
    return this.#session.pendingPermissions.filter(({ requestId }) => !this.#taken.has(requestId))
  }

  /** Whether a question about this call waits for its answer, or has one that the call has not taken yet. */
  hasAsked(call: Pick<PermissionRequest, 'callId' | 'tool'>): boolean {
    return [...this.#session.pendingPermissions, ...this.#early.values()].some((each) => isSameCall(each, call))
  }

  /** What answers have left in force, oldest first. */
  get grants(): readonly Record<string, unknown>[] {
    return this.#session.grants
  }

  /**
   * Waits for the answer. A question about the same call that still waits is the same question: there is no second record. When
   * the signal is aborted the question is withdrawn, unless its run is left to be resumed.
   */
  async ask(request: Omit<PermissionRequest, 'requestId'>, signal: AbortSignal): Promise<PermissionResult> {
    signal.throwIfAborted()
    const early = this.#takeEarly(request)
    if (early) return early
    // One whose answer is on its way to the disk is the same question too.
    const known = this.#session.pendingPermissions.find((each) => isSameCall(each, request))
    const requestId = known?.requestId ?? newId()
    const { promise, resolve, reject } = Promise.withResolvers<PermissionResult>()
    // The append below may take a while, and nobody listens to this promise before it is done.
    promise.catch(() => undefined)
    this.#waiting.set(requestId, resolve)
    const withdraw = (): void => {
      // Whether it still waits or was answered in time, whoever asked is gone.
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
      // A resumed run may ask the same question again before this one is over.
      if (this.#waiting.get(requestId) === resolve) this.#waiting.delete(requestId)
    }
  }

  /** Takes an answer. One that names an option means what that option means. */
  async answer(answer: RequestAnswer, cause?: Cause): Promise<Answered> {
    const { requestId } = answer
    const request = this.pending.find((each) => each.requestId === requestId)
    if (!request) {
      // Who was first is known when that answer is durable.
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

  /** The answer that this very question already has; it is given once. */
  #takeEarly(request: Omit<PermissionRequest, 'requestId'>): PermissionResult | undefined {
    for (const [requestId, early] of this.#early) {
      if (!isSameCall(early, request) || JSON.stringify(early.input) !== JSON.stringify(request.input)) continue
      this.#early.delete(requestId)
      return this.#results.get(requestId)
    }
    return undefined
  }
}

/** Of how many questions it is remembered who answered first. */
const maxRemembered = 1000

function isSameCall(
  left: Pick<PermissionRequest, 'callId' | 'tool'>,
  right: Pick<PermissionRequest, 'callId' | 'tool'>,
): boolean {
  return left.callId !== undefined && left.callId === right.callId && left.tool === right.tool
}

function completed(
  { requestId, outcome, optionId, text, clientId }: RequestAnswer,
  request: PermissionRequest,
): PermissionResult {
  const said = { requestId, ...(text !== undefined && { text }), ...(clientId !== undefined && { clientId }) }
  if (optionId === undefined) return { ...said, outcome }
  const option: RequestOption | undefined = request.options.find((each) => each.optionId === optionId)
  if (!option) throw new TypeError(`Question ${requestId} has no option ${optionId}.`)
  const { kind, grant } = option
  if (kind === 'reject_once' || kind === 'reject_always') return { ...said, outcome: 'rejected', optionId }
  return { ...said, outcome: 'allowed', optionId, ...(kind === 'allow_always' && grant && { grant }) }
}

type Request = Omit<PermissionRequest, 'requestId'>

/** Puts a question as a record, and turns the result into an answer. `ask` gives nothing where the question was withdrawn. */
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
