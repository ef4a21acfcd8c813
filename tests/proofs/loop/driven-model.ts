import type { Usage } from '@tapetree/session'
import type {
  Model,
  ModelCall,
  ModelLimits,
  ModelPart,
  ModelRequest,
  ModelError,
} from '../../../packages/agent/src/models/model.ts'

/** What the model is asked for: its next answer, or a summary of what is to be cut off. */
export type RequestKind = 'turn' | 'summary'

/** A process that speaks with the model. */
export interface ModelUser {
  requested(request: ModelRequest, kind: RequestKind): void
  /** It was told what the call uses. */
  used(usage: Usage, kind: RequestKind): void
}

type Step = { parts: readonly ModelPart[]; isLast?: boolean } | { error: ModelError }

const wide: ModelLimits = { contextTokens: 200_000, outputTokens: 8192 }
/** So that everything is too much. */
const narrow: ModelLimits = { contextTokens: 1000, outputTokens: 8192 }
/** So that a summary is begun in the background: the answers count a little more than 10,000 tokens. */
const filling: ModelLimits = { contextTokens: 16_000, outputTokens: 8192 }

/** A model that says a word only when it is told to. */
export class DrivenModel implements Model {
  readonly provider = 'driven'
  readonly id = 'driven-1'
  readonly api = 'driven'
  /** The open call for an answer. */
  turn: OpenCall | undefined
  /** The open call for a summary. Only in the background may it be open beside a turn. */
  summary: OpenCall | undefined
  /** The context does not fit any more, as far as anybody can know; until that has been dealt with. */
  isFull = false
  /** The context will be full soon; until a summary is begun. */
  isFilling = false
  readonly #user: ModelUser

  constructor(user: ModelUser) {
    this.#user = user
  }

  get limits(): ModelLimits {
    if (this.isFull) return narrow
    return this.isFilling ? filling : wide
  }

  get open(): OpenCall | undefined {
    return this.turn ?? this.summary
  }

  prepare(request: ModelRequest): ModelCall {
    return {
      reference: { sha256: '0'.repeat(64), adapter: 'driven', adapterVersion: '1' },
      stream: (signal) => this.#stream(request, signal),
    }
  }

  async *#stream(request: ModelRequest, signal: AbortSignal): AsyncGenerator<ModelPart> {
    signal.throwIfAborted()
    this.isFull = false
    const kind = request.tools.length === 0 ? 'summary' : 'turn'
    if (kind === 'summary') this.isFilling = false
    this.#user.requested(request, kind)
    const call = new OpenCall(kind, { user: this.#user, signal })
    this[kind] = call
    try {
      yield* call.parts()
    } finally {
      call.close()
      if (this[kind] === call) this[kind] = undefined
    }
  }
}

export class OpenCall {
  readonly kind: RequestKind
  /** How much it has said, and how much of that was calls. */
  said = 0
  calls = 0
  readonly #user: ModelUser
  readonly #signal: AbortSignal
  readonly #steps: Step[] = []
  #isOver = false
  #wake: () => void = () => undefined
  readonly #onAbort = (): void => this.#wake()

  constructor(kind: RequestKind, { user, signal }: { user: ModelUser; signal: AbortSignal }) {
    this.kind = kind
    this.#user = user
    this.#signal = signal
    signal.addEventListener('abort', this.#onAbort)
  }

  /** Its end is on its way: nothing can follow. */
  get isOver(): boolean {
    return this.#isOver || this.#signal.aborted
  }

  push(step: Step): void {
    this.#isOver ||= 'error' in step || step.isLast === true
    this.#steps.push(step)
    this.#wake()
  }

  async *parts(): AsyncGenerator<ModelPart> {
    for (;;) {
      const step = this.#steps.shift()
      this.#signal.throwIfAborted()
      if (!step) {
        await new Promise<void>((resolve) => (this.#wake = resolve))
        continue
      }
      if ('error' in step) throw step.error
      for (const part of step.parts) {
        if (part.type === 'usage') this.#user.used(part.usage, this.kind)
        yield part
      }
      if (step.isLast) return
    }
  }

  close(): void {
    this.#signal.removeEventListener('abort', this.#onAbort)
  }
}
