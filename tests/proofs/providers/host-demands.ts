import type { FakeHost, FakeRequest } from '@tapetree/agent/testing'
import type { Loose } from './read-bytes.ts'

interface Demands {
  /** Members of an assistant message that it refuses. */
  refusedInMessages?: readonly string[]
  /** Members of a request that it refuses. */
  refusedInRequests?: readonly string[]
  /** The models that demand `reasoning_content` of every assistant message with calls. It may be empty. */
  demandsReasoning?: RegExp
  callIds?: RegExp
  /** A user message must not follow tool results directly. */
  demandsAnswerAfterResults?: true
}

/** Written down apart from the table of the agent, which the fake provider reads as well: a mistake there must not hide itself. */
const demands: Partial<Record<FakeHost, Demands>> = {
  cerebras: { refusedInMessages: ['reasoning_content'] },
  deepseek: { demandsReasoning: /deepseek-(?:v[4-9]|reasoner)/ },
  groq: { refusedInMessages: ['reasoning_content'] },
  mistral: {
    refusedInMessages: ['reasoning_content', 'reasoning', 'reasoning_details'],
    refusedInRequests: ['max_completion_tokens', 'seed', 'user'],
    callIds: /^[a-zA-Z0-9]{9}$/,
    demandsAnswerAfterResults: true,
  },
  moonshotai: { demandsReasoning: /kimi-(?:thinking|k2-thinking|k2\.[5-9]|k[3-9])/ },
  xai: { refusedInRequests: ['presence_penalty', 'frequency_penalty', 'stop'] },
}

/** What the host would not accept about a request. */
export function brokenDemands({ host, model, body }: FakeRequest): string[] {
  const {
    refusedInMessages = [],
    refusedInRequests = [],
    demandsReasoning,
    callIds,
    demandsAnswerAfterResults,
  } = demands[host as FakeHost] ?? {}
  const messages = (body['messages'] ?? []) as Loose[]
  return [
    ...refusedInRequests.filter((member) => body[member] !== undefined).map((member) => `it has ${member}`),
    ...messages.flatMap((message, place) => {
      const calls = (message.tool_calls ?? []) as Loose[]
      const isUnthought = calls.length > 0 && typeof message.reasoning_content !== 'string'
      const isAfterResults = message.role === 'user' && messages[place - 1]?.role === 'tool'
      return [
        ...refusedInMessages
          .filter((member) => message[member] !== undefined)
          .map((member) => `a message has ${member}`),
        ...(isUnthought && demandsReasoning?.test(model) ? ['calls have no reasoning_content'] : []),
        ...calls.filter(({ id }) => callIds?.test(id) === false).map(({ id }) => `${id} is no call id`),
        ...(isAfterResults && demandsAnswerAfterResults ? ['a user message follows tool results'] : []),
      ]
    }),
  ]
}
