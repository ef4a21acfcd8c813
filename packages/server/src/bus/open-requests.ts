import { emitWarning } from '../util/problem-error.ts'
import { BusError, defaultRequestMs, requireSize, type BusErrorCode } from './session-bus.ts'
import type { RequestHandler, RequestOptions } from './session-bus.ts'

export type Outcome = { type: 'answer'; message: Uint8Array } | { type: BusErrorCode }

interface OpenRequest {
  node: string
  settle: (outcome: Outcome) => void
}

/** The requests of one node that wait for an answer. */
export class OpenRequests {
  readonly #open = new Map<number, OpenRequest>()
  #lastId = 0

  /** Sends a request under a new id and waits until `settle` is called with it, or until the time-out. */
  async start(node: string, { timeoutMs = defaultRequestMs }: RequestOptions, send: (id: number) => void) {
    const id = (this.#lastId += 1)
    const { promise, resolve } = Promise.withResolvers<Outcome>()
    this.#open.set(id, { node, settle: resolve })
    const timer = setTimeout(() => resolve({ type: 'no-answer' }), Math.min(timeoutMs, longestTimerMs))
    try {
      send(id)
      const outcome = await promise
      if (outcome.type !== 'answer') throw new BusError(outcome.type, reasons[outcome.type](node))
      return outcome.message
    } finally {
      clearTimeout(timer)
      this.#open.delete(id)
    }
  }

  /** Whether the request waits for its answer. */
  has(id: number): boolean {
    return this.#open.has(id)
  }

  /** Does nothing if the request has ended. */
  settle(id: number, outcome: Outcome): void {
    this.#open.get(id)?.settle(outcome)
  }

  /** Ends all open requests, or those to some nodes. */
  endAll(type: BusErrorCode, isAffected: (node: string) => boolean = () => true): void {
    for (const request of this.#open.values()) if (isAffected(request.node)) request.settle({ type })
  }
}

/** What the node answers to a request. A node without a handler has not acted on it. */
export async function outcomeOf(
  handler: RequestHandler | undefined,
  message: Uint8Array,
  from: string,
): Promise<Outcome> {
  if (!handler) return { type: 'unreachable' }
  try {
    const answer = await handler(message, from)
    requireSize(answer)
    return { type: 'answer', message: answer }
  } catch (error) {
    emitWarning(error)
    return { type: 'no-answer' }
  }
}

/** An outcome that another node has sent. */
export function outcomeIn(type: unknown, message: Uint8Array): Outcome {
  if (type === 'answer') return { type, message }
  return { type: type === 'unreachable' ? type : 'no-answer' }
}

export function closedError(): BusError {
  return new BusError('closed', reasons.closed())
}

const reasons = {
  unreachable: (node: string) => `The node ${node} cannot be reached.`,
  'no-answer': (node: string) => `The node ${node} did not answer.`,
  closed: () => 'The bus is closed.',
} satisfies Record<BusErrorCode, (node: string) => string>

const longestTimerMs = 2 ** 31 - 1
