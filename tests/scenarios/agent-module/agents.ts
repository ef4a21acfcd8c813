import {
  AgentSession,
  createAgent,
  onlyModel,
  allowAll,
  type Agent,
  type AgentOptions,
  type AgentSessionOptions,
  type Model,
  type RunEnd,
  type Tool,
  type ToolContext,
  type ToolOutput,
} from '@tapetree/agent'
import { memoryStore, type Message } from '@tapetree/session'
import { onTestFinished } from 'vitest'
import { wordsOf } from '../../support/said.ts'

/** An agent that is closed when the test ends. */
export function agentWith(config: AgentOptions): Agent {
  const agent = createAgent(config)
  onTestFinished(() => agent.close())
  return agent
}

/** An `AgentSession` in memory, without tools, that is closed when the test ends. */
export async function openAgent(model: Model, options: Partial<AgentSessionOptions> = {}): Promise<AgentSession> {
  const agent = await AgentSession.open({
    store: memoryStore(),
    models: onlyModel(model),
    tools: () => [],
    systemPrompt: () => 'You are a test.',
    gate: () => allowAll,
    hasSubagents: false,
    ...options,
  })
  onTestFinished(() => agent.close())
  return agent
}

/** Says something to an agent that has nothing to do, and waits until it is done with it. */
export async function say(agent: AgentSession, words: string): Promise<RunEnd> {
  const outcome = await agent.prompt(words)
  if (outcome.type !== 'started') throw new Error(`It was ${outcome.type}.`)
  return outcome.run.done
}

/** A tool that takes anything. */
export function toolThat(
  name: string,
  run: (input: unknown, context: ToolContext) => Promise<ToolOutput> | ToolOutput,
): Tool {
  return {
    name,
    description: `A test of ${name}.`,
    inputSchema: { type: 'object' },
    readOnly: false,
    replay: 'never',
    deadlineMs: 60_000,
    check: (input) => ({ access: [], run: async (context) => run(input, context) }),
  }
}

/** Messages as `role: words`, a call as `[id]`, a result as `id=words`, reasoning as `(words)`. */
export function brief(messages: readonly Message[]): string[] {
  return messages.map((message) => `${message.role}: ${wordsOf(message)}`)
}
