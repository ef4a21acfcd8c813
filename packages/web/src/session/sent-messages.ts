import { ProblemError, type PromptResult, type RemoteSession, type SentCommand } from '@tapetree/client'
import type { Transcript } from '@tapetree/session/view'

/** A message from this page that is not in the conversation yet. */
export interface SentMessage {
  /** Of its command. */
  readonly id: string
  readonly text: string
  /**
   * `unsent`: the server has not confirmed it; it is sent again after a reload. `accepted`: the server has it. `queued`: it waits
   * for its turn. `withdrawn`: it was removed from the queue. `refused` and `answered`, for a command without a run: see `reason`.
   */
  readonly state: 'unsent' | 'accepted' | 'queued' | 'withdrawn' | 'refused' | 'answered'
  readonly reason?: string
  /** Of the queued message. */
  readonly queueId?: string
}

/** Rejects with a plain error if the message is not kept for the next visit: its session is gone, or was closed before. */
export async function orRefused<T>(session: Pick<RemoteSession, 'status'>, send: () => Promise<T>): Promise<T> {
  const wasClosed = session.status.type === 'closed'
  try {
    return await send()
  } catch (error) {
    const { status } = session
    const isLost = status.type === 'closed' && (wasClosed || status.reason === 'gone')
    throw isLost ? new Error((error as Error).message, { cause: error }) : error
  }
}

const messageOps = new Set(['prompt', 'steer', 'follow_up'])

/** The messages of this page until they are delivered. Delivered ones are in the transcript. */
export class SentMessages {
  onChange: () => void = () => undefined
  #messages: readonly SentMessage[]
  #transcript: Transcript | undefined

  /** Starts with the commands that an earlier visit left unacknowledged. */
  constructor(restored: readonly SentCommand[] = []) {
    this.#messages = restored
      .filter(({ op }) => messageOps.has(op))
      .map(({ id, args }) => ({ id, text: String(args['text']), state: 'unsent' }))
  }

  /** A new array after every change. */
  get messages(): readonly SentMessage[] {
    return this.#messages
  }

  /** Sends a message. `send` gets the id of its command. */
  async send(text: string, id: string, send: (id: string) => Promise<PromptResult | undefined>): Promise<void> {
    this.#set([...this.#messages, { id, text, state: 'unsent' }])
    try {
      const result = await send(id)
      this.settle(id, undefined, result)
    } catch (error) {
      // This page closed the session: the command is kept for the next visit.
      if (error instanceof ProblemError && error.type === 'closed') return
      this.settle(id, error instanceof Error ? error.message : String(error))
    }
  }

  /** The server answered. Without a refusal it accepted the message. */
  settle(id: string, refusal?: string, result?: PromptResult): void {
    if (result?.outcome === 'started' || (result?.outcome === 'handled' && result.say === null)) return this.dismiss(id)
    this.#set(
      this.#messages.map((message) => {
        if (message.id !== id) return message
        if (refusal !== undefined) return { ...message, state: 'refused', reason: refusal }
        if (result?.outcome === 'handled') return { ...message, state: 'answered', reason: result.say ?? '' }
        return { ...message, state: 'accepted', ...(result && { queueId: result.messageId }) }
      }),
    )
    if (this.#transcript) this.look(this.#transcript)
  }

  /** Follows the conversation: delivered messages are removed, since the transcript shows them. */
  look(transcript: Transcript): void {
    this.#transcript = transcript
    if (this.#messages.length === 0) return
    const waiting = new Set(transcript.waiting.map(({ id }) => id))
    const delivered = new Set<string>()
    const { items } = transcript.path
    for (let index = items.length - 1; index >= Math.max(0, items.length - lookBack); index--) {
      const item = items.at(index)
      if (item?.cause) delivered.add(item.cause.cmd)
      if (item?.type === 'user' && item.submissionId !== undefined) delivered.add(item.submissionId)
    }
    const next = this.#messages
      .filter(({ id, queueId }) => !delivered.has(id) && !(queueId !== undefined && delivered.has(queueId)))
      .map((message): SentMessage => {
        const { queueId, state } = message
        if (queueId === undefined || state === 'refused') return message
        if (waiting.has(queueId)) return state === 'queued' ? message : { ...message, state: 'queued' }
        return state === 'queued' ? { ...message, state: 'withdrawn' } : message
      })
    const isSame = next.length === this.#messages.length && next.every((each, index) => each === this.#messages[index])
    if (!isSame) this.#set(next)
  }

  dismiss(id: string): void {
    this.#set(this.#messages.filter((message) => message.id !== id))
  }

  #set(messages: readonly SentMessage[]): void {
    this.#messages = messages
    this.onChange()
  }
}

/** How many of the newest items are searched for a delivered message. */
const lookBack = 200
