import {
  asObject,
  firstAt,
  firstOf,
  firstRepeated,
  isEmptyList,
  isObject,
  matches,
  placed,
  type Json,
  type Placed,
  type RuleTable,
} from './request-rule.ts'

/** The rules of the Messages API of Anthropic. */
export const anthropicRules = {
  'max-tokens': {
    demand: '`max_tokens` must be a positive integer.',
    violation: ({ body }) => {
      const { max_tokens: maxTokens } = body
      return Number.isInteger(maxTokens) && Number(maxTokens) > 0 ? undefined : 'max_tokens'
    },
  },
  'messages-not-empty': {
    demand: 'At least one message is required.',
    violation: ({ body }) => (isEmptyList(body['messages']) ? 'messages' : undefined),
  },
  'first-message-is-user': {
    demand: 'The first message must have the role `user`.',
    violation: ({ body }) => firstAt(messagesOf(body).slice(0, 1), ({ value }) => value['role'] !== 'user'),
  },
  'last-message-is-user': {
    demand: 'This model does not support prefilling: the conversation must end with a user message.',
    violation: ({ body, model }) =>
      takesPrefill.test(model)
        ? undefined
        : firstAt(messagesOf(body).slice(-1), ({ value }) => value['role'] === 'assistant'),
  },
  'no-trailing-space': {
    demand: 'A final assistant message must not end with white space.',
    violation: ({ body }) =>
      firstAt(messagesOf(body).slice(-1), (message) => {
        return message.value['role'] === 'assistant' && matches(/\s$/, blocksOf(message).at(-1)?.value['text'])
      }),
  },
  role: {
    demand: 'The role of a message must be `user`, `assistant` or `system`.',
    violation: ({ body }) =>
      firstAt(messagesOf(body), ({ value }) => !matches(/^(?:user|assistant|system)$/, value['role'])),
  },
  'content-not-empty': {
    demand: 'A message must have content.',
    violation: ({ body }) => firstAt(messagesOf(body), (message) => blocksOf(message).length === 0),
  },
  'text-is-string': {
    demand: 'The text of a text block must be a string.',
    violation: ({ body }) => firstAt(textBlocks(body), ({ value }) => typeof value['text'] !== 'string'),
  },
  'text-not-empty': {
    demand: 'Text content blocks must be non-empty.',
    violation: ({ body }) =>
      firstAt([...systemBlocks(body), ...textBlocks(body), ...resultTexts(body)], ({ value }) => value['text'] === ''),
  },
  'text-not-blank': {
    demand: 'Text content blocks must contain non-whitespace text.',
    violation: ({ body }) => firstAt(textBlocks(body), ({ value }) => matches(/^\s+$/, value['text'])),
  },
  'image-media-type': {
    demand: 'The media type of an image must be image/jpeg, image/png, image/gif or image/webp.',
    violation: ({ body }) =>
      firstAt(imagesOf(body), ({ value }) => {
        const source = asObject(value['source'])
        return source['type'] === 'base64' && !matches(/^image\/(?:jpeg|png|gif|webp)$/, source['media_type'])
      }),
  },
  'image-size': {
    demand: 'An image exceeds 5 MB maximum.',
    violation: ({ body }) =>
      firstAt(imagesOf(body), ({ value }) => {
        const { data } = asObject(value['source'])
        return typeof data === 'string' && Math.floor((data.length * 3) / 4) > 5_242_880 + 2
      }),
  },
  'tool-name': {
    demand: 'The name of a tool must match ^[a-zA-Z0-9_-]{1,128}$.',
    violation: ({ body }) => firstAt(toolsOf(body), ({ value }) => !matches(namePattern, value['name'])),
  },
  'tool-names-unique': {
    demand: 'Tool names must be unique.',
    violation: ({ body }) => firstRepeated(toolsOf(body), ({ value }) => value['name']),
  },
  'input-schema-is-object': {
    demand: 'The `input_schema` of a tool must have the type `object`.',
    violation: ({ body }) =>
      firstAt(ownToolsOf(body), ({ value }) => asObject(value['input_schema'])['type'] !== 'object'),
  },
  'no-top-level-combinator': {
    demand: 'An `input_schema` must not have oneOf, allOf or anyOf at the top level.',
    violation: ({ body }) =>
      firstAt(ownToolsOf(body), ({ value }) => {
        const schema = asObject(value['input_schema'])
        return ['oneOf', 'allOf', 'anyOf'].some((key) => schema[key] !== undefined)
      }),
  },
  'tool-use-id': {
    demand: 'The id of a `tool_use` block must match ^[a-zA-Z0-9_-]{1,64}$.',
    violation: ({ body }) =>
      firstAt(ofType(body, 'tool_use'), ({ value }) => !matches(/^[a-zA-Z0-9_-]{1,64}$/, value['id'])),
  },
  'tool-use-ids-unique': {
    demand: 'The ids of the `tool_use` blocks of a message must be unique.',
    violation: ({ body }) =>
      firstOf(messagesOf(body), (message) => firstRepeated(callsOf(message), ({ value }) => value['id'])),
  },
  'tool-use-name': {
    demand: 'The name of a `tool_use` block must match ^[a-zA-Z0-9_-]{1,128}$.',
    violation: ({ body }) => firstAt(ofType(body, 'tool_use'), ({ value }) => !matches(namePattern, value['name'])),
  },
  'tool-use-input-is-object': {
    demand: 'The input of a `tool_use` block must be an object.',
    violation: ({ body }) => firstAt(ofType(body, 'tool_use'), ({ value }) => !isObject(value['input'])),
  },
  'every-call-has-its-result': {
    demand: 'Each `tool_use` block must have a `tool_result` block in the next message.',
    violation: ({ body }) => {
      const messages = messagesOf(body)
      return firstOf(messages, (message, place) => {
        const answered = new Set(resultsOf(messages[place + 1]).map(({ value }) => value['tool_use_id']))
        return firstAt(callsOf(message), ({ value }) => !answered.has(value['id']))
      })
    },
  },
  'every-result-has-its-call': {
    demand: 'Each `tool_result` block must have a `tool_use` block in the previous message.',
    violation: ({ body }) => {
      const messages = messagesOf(body)
      return firstOf(messages, (message, place) => {
        const called = new Set(callsOf(messages[place - 1]).map(({ value }) => value['id']))
        return firstAt(resultsOf(message), ({ value }) => !called.has(value['tool_use_id']))
      })
    },
  },
  'one-result-per-call': {
    demand: 'Each `tool_use` must have a single result.',
    violation: ({ body }) =>
      firstOf(messagesOf(body), (message) => firstRepeated(resultsOf(message), ({ value }) => value['tool_use_id'])),
  },
  'results-come-first': {
    demand: 'The `tool_result` blocks of a message must come before its other blocks.',
    violation: ({ body }) =>
      firstOf(messagesOf(body), (message) => {
        const blocks = blocksOf(message)
        const other = blocks.findIndex(({ value }) => value['type'] !== 'tool_result')
        return other === -1 ? undefined : firstAt(blocks.slice(other), ({ value }) => value['type'] === 'tool_result')
      }),
  },
  'failed-result-has-content': {
    demand: 'The content of a `tool_result` must not be empty if `is_error` is true.',
    violation: ({ body }) =>
      firstAt(ofType(body, 'tool_result'), ({ value }) => {
        const { content, is_error: isError } = value
        return isError === true && (content === undefined || content === '' || isEmptyArray(content))
      }),
  },
  'server-tool-has-result': {
    demand: 'Each `server_tool_use` block must have its result in the same message.',
    violation: ({ body }) =>
      firstOf(messagesOf(body), (message) => {
        const answered = new Set(blocksOf(message).map(({ value }) => value['tool_use_id']))
        return firstAt(blocksOf(message), ({ value }) => {
          return value['type'] === 'server_tool_use' && !answered.has(value['id'])
        })
      }),
  },
  'server-result-has-call': {
    demand: 'Each result of a server tool must have its `server_tool_use` block in the same message.',
    violation: ({ body }) =>
      firstOf(messagesOf(body), (message) => {
        const called = new Set(blocksOf(message).map(({ value }) => value['id']))
        return firstAt(blocksOf(message), ({ value }) => {
          return matches(/^(?!tool_result$).+_tool_result$/, value['type']) && !called.has(value['tool_use_id'])
        })
      }),
  },
  'thinking-is-signed': {
    demand: 'A `thinking` block must have its `signature`.',
    violation: ({ body }) => firstAt(ofType(body, 'thinking'), ({ value }) => !matches(/./, value['signature'])),
  },
  'redacted-thinking-has-data': {
    demand: 'A `redacted_thinking` block must have its `data`.',
    violation: ({ body }) => firstAt(ofType(body, 'redacted_thinking'), ({ value }) => !matches(/./, value['data'])),
  },
  'last-block-not-thinking': {
    demand: 'The final block in an assistant message cannot be `thinking`.',
    violation: ({ body }) =>
      firstOf(messagesOf(body), (message) => {
        return message.value['role'] === 'assistant' ? firstAt(blocksOf(message).slice(-1), isThinking) : undefined
      }),
  },
  'turn-begins-with-thinking': {
    demand: 'With `thinking.type` enabled, the current turn with `tool_use` must start with a thinking block.',
    violation: ({ body }) => {
      if (asObject(body['thinking'])['type'] !== 'enabled') return undefined
      const messages = messagesOf(body)
      const lastPrompt = messages.findLastIndex(isPrompt)
      return firstAt(messages.slice(lastPrompt + 1), (message) => {
        const [first] = blocksOf(message)
        return callsOf(message).length > 0 && first !== undefined && !isThinking(first)
      })
    },
  },
  'at-most-4-cache-marks': {
    demand: 'At most 4 blocks may have `cache_control`.',
    violation: ({ body }) => cacheMarks(body)[4]?.at,
  },
  'no-cache-control-on-thinking': {
    demand: '`cache_control` cannot be set for thinking blocks.',
    violation: ({ body }) => firstAt(cacheMarks(body), isThinking),
  },
  'no-cache-control-on-empty-text': {
    demand: '`cache_control` cannot be set for empty text blocks.',
    violation: ({ body }) =>
      firstAt(cacheMarks(body), ({ value }) => value['type'] === 'text' && !matches(/./s, value['text'])),
  },
  'thinking-budget-at-least-1024': {
    demand: '`thinking.budget_tokens` must be at least 1024.',
    violation: ({ body }) => {
      const { type, budget_tokens: budget } = asObject(body['thinking'])
      return type === 'enabled' && !(Number(budget) >= 1024) ? 'thinking.budget_tokens' : undefined
    },
  },
  'max-tokens-above-budget': {
    demand: '`max_tokens` must be greater than `thinking.budget_tokens`.',
    violation: ({ body }) => {
      const { type, budget_tokens: budget } = asObject(body['thinking'])
      return type === 'enabled' && !(Number(body['max_tokens']) > Number(budget)) ? 'max_tokens' : undefined
    },
  },
  'no-budget-thinking': {
    demand: 'This model does not support `thinking.type` enabled. Use adaptive thinking.',
    violation: ({ body, model }) =>
      /claude-(?:fable-5|(?:sonnet|opus|haiku)-5-5)/.test(model) && asObject(body['thinking'])['type'] === 'enabled'
        ? 'thinking.type'
        : undefined,
  },
  'no-adaptive-thinking': {
    demand: 'This model does not support adaptive thinking.',
    violation: ({ body, model }) =>
      takesPrefill.test(model) && asObject(body['thinking'])['type'] === 'adaptive' ? 'thinking.type' : undefined,
  },
  'no-disabled-thinking': {
    demand: 'Thinking cannot be disabled for this model.',
    violation: ({ body, model }) =>
      /claude-(?:fable-5|(?:sonnet|opus)-5-5)/.test(model) && asObject(body['thinking'])['type'] === 'disabled'
        ? 'thinking.type'
        : undefined,
  },
  'effort-without-thinking': {
    demand: 'This model requires thinking at the efforts xhigh and max.',
    violation: ({ body, model }) => {
      const { effort } = asObject(body['output_config'])
      const isDisabled = asObject(body['thinking'])['type'] === 'disabled'
      return /claude-(?:opus-5|haiku-5-5)/.test(model) && isDisabled && matches(/^(?:xhigh|max)$/, effort)
        ? 'output_config.effort'
        : undefined
    },
  },
  'no-temperature-with-thinking': {
    demand: '`temperature` may only be set to 1 when thinking is enabled.',
    violation: ({ body }) => {
      const { temperature = 1 } = body
      return thinks(body) && temperature !== 1 ? 'temperature' : undefined
    },
  },
  'no-top-k-with-thinking': {
    demand: '`top_k` must be unset when thinking is enabled.',
    violation: ({ body }) => (thinks(body) && body['top_k'] !== undefined ? 'top_k' : undefined),
  },
  'no-forced-tool-with-thinking': {
    demand: 'Thinking may not be enabled when `tool_choice` forces tool use.',
    violation: ({ body }) =>
      thinks(body) && matches(/^(?:any|tool)$/, asObject(body['tool_choice'])['type']) ? 'tool_choice' : undefined,
  },
} satisfies RuleTable

