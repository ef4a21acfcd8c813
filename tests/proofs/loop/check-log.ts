import type { StoredLine } from '@tapetree/session/log-store'

type Members = Record<string, unknown>

interface Waiting {
  id: string
  delivery: unknown
  seq: number
  isHeld: boolean
  /** It was there, or held, and everybody had time to know. */
  isKnown: boolean
  isKnownHeld: boolean
}

/**
 * Reads a log as it grows and says where it breaks a rule. It knows the lines by their form on disk and shares no code with what
 * wrote them.
 */
export class LogCheck {
  problem: string | undefined
  #seq = 0
  /** Of all entries in their order: nobody branches here, so they are one path. */
  readonly #entries: string[] = []
  readonly #callAt = new Map<string, number>()
  readonly #resultAt = new Map<string, number>()
  readonly #started = new Set<string>()
  readonly #openCalls = new Set<string>()
  readonly #asked = new Set<string>()
  #waiting: Waiting[] = []
  readonly #delivered = new Set<string>()
  /** Taken back, it is to be hoped by a person. */
  readonly #removed = new Set<string>()
  /** What users said and what the model called for, with the place of its entry. */
  readonly #spoken: { at: number; what: string }[] = []
  /** What stands before this is told by the last summary. */
  #keptFrom = 0
  readonly #items = new Map<string, string>()
  readonly #usage = new Set<number>()
  #tokens = 0
  #lastSubmission: unknown
  /** Nothing goes out by itself. */
  #isHeld = false
  /** The last message is of a user, and no run has begun since. */
  isUnheard = false
  #openRun: string | undefined
  /** The run has an answer that was aborted. */
  #isAborted = false
  /** How often the context was too long since somebody last said something. */
  #overflows = 0
  lastEnd: { runId: string; outcome: unknown; seq: number } | undefined
  counts = nothingCounted()

