import { memoryStore, text, type Content, type Session, type SessionStore, type ToolResult } from '@tapetree/session'
import type { Clock } from '@tapetree/session/util/wait'
import type { LiveEvent } from '../run/events.ts'
import type { RunEnd } from '../run/run-settings.ts'
import type { Model } from '../models/model.ts'
import { Requests } from '../permissions/requests.ts'
import type { RunDeps } from '../run/run-deps.ts'
import { run, type RunStart } from '../run/run.ts'
import { defaultRunSettings, type RunSettings } from '../run/run-settings.ts'
import { allowAll, type Gate, type Tool } from '../tools/tool.ts'
import { FakeClock } from './fake-clock.ts'

export interface TestAgentOptions<C extends Clock> {
  model: Model
  tools?: Tool[]
  settings?: Partial<RunSettings>
  gate?: (requests: Requests) => Gate
  clock?: C
  cwd?: string
  /** Default: a session in memory. */
  store?: SessionStore
  /** An existing session of that store. */
  sessionId?: string
  observe?: (event: LiveEvent) => void
}

/** An agent on a real session, with a clock that moves by hand. */
export class TestAgent<C extends Clock = FakeClock> {
  readonly session: Session
  readonly requests: Requests
  readonly clock: C
  readonly events: LiveEvent[] = []
  readonly deps: RunDeps
  /** Of the current run. */
  controller = new AbortController()

  static async open<C extends Clock = FakeClock>(options: TestAgentOptions<C>): Promise<TestAgent<C>> {
    const store = options.store ?? memoryStore()
    const session = options.sessionId === undefined ? await store.create() : await store.open(options.sessionId)
    return new TestAgent(session, options)
  }

  constructor(session: Session, options: TestAgentOptions<C>) {
    this.session = session
    this.requests = new Requests(session)
    this.clock = options.clock ?? (new FakeClock() as Clock as C)
    this.deps = {
      session,
      model: () => options.model,
      tools: () => options.tools ?? [],
      systemPrompt: () => 'You are a test.',
      gate: options.gate?.(this.requests) ?? allowAll,
      requests: this.requests,
      cwd: options.cwd ?? '/',
      clock: this.clock,
      settings: { ...defaultRunSettings, ...options.settings },
      observe: options.observe ?? ((event) => void this.events.push(event)),
    }
  }

  prompt(words: string): Promise<RunEnd> {
    return this.run({ type: 'prompt', content: [text(words)] })
  }

  run(start: RunStart): Promise<RunEnd> {
    this.controller = new AbortController()
    return run(start, this.deps, this.controller.signal)
  }

  abort(): void {
    this.controller.abort()
  }

  /** The messages on the path to the leaf, one line each, as in `assistant: fine [bash a]`. */
  async path(): Promise<string[]> {
    const path = await this.session.getContextPath()
    return path.flatMap((entry) =>
      entry.type === 'message' ? [`${entry.message.role}: ${entry.message.content.map(briefly).join(' ')}`] : [],
    )
  }

  /** The types of all lines of the log, in order. */
  async lineTypes(): Promise<string[]> {
    const types: string[] = []
    for await (const line of this.session.lines()) {
      if (line.type === 'line') types.push((JSON.parse(line.text) as { type: string }).type)
    }
    return types
  }

  async close(): Promise<void> {
    this.requests.close()
    await this.session.close()
  }
}

function briefly(block: Content): string {
  switch (block.type) {
    case 'text':
      return block.text.content
    case 'reasoning':
      return `(${block.reasoning.text})`
    case 'image':
      return '<image>'
    case 'tool_use':
      return `[${block.toolUse.name} ${block.toolUse.id}]`
    case 'tool_result':
      return `${block.toolResult.toolUseId} ${block.toolResult.isError ? 'failed: ' : ''}${resultText(block.toolResult)}`
    default:
      block satisfies never
      return ''
  }
}

function resultText({ content }: ToolResult): string {
  return typeof content === 'string' ? content : content.map(briefly).join(' ')
}