const namePattern = /^[a-zA-Z0-9_-]{1,128}$/

/** Models up to 4.5: they continue a final assistant message and do not support adaptive thinking. */
const takesPrefill = /claude-(?:instant|2|3|(?:opus|sonnet|haiku)-4(?!-[6-9]))/

function messagesOf(body: Json): Placed[] {
  return placed(body['messages'], 'messages')
}

function blocksOf(message: Placed | undefined): Placed[] {
  if (!message) return []
  const { content } = message.value
  const at = `${message.at}.content`
  return typeof content === 'string' ? [{ at, value: { type: 'text', text: content } }] : placed(content, at)
}

function ofType(body: Json, type: string): Placed[] {
  return messagesOf(body)
    .flatMap(blocksOf)
    .filter(({ value }) => value['type'] === type)
}

function textBlocks(body: Json): Placed[] {
  return ofType(body, 'text')
}

function systemBlocks(body: Json): Placed[] {
  return placed(body['system'], 'system')
}

function resultContents(body: Json): Placed[] {
  return ofType(body, 'tool_result').flatMap(({ at, value }) => placed(value['content'], `${at}.content`))
}

function resultTexts(body: Json): Placed[] {
  return resultContents(body).filter(({ value }) => value['type'] === 'text')
}

function imagesOf(body: Json): Placed[] {
  return [...ofType(body, 'image'), ...resultContents(body).filter(({ value }) => value['type'] === 'image')]
}

