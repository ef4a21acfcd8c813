import {
  AgentSession,
  onlyModel,
  allowAll,
  type AgentEvent,
  type AgentSessionOptions,
  type RunEnd,
  type Tool,
} from '@tapetree/agent'
import { FakeClock, scriptedModel, type ScriptBuilder, type ScriptedModel } from '@tapetree/agent/testing'
import { memoryStore, type Content, type SessionStore, type ToolResult } from '@tapetree/session'
import type { Line } from '@tapetree/session/format'
import { onTestFinished } from 'vitest'

/** An agent whose model is scripted and whose clock moves by hand; it is closed when the test ends. */
export interface OpenedAgent {
  agent: AgentSession
  model: ScriptedModel
  clock: FakeClock
  store: SessionStore
  /** All that was told so far. */
  events: AgentEvent[]
}

export interface AgentGiven extends Partial<Omit<AgentSessionOptions, 'tools'>> {
  script?: ScriptBuilder
  model?: never
  scripted?: ScriptedModel
  tools?: readonly Tool[]
}

export async function openAgent({ script, scripted, tools, ...options }: AgentGiven = {}): Promise<OpenedAgent> {
  const clock = new FakeClock()
  const model = scripted ?? scriptedModel(script, { clock })
  const store = options.store ?? memoryStore()
  const agent = await AgentSession.open({
    models: onlyModel(model),
    tools: () => tools ?? [model.tool('read', { readOnly: true }), model.tool('write')],
    systemPrompt: () => 'You are a test.',
    gate: () => allowAll,
    hasSubagents: false,
    clock,
    ...options,
    store,
  })
  onTestFinished(() => agent.close())
  const events: AgentEvent[] = []
  agent.subscribe((event) => events.push(event))
  return { agent, model, clock, store, events }
}

/** Prompts, and waits until nothing more is to be done. */
export async function finish(agent: AgentSession, words: string): Promise<RunEnd> {
  const outcome = await agent.prompt(words)
  if (outcome.type !== 'started') throw new Error(`The prompt was ${outcome.type}.`)
  return outcome.run.done
}

/** What is on the path to the leaf, as in `assistant: fine [read a]`. */
export async function pathOf({ session }: Pick<AgentSession, 'session'>): Promise<string[]> {
  const path = await session.getContextPath()
  return path.flatMap((entry) => {
    if (entry.type !== 'message') return []
    const { role, content, bashExecution } = entry.message
    return [`${role}: ${bashExecution ? bashExecution.command : content.map(briefly).join(' ')}`]
  })
}

/** The lines of one type that were told. */
export function linesOf<Type extends Line['type']>(
  events: readonly AgentEvent[],
  type: Type,
): Extract<Line, { type: Type }>[] {
  return events.flatMap((event) =>
    event.type === 'line' && event.committed.line.type === type
      ? [event.committed.line as Extract<Line, { type: Type }>]
      : [],
  )
}

export function textDeltas(events: readonly AgentEvent[]): string[] {
  return events.flatMap((event) => (event.type === 'delta' && event.kind === 'text' ? [event.text] : []))
}

/** A door that a script or a tool waits at until the test opens it. */
export function door(): { reached: Promise<void>; pass: () => Promise<void>; open: () => void } {
  const reached = Promise.withResolvers<void>()
  const opened = Promise.withResolvers<void>()
  const pass = (): Promise<void> => {
    reached.resolve()
    return opened.promise
  }
  return { reached: reached.promise, pass, open: () => opened.resolve() }
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
      return `${block.toolResult.toolUseId} ${block.toolResult.isError ? 'failed: ' : ''}${wordsOf(block.toolResult)}`
    default:
      return block satisfies never
  }
}

function wordsOf({ content }: ToolResult): string {
  return typeof content === 'string' ? content : content.map(briefly).join(' ')
}
