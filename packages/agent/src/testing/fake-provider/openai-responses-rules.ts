import {
  asObject,
  firstAt,
  firstRepeated,
  isEmptyList,
  isJsonOfObject,
  matches,
  placed,
  type Json,
  type Placed,
  type RuleTable,
} from './request-rule.ts'

/** The rules of the Responses API of OpenAI. */
export const openaiResponsesRules = {
  'input-not-empty': {
    demand: '`input` must have at least one item.',
    violation: ({ body }) => {
      const { input } = body
      return matches(/./s, input) || !isEmptyList(input) ? undefined : 'input'
    },
  },
  role: {
    demand: 'The role of a message must be user, assistant, system or developer.',
    violation: ({ body }) =>
      firstAt(ofType(body, 'message'), ({ value }) => !matches(/^(?:user|assistant|system|developer)$/, value['role'])),
  },
  'content-not-empty': {
    demand: 'A message must have content.',
    violation: ({ body }) =>
      firstAt(ofType(body, 'message'), ({ value: { content } }) => typeof content !== 'string' && isEmptyList(content)),
  },
  'part-type': {
    demand: 'Parts of an assistant message are output_text or refusal; those of other messages are input parts.',
    violation: ({ body }) =>
      ofType(body, 'message')
        .map(({ at, value: { role, content } }) => {
          const accepted = role === 'assistant' ? /^(?:output_text|refusal)$/ : /^input_(?:text|image|file|audio)$/
          return firstAt(placed(content, `${at}.content`), ({ value }) => !matches(accepted, value['type']))
        })
        .find((at) => at !== undefined),
  },
  'item-ids-unique': {
    demand: 'The ids of items must be unique.',
    violation: ({ body }) =>
      firstRepeated(
        itemsOf(body).filter((item) => typeOf(item) !== 'item_reference'),
        ({ value }) => value['id'] ?? undefined,
      ),
  },
  'item-id-length': {
    demand: 'The id of an item has at most 64 characters.',
    violation: ({ body }) => firstAt(itemsOf(body), ({ value }) => matches(/^.{65}/s, value['id'])),
  },
  'item-id-prefix': {
    demand: 'The id of an item must begin with the prefix of its type: rs_, msg_ or fc_.',
    violation: ({ body }) =>
      firstAt(itemsOf(body), (item) => {
        const prefix = itemIdPrefixes.get(typeOf(item))
        const { id } = item.value
        return prefix !== undefined && id !== undefined && id !== null && !matches(prefix, id)
      }),
  },
  'no-reference-without-store': {
    demand: 'Items are not persisted when `store` is set to false, so they cannot be referenced.',
    violation: ({ body }) => (body['store'] === false ? ofType(body, 'item_reference')[0]?.at : undefined),
  },
  'call-ids-unique': {
    demand: 'The `call_id` of each function call must be unique.',
    violation: ({ body }) => firstRepeated(callsOf(body), ({ value }) => value['call_id']),
  },
  'call-id-length': {
    demand: 'A `call_id` must have 1 to 64 characters.',
    violation: ({ body }) =>
      firstAt([...callsOf(body), ...outputsOf(body)], ({ value }) => !matches(/^.{1,64}$/s, value['call_id'])),
  },
  'function-name': {
    demand: 'The name of a function call must match ^[a-zA-Z0-9_-]{1,128}$.',
    violation: ({ body }) => firstAt(callsOf(body), ({ value }) => !matches(/^[a-zA-Z0-9_-]{1,128}$/, value['name'])),
  },
  'arguments-is-string': {
    demand: 'The arguments of a function call must be a string.',
    violation: ({ body }) => firstAt(callsOf(body), ({ value }) => typeof value['arguments'] !== 'string'),
  },
  'arguments-is-json-object': {
    demand: 'The arguments of a function call must be the JSON of an object.',
    violation: ({ body }) =>
      firstAt(callsOf(body), ({ value }) => {
        return typeof value['arguments'] === 'string' && !isJsonOfObject(value['arguments'])
      }),
  },
  'every-call-has-its-output': {
    demand: 'No tool output found for function call.',
    violation: ({ body }) => {
      const answered = new Set(outputsOf(body).map(({ value }) => value['call_id']))
      return firstAt(callsOf(body), ({ value }) => !answered.has(value['call_id']))
    },
  },
  'every-output-has-its-call': {
    demand: 'No tool call found for function call output.',
    violation: ({ body }) => {
      const called = new Set(callsOf(body).map(({ value }) => value['call_id']))
      return firstAt(outputsOf(body), ({ value }) => !called.has(value['call_id']))
    },
  },
  'output-after-call': {
    demand: 'The output of a function call must come after the call.',
    violation: ({ body }) => {
      const answered = new Set<unknown>()
      return firstAt(itemsOf(body), (item) => {
        if (typeOf(item) === 'function_call_output') answered.add(item.value['call_id'])
        return typeOf(item) === 'function_call' && answered.has(item.value['call_id'])
      })
    },
  },
  'one-output-per-call': {
    demand: 'A function call must have a single output.',
    violation: ({ body }) => firstRepeated(outputsOf(body), ({ value }) => value['call_id']),
  },
  'output-type': {
    demand: 'The output of a function call must be a string or a list of parts.',
    violation: ({ body }) =>
      firstAt(outputsOf(body), ({ value: { output } }) => typeof output !== 'string' && !Array.isArray(output)),
  },
  'output-length': {
    demand: 'The output of a function call must have at most 10485760 characters.',
    violation: ({ body }) =>
      firstAt(outputsOf(body), ({ value: { output } }) => typeof output === 'string' && output.length > 10_485_760),
  },
  'reasoning-has-summary': {
    demand: 'A reasoning item must have a `summary`.',
    violation: ({ body }) => firstAt(ofType(body, 'reasoning'), ({ value }) => !Array.isArray(value['summary'])),
  },
  'reasoning-is-encrypted': {
    demand: 'Without `store`, a reasoning item must have its `encrypted_content`.',
    violation: ({ body }) =>
      body['store'] === false
        ? firstAt(ofType(body, 'reasoning'), ({ value }) => !matches(/./, value['encrypted_content']))
        : undefined,
  },
  'reasoning-has-its-following-item': {
    demand: 'An item of type reasoning was provided without its required following item.',
    violation: ({ body }) => {
      const items = itemsOf(body)
      return items.find((item, place) => {
        const next = items[place + 1]
        return typeOf(item) === 'reasoning' && !(next && isOutputItem(next))
      })?.at
    },
  },
  'tool-name': {
    demand: 'The name of a function must match ^[a-zA-Z0-9_-]{1,64}$.',
    violation: ({ body }) =>
      firstAt(placed(body['tools'], 'tools'), ({ value }) => {
        return value['type'] === 'function' && !matches(/^[a-zA-Z0-9_-]{1,64}$/, value['name'])
      }),
  },
  'at-most-128-tools': {
    demand: '`tools` must have at most 128 items.',
    violation: ({ body }) => placed(body['tools'], 'tools')[128]?.at,
  },
  'include-is-known': {
    demand: '`include` must name output that the API knows.',
    violation: ({ body }) => {
      const include: unknown[] = Array.isArray(body['include']) ? body['include'] : []
      const place = include.findIndex((each) => !matches(knownInclude, each))
      return place === -1 ? undefined : `include.${place}`
    },
  },
  'no-encrypted-content-without-reasoning': {
    demand: 'Encrypted content is not supported with this model.',
    violation: ({ body, model }) =>
      /^(?:gpt-3|gpt-4|chatgpt|gpt-5-chat)/.test(model) &&
      Array.isArray(body['include']) &&
      body['include'].includes('reasoning.encrypted_content')
        ? 'include'
        : undefined,
  },
  'no-temperature-with-reasoning': {
    demand: '`temperature` is not supported with this model.',
    violation: ({ body, model }) => {
      const isReasoning = /^(?:o\d|gpt-[5-9](?!-chat))/.test(model)
      const isOff = asObject(body['reasoning'])['effort'] === 'none'
      return isReasoning && !isOff && body['temperature'] !== undefined ? 'temperature' : undefined
    },
  },
  'max-output-tokens-at-least-16': {
    demand: '`max_output_tokens` must be at least 16.',
    violation: ({ body }) => {
      const { max_output_tokens: most } = body
      return most !== undefined && most !== null && !(Number(most) >= 16) ? 'max_output_tokens' : undefined
    },
  },
  'prompt-cache-key-length': {
    demand: '`prompt_cache_key` must have at most 64 characters.',
    violation: ({ body }) => (matches(/^.{65}/s, body['prompt_cache_key']) ? 'prompt_cache_key' : undefined),
  },
} satisfies RuleTable

const itemIdPrefixes = new Map([
  ['reasoning', /^rs_/],
  ['message', /^msg_/],
  ['function_call', /^fc_/],
])

const knownInclude =
  /^(?:reasoning\.encrypted_content$|(?:web_search_call|file_search_call|message|computer_call_output|code_interpreter_call)\.)/

function itemsOf(body: Json): Placed[] {
  return placed(body['input'], 'input')
}

function typeOf({ value }: Placed): string {
  return typeof value['type'] === 'string' ? value['type'] : 'message'
}

function ofType(body: Json, type: string): Placed[] {
  return itemsOf(body).filter((item) => typeOf(item) === type)
}

function callsOf(body: Json): Placed[] {
  return ofType(body, 'function_call')
}

function outputsOf(body: Json): Placed[] {
  return ofType(body, 'function_call_output')
}

/** Whether the model produced the item, so that it may follow reasoning. */
function isOutputItem(item: Placed): boolean {
  const type = typeOf(item)
  return type === 'message' ? item.value['role'] === 'assistant' : /^reasoning$|_call$/.test(type)
}
