import { tmpdir } from 'node:os'
import { AgentSession, defineTool, openGate, systemClock, type Clock, type Tool } from '@tapetree/agent'
import type { FakeBytes, FakeProvider, FakeRequest, FakeStep } from '@tapetree/agent/testing'
import { memoryStore } from '@tapetree/session'
import { z } from 'zod'
import { composeStream } from './compose.ts'
import { compareAnswer, compareBeginning, type LoggedMessage } from './compare.ts'
import type { Draw } from './draw.ts'
import { readBytes, type Reading } from './read-bytes.ts'
import { nameOf, openSubject, pairs, subjects, type Subject } from './subjects.ts'

export interface ConversationResult {
  problems: string[]
  requests: number
  kinds: ReadonlySet<string>
  /** Pairs of subjects between which the conversation switched, as `from > to`. */
  switches: ReadonlySet<string>
  counts: { answers: number; cuts: number; aborts: number; failures: number }
}

/** An answer that the provider sent. */
interface Delivered {
  mark: string
  subject: Subject
  whole: Reading
  fate: 'complete' | 'cut' | 'abort'
}

/** One session with a few prompts, each to a model that is drawn, against a strict provider that streams what is drawn. */
export async function converse(
  fake: FakeProvider,
  { seed, draw }: { seed: number; draw: Draw },
): Promise<ConversationResult> {
  const conversation = new Conversation(fake, { seed, draw })
  await conversation.play()
  return conversation.result()
}

class Conversation {
  readonly #fake: FakeProvider
  readonly #draw: Draw
  /** The first prompt goes to the first of them, the second prompt to the other one. */
  readonly #pair: [Subject, Subject]
  readonly #problems: string[] = []
  readonly #kinds = new Set<string>()
  readonly #switches = new Set<string>()
  readonly #delivered: Delivered[] = []
  readonly #counts = { answers: 0, cuts: 0, aborts: 0, failures: 0 }
  readonly #firstRequest: number
  #marks = 0
  #callsLeft = 0
  #failuresLeft = 0
  /** Retries are limited, so a prompt meets only a few cuts. */
  #cutsLeft = 0
  #isAborting = false
  #lastSubject: Subject | undefined
  #fallback: Subject | undefined
  /** The answer before had a call without its whole input. A second one in a row ends the run. */
  #hadMalformedCall = false
  #onAbort: () => void = () => undefined

  constructor(fake: FakeProvider, { seed, draw }: { seed: number; draw: Draw }) {
    this.#fake = fake
    this.#draw = draw
    this.#pair = pairs[seed % pairs.length] as [Subject, Subject]
    this.#firstRequest = fake.requests.length
  }

