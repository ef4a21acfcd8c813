import { tmpdir } from 'node:os'
import { AgentSession, defineTool, allowAll, type Tool } from '@tapetree/agent'
import { systemClock, type Clock } from '@tapetree/agent/run'
import type { FakeBytes, FakeProvider, FakeRequest, FakeStep } from '@tapetree/agent/testing'
import { memoryStore } from '@tapetree/session'
import { z } from 'zod'
import { composeStream } from './compose.ts'
import type { Ending } from './composer.ts'
import { compareAnswer, compareBeginning, uncounted, type LoggedMessage } from './compare.ts'
import type { Draw } from './draw.ts'
import { brokenDemands } from './host-demands.ts'
import { kindsIn } from './kinds.ts'
import { eventsOf, readAnswer, type Reading } from './read-bytes.ts'
import { nameOf, openSubject, pairs, subjects, type Subject } from './subjects.ts'

export interface ConversationResult {
  problems: string[]
  requests: number
  kinds: ReadonlySet<string>
  /** Pairs of subjects between which the conversation switched, as `from > to`. */
  switches: ReadonlySet<string>
  counts: { answers: number; cuts: number; aborts: number; failures: number; endings: number }
}

/** An answer that the provider sent. */
interface Delivered {
  mark: string
  subject: Subject
  whole: Reading
  /** Unknown kinds that the log must count. */
  counted: ReadonlySet<string>
  ending: Ending
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
  readonly #counts = { answers: 0, cuts: 0, aborts: 0, failures: 0, endings: 0 }
  readonly #firstRequest: number
  #marks = 0
  #callsLeft = 0
  #failuresLeft = 0
  /** Retries are limited, so a prompt meets only a few cuts and failures. */
  #retriesLeft = 0
  /** A second empty answer in a run ends it. */
  #emptiesLeft = 0
  #wasRefused = false
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
    // Sockets are slow, and the chunks that they deliver depend on the machine.
    const hasSocket = draw.chance(0.05)
    const agent = await AgentSession.open({
      store: memoryStore(),
      models: {
        open: (provider, model) =>
          Promise.resolve(openSubject(subjectOf(provider, model), { fake: this.#fake, hasSocket })),
        choices: () => Promise.resolve([{ provider: first.provider, modelId: first.model }]),
      },
      fallbackModel: { provider: fallback.provider, modelId: fallback.model },
      tools: () => [look],
      hasSubagents: false,
      gate: () => allowAll,
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
    const broken = requests.flatMap((request) => {
      const reasons = [...request.broken.map(({ rule, at }) => `${rule} at ${at}`), ...brokenDemands(request)]
      return reasons.map((reason) => `${request.host ?? request.api} ${request.model} refuses the request: ${reason}`)
    })
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
    this.#retriesLeft = 2
    this.#emptiesLeft = 1
    this.#wasRefused = false
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
    else if (this.#wasRefused) {
      if (end.reason !== 'refused') this.#problems.push(`A refused answer ended the run as ${JSON.stringify(end)}.`)
    } else if (end.outcome !== 'completed' && end.outcome !== 'aborted')
      this.#problems.push(`The run ended as ${JSON.stringify(end)}.`)
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
    const ending = this.#ending(subject)
    const hasNoCalls = ending === 'refused' || ending === 'paused' || ending === 'empty'
    const calls = this.#callsLeft > 0 && !hasNoCalls ? draw.integer(1, 3) : 0
    this.#marks += 1
    const mark = `mark${this.#marks}x`
    const hasReasoning = mustThink(request) || (mayThink(request) && draw.chance(0.6))
    const isMalformed = calls > 0 && ending === 'complete' && !this.#hadMalformedCall && draw.chance(0.05)
    const wish = { subject, mark, calls, hasReasoning, isMalformed, hasUnknown: draw.chance(0.5), ending }
    const { body, unknownKinds, counted } = composeStream(wish, draw)
    const bytes = Buffer.from(body)
    const events = eventsOf(bytes)
    for (const kind of [...kindsIn(subject.api, { events, body }), ...unknownKinds]) this.#kinds.add(kind)
    const fate = this.#fate(ending)
    const sent = fate === 'complete' ? bytes : bytes.subarray(0, draw.integer(0, bytes.length))
    this.#delivered.push({ mark, subject, whole: readAnswer(subject, events), counted, ending, fate })
    this.#counts.answers += 1
    if (fate === 'cut') this.#counts.cuts += 1
    if (ending !== 'complete') this.#counts.endings += 1
    if (fate === 'cut' || ending === 'failed' || ending === 'empty') this.#retriesLeft -= 1
    else if (ending !== 'quota') {
      this.#callsLeft -= 1
      this.#hadMalformedCall = isMalformed
    }
    if (ending === 'empty') this.#emptiesLeft -= 1
    if (ending === 'quota') this.#failuresLeft -= 1
    if (ending === 'refused') this.#wasRefused = true
    if (fate === 'abort') void this.#fake.idle(request.number).then(() => this.#onAbort())
    return { type: 'bytes', chunks: inChunks(sent, draw), ending: fate === 'abort' ? 'hang' : fate } satisfies FakeBytes
  }

  /** Most answers just end. */
  #ending({ api }: Subject): Ending {
    const draw = this.#draw
    const mayLackQuota = api === 'openai' && this.#failuresLeft > 0 && this.#lastSubject !== this.#fallback
    if (mayLackQuota && draw.chance(0.4)) return 'quota'
    if (draw.chance(0.85)) return 'complete'
    const ending = draw.pick<Ending>(['refused', 'paused', 'empty', 'failed', 'failed'])
    const isPossible: Record<Ending, boolean> = {
      complete: true,
      refused: true,
      paused: api === 'anthropic',
      empty: this.#retriesLeft > 0 && this.#emptiesLeft > 0,
      failed: this.#retriesLeft > 0,
      quota: mayLackQuota,
    }
    return isPossible[ending] ? ending : 'complete'
  }

  #fate(ending: Ending): Delivered['fate'] {
    if (ending !== 'complete') return 'complete'
    if (this.#isAborting && this.#draw.chance(0.5)) return 'abort'
    return this.#retriesLeft > 0 && this.#draw.chance(0.08) ? 'cut' : 'complete'
  }

  async #check(agent: AgentSession): Promise<void> {
    const messages: LoggedMessage[] = []
    const attempts: LoggedMessage[] = []
    for await (const line of agent.session.lines()) {
      if (line.type !== 'line') continue
      const { message, attempt, usage } = JSON.parse(line.text) as LoggedLine
      if (message?.role === 'assistant') messages.push(message)
      if (attempt) attempts.push({ role: 'assistant', content: attempt.content, kind: attempt.error?.kind })
      const last = attempts.at(-1)
      if (usage?.purpose === 'attempt' && last) last.usage = usage.tokens
    }
    const kept = [...messages, ...attempts].map((message) => ({ message, text: JSON.stringify(message.content) }))
    for (const delivered of this.#delivered) {
      const found = kept.filter(({ text }) => text.includes(delivered.mark)).map(({ message }) => message)
      for (const problem of problemsOf(delivered, found)) {
        this.#problems.push(`${nameOf(delivered.subject)}: answer ${delivered.mark}: ${problem}`)
      }
    }
  }
}

/** What is wrong with the log about one answer. */
function problemsOf({ whole, fate, ending, counted, subject }: Delivered, found: LoggedMessage[]): string[] {
  const [message] = found
  if (found.length > 1) return [`the log has it ${found.length} times`]
  if (!message)
    return fate === 'complete' && ending !== 'empty'
      ? [`the log does not have it: ${ending} ${JSON.stringify(whole.blocks)}`]
      : []
  if (fate !== 'complete') return compareBeginning(whole, message, subject)
  if (!keptAs[ending].includes(message.kind)) return [`an answer that was ${ending} is kept as ${message.kind}`]
  if (ending === 'failed' || ending === 'quota') return compareBeginning(whole, message, subject)
  const problems = compareAnswer(whole, message, subject)
  return message.kind === undefined ? [...problems, ...uncounted(counted, message)] : problems
}

/** The kinds of error with which an answer is kept beside the path; undefined if it is on the path. */
const keptAs: Record<Ending, readonly (string | undefined)[]> = {
  // An answer with a malformed call is kept beside the path, whole.
  complete: [undefined, 'cut-off-call'],
  paused: [undefined],
  refused: ['refused'],
  empty: ['empty-answer'],
  failed: ['overloaded', 'network'],
  quota: ['quota'],
}

interface LoggedLine {
  message?: LoggedMessage
  attempt?: LoggedAttempt
  usage?: { purpose: string; tokens: Record<string, number> }
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

const lookInput = z.object({ at: z.string() })
const lookSchema = z.toJSONSchema(lookInput, { io: 'input' })

function lookTool(draw: Draw): Tool {
  return defineTool({
    name: 'look',
    description: 'Looks.',
    schema: lookInput,
    inputSchema: lookSchema,
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
