/** A line of the log, as far as the queue goes. */
export interface QueueLine {
  seq: number
  type: string
  cause?: { cmd?: string }
  [payload: string]: unknown
}

interface Waiting {
  id: string
  delivery: string
  message: string
  held: boolean
}

interface Payload {
  run_id?: string
  outcome?: string
  role?: string
  submission_id?: string
  content?: { text?: { content: string } }[]
  action?: string
  id?: string
  delivery?: string
  message?: string
  before_id?: string | null
}

/** What the queue is for somebody who does one thing after the other. Written from the specification, not from the code. */
export class QueueModel {
  waiting: readonly Waiting[] = []
  isHeld = false
  openRun: string | undefined
  readonly delivered: Waiting[] = []

  /** Takes in the next line; says what is wrong with it. */
  apply({ seq, type, ...line }: QueueLine): string | undefined {
    const payload = (line[type] ?? {}) as Payload
    switch (type) {
      case 'run_start':
        this.openRun = payload.run_id
        return undefined
      case 'run_end':
        this.openRun = undefined
        if (payload.outcome !== 'completed') this.isHeld = true
        return undefined
      case 'message':
        return this.#deliver(payload, seq)
      case 'submission':
        return this.#change(payload, seq)
      default:
        return undefined
    }
  }

  /** Whether a command that names this message would be refused. */
  refuses(op: string, args: Record<string, unknown>): boolean {
    if (op === 'cancel') return args['run_id'] !== this.openRun
    if (op === 'queue.add' || op === 'queue.clear' || op === 'steer') return false
    return args['id'] !== undefined && !this.waiting.some(({ id }) => id === args['id'])
  }

  #deliver({ role, submission_id: id, content }: Payload, seq: number): string | undefined {
    if (role !== 'user') return undefined
    if (id === undefined) {
      this.isHeld = false
      return undefined
    }
    const message = this.waiting.find((each) => each.id === id)
    if (!message) return `line ${seq} delivers ${id}, which does not wait`
    if (this.isHeld || message.held) return `line ${seq} delivers ${id}, which is held`
    const first = this.waiting.find((each) => each.delivery === message.delivery && !each.held)
    if (first !== message) return `line ${seq} delivers ${id} before ${first?.id}`
    const [{ text } = {}] = content ?? []
    if (text?.content !== message.message) return `line ${seq} delivers other words than were last given`
    this.waiting = this.waiting.filter((each) => each !== message)
    this.delivered.push(message)
    return undefined
  }

  #change(payload: Payload, seq: number): string | undefined {
    const { action, id, delivery, message, before_id: beforeId } = payload
    const named = this.waiting.find((each) => each.id === id)
    if (action !== 'add' && id !== undefined && !named)
      return `line ${seq} (${action}) names ${id}, which does not wait`
    switch (action) {
      case 'add':
        this.waiting = [
          ...this.waiting,
          { id: id ?? '', delivery: delivery ?? '', message: message ?? '', held: false },
        ]
        return undefined
      case 'edit':
        this.#replace(id, {
          ...(message !== undefined && { message: message }),
          ...(delivery !== undefined && { delivery: delivery }),
        })
        return undefined
      case 'move': {
        if (!named || beforeId === id) return undefined
        const rest = this.waiting.filter((each) => each !== named)
        const at = rest.findIndex((each) => each.id === beforeId)
        this.waiting = rest.toSpliced(at === -1 ? rest.length : at, 0, named)
        return undefined
      }
      case 'hold':
      case 'release':
        if (id === undefined) this.isHeld = action === 'hold'
        else this.#replace(id, { held: action === 'hold' })
        return undefined
      case 'remove':
        this.waiting = this.waiting.filter((each) => each.id !== id)
        return undefined
      case 'clear':
        this.waiting = this.waiting.filter((each) => delivery !== undefined && each.delivery !== delivery)
        return undefined
      default:
        return `line ${seq} does ${action}, which nobody knows`
    }
  }

  #replace(id: unknown, change: Partial<Waiting>): void {
    this.waiting = this.waiting.map((each) => (each.id === id ? { ...each, ...change } : each))
  }
}