  async play(): Promise<void> {
    const draw = this.#draw
    const [first] = this.#pair
    const fallback = draw.pick(subjects)
    this.#fallback = fallback
    const clock = new RetryClock()
    const look = lookTool(draw)
    const agent = await AgentSession.open({
      store: memoryStore(),
      models: {
        open: (provider, model) => Promise.resolve(openSubject(subjectOf(provider, model), this.#fake)),
        choices: () => Promise.resolve([{ provider: first.provider, modelId: first.model }]),
      },
      fallbackModel: { provider: fallback.provider, modelId: fallback.model },
      tools: () => [look],
      hasSubagents: false,
      gate: () => openGate,
      systemPrompt: () => 'You are a test.',
      thinkingLevel: draw.pick(['off', 'low', 'high']),
      clock,
      cwd: tmpdir(),
    })
    agent.subscribe((event) => {
      if (event.type === 'auto_retry_start') clock.skip(event.delayMs)
    })
    this.#fake.script((request) => this.#answer(request))
    try {
      const prompts = draw.integer(2, 3)
      for (let place = 0; place < prompts; place += 1) await this.#prompt(agent, place)
      await this.#check(agent)
    } finally {
      await agent.close()
    }
  }

  result(): ConversationResult {
    const requests = this.#fake.requests.slice(this.#firstRequest)
    const broken = requests.flatMap(({ broken, host, model, api }) =>
      broken.map(({ rule, at }) => `${host ?? api} ${model} refuses the request: ${rule} at ${at}`),
    )
    return {
      problems: [...broken, ...this.#problems],
      requests: requests.length,
      kinds: this.#kinds,
      switches: this.#switches,
      counts: this.#counts,
    }
  }

  async #prompt(agent: AgentSession, place: number): Promise<void> {
    const draw = this.#draw
    const next = place === 1 ? this.#pair[1] : place > 1 && draw.chance(0.6) ? draw.pick(subjects) : undefined
    if (next) await agent.setModel(next.provider, next.model)
    this.#callsLeft = draw.integer(0, 2)
    // A fallback in the first prompt would spoil the pair.
    this.#failuresLeft = place > 0 && draw.chance(0.3) ? 1 : 0
    this.#cutsLeft = 2
    this.#isAborting = draw.chance(0.12)
    const aborted = Promise.withResolvers<void>()
    this.#onAbort = () => {
      this.#isAborting = false
      this.#counts.aborts += 1
      void agent.abort().then(aborted.resolve, aborted.reject)
    }
    const images = draw.chance(0.2) ? [{ mediaType: 'image/png', bytes: pixel }] : []
    const outcome = await agent.prompt(draw.text(`prompt ${this.#marks}`), { images })
    if (outcome.type !== 'started') throw new Error(`The prompt was ${outcome.type}.`)
    const before = this.#counts.aborts
    const end = await outcome.run.done
    if (this.#counts.aborts > before) await aborted.promise
    else if (end.outcome !== 'completed' && this.#counts.aborts === before) {
      if (end.outcome !== 'aborted') this.#problems.push(`The run ended as ${JSON.stringify(end)}.`)
    }
  }

  #answer(request: FakeRequest): FakeStep {
    const draw = this.#draw
    const subject = subjectOf(request.host ?? (request.api === 'openai-chat-completions' ? 'local' : ''), request.model)
    if (this.#lastSubject && this.#lastSubject !== subject) {
      this.#switches.add(`${nameOf(this.#lastSubject)} > ${nameOf(subject)}`)
    }
    this.#lastSubject = subject
    if (this.#failuresLeft > 0 && draw.chance(0.5)) {
      this.#failuresLeft -= 1
      this.#counts.failures += 1
      // Without a fallback, an exhausted quota ends the run.
      return {
        type: 'failure',
        error: draw.pick(subject === this.#fallback ? transient : ([...transient, 'quota'] as const)),
      }
    }
    const calls = this.#callsLeft > 0 ? draw.integer(1, 3) : 0
    this.#marks += 1
    const mark = `mark${this.#marks}x`
    const hasReasoning = mustThink(request) || (mayThink(request) && draw.chance(0.6))
    const isMalformed = calls > 0 && !this.#hadMalformedCall && draw.chance(0.05)
    const wish = { subject, mark, calls, hasReasoning, isMalformed, hasUnknown: draw.chance(0.5) }
    const stream = composeStream(wish, draw)
    for (const kind of stream.kinds) this.#kinds.add(kind)
    const bytes = Buffer.from(stream.body)
    const fate =
      this.#isAborting && draw.chance(0.5) ? 'abort' : this.#cutsLeft > 0 && draw.chance(0.08) ? 'cut' : 'complete'
    const sent = fate === 'complete' ? bytes : bytes.subarray(0, draw.integer(0, bytes.length))
    this.#delivered.push({ mark, subject, whole: readBytes(subject.api, bytes), fate })
    this.#counts.answers += 1
    if (fate === 'cut') {
      this.#counts.cuts += 1
      this.#cutsLeft -= 1
    } else {
      this.#callsLeft -= 1
      this.#hadMalformedCall = isMalformed
    }
    if (fate === 'abort') void this.#fake.idle(request.number).then(() => this.#onAbort())
    return { type: 'bytes', chunks: inChunks(sent, draw), ending: fate === 'abort' ? 'hang' : fate } satisfies FakeBytes
  }

  async #check(agent: AgentSession): Promise<void> {
    const messages: LoggedMessage[] = []
    const attempts: LoggedMessage[] = []
    for await (const line of agent.session.lines()) {
      if (line.type !== 'line') continue
      const { message, attempt } = JSON.parse(line.text) as { message?: LoggedMessage; attempt?: LoggedAttempt }
      if (message?.role === 'assistant') messages.push(message)
      if (attempt) attempts.push({ role: 'assistant', content: attempt.content, kind: attempt.error?.kind })
    }
    for (const delivered of this.#delivered) {
      const found = [...messages, ...attempts].filter(({ content }) => JSON.stringify(content).includes(delivered.mark))
      for (const problem of problemsOf(delivered, found)) {
        this.#problems.push(`${nameOf(delivered.subject)}: answer ${delivered.mark}: ${problem}`)
      }
    }
  }
}

/** What is wrong with the log about one answer. */
function problemsOf({ whole, fate, subject }: Delivered, found: LoggedMessage[]): string[] {
  const [message] = found
  if (found.length > 1) return [`the log has it ${found.length} times`]
  if (!message) return fate === 'complete' ? ['the log does not have it'] : []
  if (fate !== 'complete') return compareBeginning(whole, message, subject)
  // An answer with a malformed call is kept beside the path, whole.
  const isKept = message.kind === undefined || message.kind === 'cut-off-call'
  return isKept ? compareAnswer(whole, message, subject) : [`it failed as ${message.kind}`]
}

interface LoggedAttempt {
  content: Record<string, unknown>[]
  error?: { kind: string }
}

const transient = ['overloaded', 'rate-limited'] as const

function subjectOf(provider: string, model: string): Subject {
  const subject = subjects.find((each) => (each.host ?? each.provider) === provider && each.model === model)
  const found = subject ?? subjects.find((each) => each.model === model)
  if (!found) throw new Error(`There is no subject ${provider}/${model}.`)
  return found
}

/** Claude with a thinking budget begins every answer with thinking. */
function mustThink({ body }: FakeRequest): boolean {
  return (body['thinking'] as { type?: string } | undefined)?.type === 'enabled'
}

function mayThink({ body, api }: FakeRequest): boolean {
  const type = (body['thinking'] as { type?: string } | undefined)?.type
  return api !== 'anthropic-messages' || (type !== undefined && type !== 'disabled')
}

/** Whole, byte by byte, or in pieces of any size. */
function inChunks(bytes: Uint8Array, draw: Draw): Uint8Array[] {
  const kind = draw.pick(['whole', 'random', 'random', 'bytes'])
  // One byte at a time takes long; a long answer is sent so only in part.
  const single = kind === 'bytes' ? Math.min(bytes.length, 200) : 0
  const chunks: Uint8Array[] = []
  for (let at = 0; at < bytes.length;) {
    const size = kind === 'whole' ? bytes.length : at < single ? 1 : draw.integer(1, kind === 'bytes' ? 4000 : 900)
    chunks.push(bytes.subarray(at, at + size))
    at += size
  }
  return chunks
}

function lookTool(draw: Draw): Tool {
  return defineTool({
    name: 'look',
    description: 'Looks.',
    schema: z.object({ at: z.string() }),
    readOnly: true,
    access: () => [],
    run: ({ at }) => {
      if (draw.chance(0.1)) return Promise.resolve({ content: 'There is nothing.', isError: true })
      if (draw.chance(0.1)) return Promise.resolve({ content: '' })
      if (draw.chance(0.15)) {
        const source = { type: 'base64' as const, mediaType: 'image/png', data: Buffer.from(pixel).toString('base64') }
        return Promise.resolve({
          content: [
            { type: 'text', text: { content: at } },
            { type: 'image', image: { source } },
          ],
        })
      }
      return Promise.resolve({ content: `${at}: a tree` })
    },
  })
}

const pixel = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
  'base64',
)

/** Time goes on as usual, but nobody waits for a retry. */
class RetryClock implements Clock {
  readonly #skipped = new Set<number>()

  skip(delayMs: number): void {
    this.#skipped.add(delayMs)
  }

  now(): number {
    return Date.now()
  }

  wait(ms: number, signal?: AbortSignal): Promise<void> {
    return this.#skipped.delete(ms) ? Promise.resolve() : systemClock.wait(ms, signal)
  }
}
