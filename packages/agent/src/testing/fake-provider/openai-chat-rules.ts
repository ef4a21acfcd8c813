import { hosts, type ChatHostId, type Host } from '../../models/hosts.ts'
import {
  asObject,
  firstAt,
  firstRepeated,
  isEmptyList,
  isJsonOfObject,
  matches,
  placed,
  type CheckedRequest,
  type Json,
  type Placed,
  type RuleTable,
} from './request-rule.ts'

/** A Chat Completions host that the fake provider can imitate. */
export type FakeHost = ChatHostId

export function chatHost(id: string | undefined): Host | undefined {
  const host = id === undefined ? undefined : hosts.find((each) => each.id === id)
  return host?.api === 'openai-compatible' ? host : undefined
}

/** The rules of Chat Completions servers, and of some hosts in particular. */
export const openaiChatRules = {
  'messages-not-empty': {
    demand: '`messages` must not be empty.',
    violation: ({ body }) => (isEmptyList(body['messages']) ? 'messages' : undefined),
  },
  role: {
    demand: 'The role of a message must be system, developer, user, assistant or tool.',
    violation: ({ body }) =>
      firstAt(messagesOf(body), ({ value }) => {
        return !matches(/^(?:system|developer|user|assistant|tool)$/, value['role'])
      }),
  },
  'user-says-something': {
    demand: 'The content of a user message must not be empty.',
    violation: ({ body }) =>
      firstAt(ofRole(body, 'user'), ({ value: { content } }) => !matches(/./s, content) && isEmptyList(content)),
  },
  'part-type': {
    demand: 'A part of a user message must have one of the types text, image_url, input_audio, video_url or file.',
    violation: ({ body }) =>
      firstAt(
        ofRole(body, 'user').flatMap(({ at, value }) => placed(value['content'], `${at}.content`)),
        ({ value }) => !matches(/^(?:text|image_url|input_audio|video_url|file)$/, value['type']),
      ),
  },
  'assistant-says-something': {
    demand: 'An assistant message must have content or tool calls.',
    violation: ({ body }) =>
      firstAt(ofRole(body, 'assistant'), ({ value: { content, tool_calls: calls } }) => {
        return isEmptyList(calls) && !matches(/./s, content) && isEmptyList(content)
      }),
  },
  'tool-calls-not-empty': {
    demand: '`tool_calls` must not be an empty list.',
    violation: ({ body, host }) =>
      host === 'mistral'
        ? undefined
        : firstAt(ofRole(body, 'assistant'), ({ value: { tool_calls: calls } }) => {
            return Array.isArray(calls) && calls.length === 0
          }),
  },
  'call-has-id': {
    demand: 'A tool call must have an id.',
    violation: ({ body }) => firstAt(allCalls(body), ({ value }) => !matches(/./s, value['id'])),
  },
  'call-ids-unique': {
    demand: 'The ids of tool calls must be unique.',
    violation: ({ body }) => firstRepeated(allCalls(body), ({ value }) => value['id']),
  },
  'call-type': {
    demand: 'The type of a tool call must be `function`.',
    violation: ({ body }) => firstAt(allCalls(body), ({ value }) => value['type'] !== 'function'),
  },
  'function-name': {
    demand: 'The name of a called function must match ^[a-zA-Z0-9_.-]{1,64}$.',
    violation: ({ body }) =>
      firstAt(allCalls(body), (call) => !matches(/^[a-zA-Z0-9_.-]{1,64}$/, functionOf(call)['name'])),
  },
  'arguments-is-string': {
    demand: 'The arguments of a tool call must be a string.',
    violation: ({ body }) => firstAt(allCalls(body), (call) => typeof functionOf(call)['arguments'] !== 'string'),
  },
  'arguments-is-json-object': {
    demand: 'The arguments of a tool call must be the JSON of an object.',
    violation: ({ body }) =>
      firstAt(allCalls(body), (call) => {
        const { arguments: given } = functionOf(call)
        return typeof given === 'string' && !isJsonOfObject(given)
      }),
  },
  'every-call-has-its-result': {
    demand: 'An assistant message with tool calls must be followed by a tool message for each of them.',
    violation: ({ body }) => {
      const messages = messagesOf(body)
      return messages.find((message, place) => {
        const calls = callsOf(message)
        if (calls.length === 0) return false
        const results = resultsAfter(messages, place)
        return calls.some(({ value }) => !results.has(value['id']))
      })?.at
    },
  },
  'every-result-has-its-call': {
    demand: 'A tool message must answer a call of the assistant message before it.',
    violation: ({ body }) => {
      let open = new Set<unknown>()
      return firstAt(messagesOf(body), (message) => {
        if (message.value['role'] === 'tool') return !open.delete(message.value['tool_call_id'])
        open = new Set(callsOf(message).map(({ value }) => value['id']))
        return false
      })
    },
  },
  'tool-content-type': {
    demand: 'The content of a tool message must be a string or a list of parts.',
    violation: ({ body }) =>
      firstAt(ofRole(body, 'tool'), ({ value: { content } }) => typeof content !== 'string' && !Array.isArray(content)),
  },
  'tool-content-not-empty': {
    demand: 'The content of a tool message must not be empty.',
    violation: ({ body }) => firstAt(ofRole(body, 'tool'), ({ value }) => value['content'] === ''),
  },
  'tool-name': {
    demand: 'The name of a function must match ^[a-zA-Z0-9_-]{1,64}$.',
    violation: ({ body }) =>
      firstAt(placed(body['tools'], 'tools'), (tool) => {
        return tool.value['type'] === 'function' && !matches(/^[a-zA-Z0-9_-]{1,64}$/, functionOf(tool)['name'])
      }),
  },
  'no-refused-message-member': {
    demand: 'An assistant message must not have a member that this host does not know.',
    violation: ({ body, host }) => {
      const refused = chatHost(host)?.refuses ?? []
      return firstAt(
        ofRole(body, 'assistant').flatMap(({ at, value }) =>
          refused.map((member) => ({ at: `${at}.${member}`, value, member })),
        ),
        ({ value, member }) => value[member] !== undefined,
      )
    },
  },
  'no-refused-request-member': {
    demand: 'A request must not have a member that this host does not know.',
    violation: ({ body, host }) => chatHost(host)?.refuses?.find((member) => body[member] !== undefined),
  },
  'calls-have-reasoning': {
    demand: 'The `reasoning_content` in the thinking mode must be passed back to the API.',
    violation: (request) =>
      demandsReasoning(request)
        ? firstAt(ofRole(request.body, 'assistant'), (message) => {
            return callsOf(message).length > 0 && typeof message.value['reasoning_content'] !== 'string'
          })
        : undefined,
  },
  'calls-have-reasoning-details': {
    demand:
      'A function call of the current turn is missing a thought_signature: its `reasoning_details` must be passed back.',
    violation: ({ body, host, model }) => {
      if (host !== 'openrouter' || !/gemini-[3-9]/.test(model)) return undefined
      const messages = messagesOf(body)
      const lastPrompt = messages.findLastIndex(({ value }) => value['role'] === 'user')
      return firstAt(messages.slice(lastPrompt + 1), (message) => {
        return callsOf(message).length > 0 && isEmptyList(message.value['reasoning_details'])
      })
    },
  },
  'call-id-pattern': {
    demand: 'A tool call id must match the pattern of this host.',
    violation: ({ body, host }) => {
      const pattern = chatHost(host)?.callIds
      return pattern && firstAt(allCalls(body), ({ value }) => !matches(pattern, value['id']))
    },
  },
  'no-prompt-after-results': {
    demand: "Unexpected role 'user' after role 'tool'.",
    violation: ({ body, host }) => {
      const messages = messagesOf(body)
      return chatHost(host)?.needsAnswerAfterResults
        ? messages.find(({ value }, place) => {
            return value['role'] === 'user' && messages[place - 1]?.value['role'] === 'tool'
          })?.at
        : undefined
    },
  },
  'mistral-last-role': {
    demand: 'Expected last role User or Tool (or Assistant with prefix True).',
    violation: ({ body, host }) =>
      host === 'mistral'
        ? firstAt(messagesOf(body).slice(-1), ({ value }) => {
            return !matches(/^(?:user|tool)$/, value['role']) && value['prefix'] !== true
          })
        : undefined,
  },
} satisfies RuleTable

function demandsReasoning({ body, host, model }: CheckedRequest): boolean {
  const isOff = asObject(body['thinking'])['type'] === 'disabled'
  return !isOff && chatHost(host)?.needsReasoning?.test(model) === true
}

function messagesOf(body: Json): Placed[] {
  return placed(body['messages'], 'messages')
}

function ofRole(body: Json, role: string): Placed[] {
  return messagesOf(body).filter(({ value }) => value['role'] === role)
}

function callsOf({ at, value }: Placed): Placed[] {
  return value['role'] === 'assistant' ? placed(value['tool_calls'], `${at}.tool_calls`) : []
}

function allCalls(body: Json): Placed[] {
  return messagesOf(body).flatMap(callsOf)
}

function functionOf({ value }: Placed): Json {
  return asObject(value['function'])
}

/** The ids of the calls that the tool messages directly after this index answer. */
function resultsAfter(messages: readonly Placed[], place: number): ReadonlySet<unknown> {
  const answered = new Set<unknown>()
  for (let next = place + 1; messages[next]?.value['role'] === 'tool'; next += 1) {
    answered.add(messages[next]?.value['tool_call_id'])
  }
  return answered
}