function toolsOf(body: Json): Placed[] {
  return placed(body['tools'], 'tools')
}

/** Tools that the client defines; provider tools have a type and no schema. */
function ownToolsOf(body: Json): Placed[] {
  return toolsOf(body).filter(({ value }) => value['type'] === undefined || value['type'] === 'custom')
}

function callsOf(message: Placed | undefined): Placed[] {
  return message?.value['role'] === 'assistant'
    ? blocksOf(message).filter(({ value }) => value['type'] === 'tool_use')
    : []
}

function resultsOf(message: Placed | undefined): Placed[] {
  return blocksOf(message).filter(({ value }) => value['type'] === 'tool_result')
}

/** Whether a user message has more than results of calls: then a new turn begins. */
function isPrompt(message: Placed): boolean {
  return message.value['role'] === 'user' && blocksOf(message).some(({ value }) => value['type'] !== 'tool_result')
}

function isThinking({ value }: Placed): boolean {
  return matches(/^(?:redacted_)?thinking$/, value['type'])
}

function cacheMarks(body: Json): Placed[] {
  return [...toolsOf(body), ...systemBlocks(body), ...messagesOf(body).flatMap(blocksOf)].filter(
    ({ value }) => value['cache_control'] !== undefined && value['cache_control'] !== null,
  )
}

function thinks(body: Json): boolean {
  const { type } = asObject(body['thinking'])
  return type !== undefined && type !== 'disabled'
}

function isEmptyArray(value: unknown): boolean {
  return Array.isArray(value) && value.length === 0
}
