import type {
  CreateElicitationRequest,
  PermissionOption,
  RequestPermissionRequest,
} from '@agentclientprotocol/sdk/unstable'
import { isQuestion, type RequestAnswer, type SessionHandle } from '@tapetree/client'
import { permissionText } from '@tapetree/session/screen'
import type { PermissionRequest } from '@tapetree/session/view'
import type { Editor } from './editor.ts'
import { withOldText, type SessionUpdates, type StoredContent } from './session-updates.ts'
import { fenced, intendedChange, shownCall, textContent } from './tool-calls.ts'

export interface EditorRequestsOptions {
  handle: SessionHandle
  cwd: string
  editor: Editor
  updates: Pick<SessionUpdates, 'callIdOf'>
  stored: StoredContent
  /** Whether a prompt of this editor has led to the request. */
  isOwn: (request: PermissionRequest) => boolean
}

/** Passes permission requests and questions of a session to the editor. The first answer from any screen wins. */
export class EditorRequests {
  readonly #options: EditorRequestsOptions
  readonly #asked = new Map<string, AbortController>()

  constructor(options: EditorRequestsOptions) {
    this.#options = options
  }

  /** Asks what is new, and withdraws what was answered elsewhere. */
  look(): void {
    const { permissions } = this.#options.handle.transcript
    for (const request of permissions) {
      if (this.#asked.has(request.requestId)) continue
      const withdrawn = new AbortController()
      this.#asked.set(request.requestId, withdrawn)
      // It was answered elsewhere, or the editor cannot ask: then it waits for another screen or the end of the run.
      this.#ask(request, withdrawn.signal).catch(() => undefined)
    }
    const open = new Set(permissions.map(({ requestId }) => requestId))
    for (const [requestId, withdrawn] of this.#asked) {
      if (open.has(requestId)) continue
      this.#asked.delete(requestId)
      withdrawn.abort()
    }
  }

  close(): void {
    for (const withdrawn of this.#asked.values()) withdrawn.abort()
  }

  async #ask(request: PermissionRequest, signal: AbortSignal): Promise<void> {
    const { handle, editor } = this.#options
    const asksForm = isQuestion(request) && editor.features.forms
    const answer = asksForm ? await this.#askForm(request, signal) : await this.#askPermission(request, signal)
    if (answer && !signal.aborted) await handle.answer(request.requestId, answer)
  }

  async #askPermission(request: PermissionRequest, signal: AbortSignal): Promise<RequestAnswer | undefined> {
    const { outcome } = await this.#options.editor.requestPermission(await this.#permissionOf(request), signal)
    if (outcome.outcome === 'cancelled') return this.#dismissed(request)
    return outcome.optionId === noAnswer ? { outcome: 'cancelled' } : { optionId: outcome.optionId }
  }

  async #askForm(request: PermissionRequest, signal: AbortSignal): Promise<RequestAnswer | undefined> {
    const answered = await this.#options.editor.elicit(this.#formOf(request), signal)
    if (answered.action === 'cancel') return this.#dismissed(request)
    const text = answered.action === 'accept' ? (answered as { content?: FormContent }).content?.['answer'] : undefined
    if (typeof text !== 'string' || text === '') return { outcome: 'cancelled' }
    const option = request.options.find(({ label, kind }) => kind === 'answer' && label === text)
    return option ? { optionId: option.optionId } : { text }
  }

  /**
   * An editor that cancels a prompt dismisses all requests of the session, as the protocol says. Those of other screens
   * stay pending.
   */
  #dismissed(request: PermissionRequest): RequestAnswer | undefined {
    return this.#options.isOwn(request) ? { outcome: 'cancelled' } : undefined
  }

  /** Nothing of what the user decides on is cut. */
  async #permissionOf(request: PermissionRequest): Promise<RequestPermissionRequest> {
    const { handle, cwd, stored } = this.#options
    const { what, why, input } = permissionText(request)
    const call = { name: request.tool, input: request.input ?? {} }
    const change = await Promise.all(intendedChange(call, cwd).map((part) => withOldText(part, stored)))
    const others = change.length > 0 ? [] : input.map(({ name, text }) => textContent(`${name}:\n${fenced(text)}`))
    const { kind, locations } = shownCall(call, cwd)
    return {
      sessionId: handle.sessionId,
      options: optionsOf(request),
      toolCall: {
        toolCallId: this.#callIdOf(request),
        title: what,
        kind,
        locations,
        status: 'pending',
        rawInput: call.input,
        content: [...(why === '' ? [] : [textContent(why)]), ...change, ...others],
      },
    }
  }

  #formOf(request: PermissionRequest): CreateElicitationRequest {
    const { handle } = this.#options
    const labels = request.options.filter(({ kind }) => kind === 'answer').map(({ label }) => label)
    const hint = labels.length === 0 ? '' : `\n\n${labels.map((label) => `- ${label}`).join('\n')}`
    return {
      mode: 'form',
      sessionId: handle.sessionId,
      ...(request.callId !== undefined && { toolCallId: this.#callIdOf(request) }),
      message: `${request.title}${hint}`,
      requestedSchema: {
        type: 'object',
        properties: { answer: { type: 'string', title: 'Answer' } },
        required: ['answer'],
      },
    }
  }

  #callIdOf({ callId, requestId }: PermissionRequest): string {
    return (callId === undefined ? undefined : this.#options.updates.callIdOf(callId)) ?? requestId
  }
}

type FormContent = Record<string, unknown> | null

const noAnswer = 'no-answer'

/** The answers to a question are choices to an editor without forms. */
function optionsOf(request: PermissionRequest): PermissionOption[] {
  const options = request.options.map(({ optionId, label: name, kind }): PermissionOption => ({
    optionId,
    name,
    kind: kind === 'answer' ? 'allow_once' : kind,
  }))
  if (!isQuestion(request) || options.some(({ kind }) => kind.startsWith('reject'))) return options
  return [...options, { optionId: noAnswer, name: 'Do not answer', kind: 'reject_once' }]
}