  /** Takes in what is new. */
  take(lines: readonly StoredLine[]): void {
    while (this.#seq < lines.length && !this.problem) this.#takeLine(membersOf(lines[this.#seq] as StoredLine))
  }

  /** What is there already is not counted. */
  startCounting(): void {
    this.counts = nothingCounted()
  }

  /** Whatever follows comes after everybody has taken in what is here. */
  rest(): void {
    for (const message of this.#waiting) {
      message.isKnown = true
      message.isKnownHeld = message.isHeld
    }
  }

  get started(): ReadonlySet<string> {
    return this.#started
  }

  hasResult(callId: string): boolean {
    return this.#resultAt.has(callId)
  }

  get openRun(): string | undefined {
    return this.#openRun
  }

  get isAborted(): boolean {
    return this.#isAborted
  }

  get waiting(): readonly Waiting[] {
    return this.#waiting
  }

  /** What a request has to have, word for word and in this order. */
  get toBeSent(): string[] {
    return this.#spoken.flatMap(({ at, what }) => (at >= this.#keptFrom ? [what] : []))
  }

  /** What is in the log of the text of a model call. */
  textOf(item: string): string | undefined {
    return this.#items.get(item)
  }

  get usage(): ReadonlySet<number> {
    return this.#usage
  }

  get tokens(): number {
    return this.#tokens
  }

  get removed(): ReadonlySet<string> {
    return this.#removed
  }

  isAccountedFor(submissionId: string): boolean {
    return (
      this.#delivered.has(submissionId) ||
      this.#removed.has(submissionId) ||
      this.#waiting.some(({ id }) => id === submissionId)
    )
  }

  #takeLine(line: Members): void {
    this.#seq++
    if (line['seq'] !== this.#seq) this.#complain(`line ${this.#seq} has the number ${String(line['seq'])}`)
    if (line['parent_id'] !== undefined) this.#takeEntry(line)
    const type = line['type'] as string
    const payload = (line[type] ?? {}) as Members
    switch (type) {
      case 'message':
        return this.#takeMessage(payload, line['id'] as string)
      case 'compaction':
        return this.#takeCompaction(payload)
      case 'run_start':
        return this.#takeRunStart(payload)
      case 'run_end':
        return this.#takeRunEnd(payload)
      case 'tool_start':
        return this.#takeToolStart(payload['call_id'] as string)
      case 'attempt':
        return this.#takeAttempt(payload)
      case 'usage':
        return this.#takeUsage(payload['tokens'])
      case 'submission':
        return this.#takeSubmission(payload)
      case 'permission_request':
        this.#asked.add(payload['request_id'] as string)
        return undefined
      case 'permission_result':
        if (!this.#asked.delete(payload['request_id'] as string)) this.#complain('a question was answered twice')
        return undefined
      default:
        return undefined
    }
  }

  #takeEntry({ id, parent_id }: Members): void {
    const before = this.#entries.at(-1) ?? null
    if (parent_id !== before) this.#complain(`an entry hangs on ${String(parent_id)} and not on the last one`)
    this.#entries.push(id as string)
  }

  #takeMessage(message: Members, id: string): void {
    const role = message['role'] as string
    this.#overflows = 0
    const results = blocksIn(message['content'], 'tool_result').map((result) => result['tool_use_id'] as string)
    for (const callId of results) {
      if (!this.#openCalls.delete(callId)) this.#complain(`${callId} has a second result, or was never called`)
      this.#resultAt.set(callId, this.#entries.length - 1)
    }
    if (role === 'tool') return
    this.#needAnswered(`a message of ${role}`)
    if (role === 'user') this.#speak(`user: ${textIn(message['content'])}`)
    if (role === 'user') this.#takeUserMessage(message['submission_id'] as string | undefined)
    else if (this.#openRun === undefined) this.#complain(`a message of ${role} is outside of every run`)
    if (role === 'assistant') this.#takeAnswer(message, id)
  }

  #takeUserMessage(submissionId: string | undefined): void {
    this.#lastSubmission = submissionId
    this.isUnheard = this.#openRun === undefined
    if (submissionId === undefined) {
      this.#isHeld = false
      if (this.#openRun !== undefined) this.#complain('a prompt is inside a run')
      return
    }
    const message = this.#waiting.find(({ id }) => id === submissionId)
    if (!message) {
      this.#complain(`${submissionId} was delivered and did not wait`)
      return
    }
    if (message.isKnownHeld) this.#complain(`${submissionId} was delivered and is held`)
    const first = this.#waiting.find((each) => each.delivery === message.delivery && (!each.isHeld || each === message))
    if (first !== message) this.#complain(`${submissionId} was delivered before ${String(first?.id)}`)
    this.#waiting = this.#waiting.filter((each) => each !== message)
    this.#delivered.add(submissionId)
    if (message.delivery === 'steer') this.counts.steers++
    else this.counts.followUps++
    if (message.delivery === 'follow-up' && this.#openRun !== undefined)
      this.#complain('a follow-up was delivered inside a run')
  }

  #takeAnswer(message: Members, id: string): void {
    this.counts.turns++
    if (this.#isAborted) this.#complain('an answer came after the run was aborted')
    if (message['stop_reason'] === 'aborted') this.#isAborted = true
    this.#items.set(id, textIn(message['content']))
    this.#takeUsage(message['usage'])
    for (const call of blocksIn(message['content'], 'tool_use')) {
      const callId = call['id'] as string
      if (this.#callAt.has(callId)) this.#complain(`${callId} was called twice`)
      this.#callAt.set(callId, this.#entries.length - 1)
      this.#openCalls.add(callId)
      this.#speak(`call: ${callId}`)
    }
  }

  #speak(what: string): void {
    this.#spoken.push({ at: this.#entries.length - 1, what })
  }

  #takeAttempt({ item, content, error }: Members): void {
    this.counts.attempts++
    this.#items.set(item as string, textIn(content))
    if ((error as Members)['kind'] !== 'context-overflow') return
    if (++this.#overflows > 2) this.#complain('the context was too long again after a compaction, and the run went on')
  }

  #takeCompaction({ first_kept_entry_id: keptId }: Members): void {
    this.counts.compactions++
    this.#needAnswered('a compaction')
    const kept = this.#entries.indexOf(keptId as string)
    if (kept === -1) this.#complain(`a compaction keeps from ${String(keptId)}, which is not there`)
    this.#keptFrom = kept
    for (const [callId, at] of this.#callAt) {
      if (at < kept && (this.#resultAt.get(callId) ?? Infinity) >= kept) {
        this.#complain(`a compaction parts ${callId} from its result`)
      }
    }
  }

  #takeRunStart({ run_id: runId, resumes, submission_id }: Members): void {
    if (this.#openRun !== undefined && resumes !== this.#openRun) this.#complain('a run began inside another')
    if (submission_id !== undefined && submission_id !== this.#lastSubmission) {
      this.#complain('a run began with a message that is not the last one')
    }
    if (this.#openRun === undefined) this.counts.runs++
    else this.counts.resumes++
    this.isUnheard = false
    this.#overflows = 0
    this.#openRun = runId as string
  }

  #takeRunEnd({ run_id: runId, outcome }: Members): void {
    if (runId !== this.#openRun) this.#complain(`run ${String(runId)} ended and was not open`)
    this.#needAnswered('the end of a run')
    if (this.#isAborted && outcome !== 'aborted') this.#complain(`an aborted run ended as ${String(outcome)}`)
    this.#openRun = undefined
    this.#isAborted = false
    const isLate = this.#waiting.some((each) => each.delivery === 'steer' && each.isKnown && !each.isHeld)
    if (outcome === 'completed' && isLate && !this.#isHeld) this.#complain('a steer was not heard in its run')
    this.#isHeld ||= outcome !== 'completed'
    this.lastEnd = { runId: runId as string, outcome, seq: this.#seq }
  }

  #takeToolStart(callId: string): void {
    if (this.#openRun === undefined) this.#complain(`${callId} started outside of every run`)
    if (!this.#openCalls.has(callId)) this.#complain(`${callId} started and is not open`)
    if (this.#started.has(callId)) this.#complain(`${callId} started twice`)
    this.#started.add(callId)
  }

  /** Every model call of a case reports a number of input tokens that no other one does. */
  #takeUsage(usage: unknown): void {
    const { input_tokens: input, total_tokens: total } = (usage ?? {}) as Members
    if (typeof input !== 'number') return
    if (this.#usage.has(input)) this.#complain(`the usage of call ${input} is there twice`)
    this.#usage.add(input)
    this.#tokens += total as number
  }

  #takeSubmission(payload: Members): void {
    const id = payload['id'] as string | undefined
    switch (payload['action']) {
      case 'add':
        this.#waiting.push({
          id: id as string,
          delivery: payload['delivery'],
          seq: this.#seq,
          isHeld: false,
          isKnown: false,
          isKnownHeld: false,
        })
        return
      case 'remove':
        this.#waiting = this.#waiting.filter((message) => message.id !== id)
        this.#removed.add(id as string)
        return
      case 'hold':
      case 'release':
        for (const message of this.#waiting) if (message.id === id) message.isHeld = payload['action'] === 'hold'
        if (id === undefined) this.#isHeld = payload['action'] === 'hold'
        return
      default:
        this.#complain(`nobody asked to ${String(payload['action'])} what waits`)
    }
  }

  #needAnswered(what: string): void {
    if (this.#openCalls.size > 0)
      this.#complain(`${what} comes before the result of ${[...this.#openCalls].join(', ')}`)
  }

  #complain(problem: string): void {
    this.problem ??= `line ${this.#seq}: ${problem}`
  }
}

function nothingCounted() {
  return { turns: 0, compactions: 0, attempts: 0, resumes: 0, runs: 0, steers: 0, followUps: 0 }
}

const decoder = new TextDecoder()

/** What all cases begin with is the same for all of them. */
const parsed = new WeakMap<StoredLine, Members>()

function membersOf(line: StoredLine): Members {
  const known = parsed.get(line)
  if (known) return known
  const members = JSON.parse(decoder.decode(line.bytes)) as Members
  parsed.set(line, members)
  return members
}

function blocksIn(content: unknown, type: string): Members[] {
  const blocks = (content ?? []) as Members[]
  return blocks.flatMap((block) => (block['type'] === type ? [block[type] as Members] : []))
}

function textIn(content: unknown): string {
  return blocksIn(content, 'text')
    .map((text) => text['content'] as string)
    .join('')
}
