import { isQuestion, type RequestAnswer, type OpenQuestion } from '@tapetree/client'
import { harmless, harmlessLine } from '../../text/harmless.ts'
import { openMatters } from '../panels/open-matters.ts'
import { permissionText } from '../panels/permission-text.ts'
import type { CurrentSession } from '../chat/current-session.ts'
import type { Remarks } from '../chat/remarks.ts'
import type { SessionActions } from '../chat/session-actions.ts'
import type { NumberedChoice } from './numbered-lists.ts'

export interface HeardRequestsOptions {
  session: CurrentSession
  actions: SessionActions
  remarks: Remarks
}

/** Asks each request of the session once: permissions, questions, and interrupted runs. */
export class HeardRequests {
  readonly #options: HeardRequestsOptions
  readonly #asked = new Set<string>()

  constructor(options: HeardRequestsOptions) {
    this.#options = options
  }

  /** Asks a postponed request again. */
  reset(): void {
    this.#asked.clear()
  }

  next(): NumberedChoice | undefined {
    const { session } = this.#options
    const { handle } = session
    if (!handle || !session.takesMessages) return undefined
    const request = handle.transcript.permissions.find(({ requestId }) => !this.#asked.has(requestId))
    if (request) {
      this.#asked.add(request.requestId)
      return isQuestion(request) ? this.#question(request) : this.#permission(request)
    }
    const waiting = handle.state('run')?.waitingFor
    if (waiting?.type !== 'resume' || this.#asked.has(waiting.runId)) return undefined
    this.#asked.add(waiting.runId)
    return this.#leftBehind(waiting.runId)
  }

  /** Free text can answer a question, but never a permission. */
  #question(request: OpenQuestion): NumberedChoice {
    return {
      ...this.#request(request),
      question: ['The agent asks:', ...harmless(request.title).split('\n')].filter((line) => line !== ''),
      takeWords: (text) => this.#answer(request, { outcome: 'allowed', text }),
    }
  }

  #permission(request: OpenQuestion): NumberedChoice {
    const { what, why, input } = permissionText(request)
    const details = [...what.split('\n'), why, ...input.map(({ name, text }) => `${name}: ${text}`)]
    const choice = this.#request(request)
    // The same default options as on the screen.
    const plain = [
      { label: 'Allow once', take: () => this.#answer(request, { outcome: 'allowed' }) },
      { label: 'Do not allow', take: () => this.#answer(request, { outcome: 'rejected' }) },
    ]
    return {
      ...choice,
      question: [`Allow ${harmlessLine(request.tool)}?`, ...details].filter((line) => line !== ''),
      options: choice.options.length > 0 ? choice.options : plain,
    }
  }

  #request(request: OpenQuestion): Omit<NumberedChoice, 'question'> {
    const { session, remarks } = this.#options
    const { requestId, options } = request
    return {
      options: options.map(({ optionId, label }) => ({ label, take: () => this.#answer(request, { optionId }) })),
      leave: () => remarks.say('Your answer is pending. Enter on an empty line asks again.'),
      isOpen: () => session.handle?.transcript.permissions.some((each) => each.requestId === requestId) ?? false,
    }
  }

  #leftBehind(runId: string): NumberedChoice {
    const { session, actions, remarks } = this.#options
    const matters = session.handle ? openMatters(session.handle.transcript) : []
    return {
      question: ['A run was interrupted.', ...matters.map(harmlessLine)],
      options: [{ label: 'Resume it', take: () => remarks.watch(actions.resume()) }],
      leave: () => remarks.say('Left as it is. /resume resumes it.'),
      isOpen: () => {
        const waiting = session.handle?.state('run')?.waitingFor
        return waiting?.type === 'resume' && waiting.runId === runId
      },
    }
  }

  #answer({ requestId }: OpenQuestion, answer: RequestAnswer): void {
    const { session, remarks } = this.#options
    if (session.handle) remarks.watch(session.handle.answer(requestId, answer))
  }
}
