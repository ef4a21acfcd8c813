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

/** The rules of the Gemini API of Google. */
export const geminiRules = {
  'contents-not-empty': {
    demand: '`contents` must not be empty.',
    violation: ({ body }) => (isEmptyList(body['contents']) ? 'contents' : undefined),
  },
  'first-turn-is-user': {
    demand: 'The first turn must be of the user.',
    violation: ({ body }) => firstAt(contentsOf(body).slice(0, 1), ({ value }) => value['role'] === 'model'),
  },
  role: {
    demand: 'Please use a valid role: user, model.',
    violation: ({ body }) => firstAt(contentsOf(body), ({ value }) => !matches(/^(?:user|model)$/, value['role'])),
  },
  'parts-not-empty': {
    demand: 'A turn must include at least one part.',
    violation: ({ body }) => firstAt(contentsOf(body), ({ value }) => isEmptyList(value['parts'])),
  },
  'part-has-one-kind-of-data': {
    demand: 'The `data` of a part must have exactly one initialized field.',
    violation: ({ body }) =>
      firstAt(allParts(body), ({ value }) => dataKinds.filter((kind) => value[kind] !== undefined).length !== 1),
  },
  'text-not-empty': {
    demand: 'The text of a part must not be empty unless it has a signature.',
    violation: ({ body }) =>
      firstAt(allParts(body), ({ value }) => value['text'] === '' && !matches(/./, value['thoughtSignature'])),
  },
  'calls-by-model': {
    demand: 'Function calls must be in turns of the model.',
    violation: ({ body }) =>
      firstAt(contentsOf(body), (content) => content.value['role'] !== 'model' && callsIn(content).length > 0),
  },
  'function-name': {
    demand:
      'The name of a function call must begin with a letter or an underscore and match [a-zA-Z0-9_.:-], at most 128.',
    violation: ({ body }) =>
      firstAt(contentsOf(body).flatMap(callsIn), ({ value }) => {
        return !matches(namePattern, asObject(value['functionCall'])['name'])
      }),
  },
  'args-is-object': {
    demand: 'The args of a function call must be an object.',
    violation: ({ body }) =>
      firstAt(contentsOf(body).flatMap(callsIn), ({ value }) => {
        const { args = {} } = asObject(value['functionCall'])
        return !isObject(args)
      }),
  },
  'response-is-object': {
    demand: 'The response of a function must be an object.',
    violation: ({ body }) =>
      firstAt(contentsOf(body).flatMap(responsesIn), ({ value }) => {
        return !isObject(asObject(value['functionResponse'])['response'])
      }),
  },
  'as-many-responses-as-calls': {
    demand:
      'The number of function response parts must be equal to the number of function call parts of the call turn.',
    violation: ({ body }) => {
      const contents = contentsOf(body)
      return contents.find((content, place) => {
        const count = callsIn(content).length
        return count > 0 && responsesIn(contents[place + 1]).length !== count
      })?.at
    },
  },
  'response-after-call': {
    demand: 'A function response turn must come immediately after a function call turn.',
    violation: ({ body }) => {
      const contents = contentsOf(body)
      return contents.find((content, place) => {
        return responsesIn(content).length > 0 && callsIn(contents[place - 1]).length === 0
      })?.at
    },
  },
  'response-name-of-its-call': {
    demand: 'A function response must have the name of its call.',
    violation: ({ body }) => pairs(body).find(({ call, response }) => call['name'] !== response['name'])?.at,
  },
  'response-id-of-its-call': {
    demand: 'A function response must have the id of its call.',
    violation: ({ body }) =>
      pairs(body).find(({ call, response }) => call['id'] !== undefined && call['id'] !== response['id'])?.at,
  },
  'call-after-user-or-response': {
    demand: 'A function call turn must come immediately after a user turn or after a function response turn.',
    violation: ({ body }) => {
      const contents = contentsOf(body)
      return contents.find((content, place) => {
        return callsIn(content).length > 0 && contents[place - 1]?.value['role'] !== 'user'
      })?.at
    },
  },
  'first-call-is-signed': {
    demand: 'A function call of the current turn is missing a `thought_signature` in functionCall parts.',
    violation: ({ body, model }) => {
      if (!/gemini-[3-9]/.test(model)) return undefined
      const contents = contentsOf(body)
      const lastPrompt = contents.findLastIndex(({ at, value }) => {
        return value['role'] === 'user' && placed(value['parts'], at).some((part) => !part.value['functionResponse'])
      })
      return firstOf(contents.slice(lastPrompt + 1), (content) => {
        return firstAt(callsIn(content).slice(0, 1), ({ value }) => !matches(/./, value['thoughtSignature']))
      })
    },
  },
  'declared-name': {
    demand: 'The name of a function must begin with a letter or an underscore and match [a-zA-Z0-9_.:-], at most 128.',
    violation: ({ body }) => firstAt(declarationsOf(body), ({ value }) => !matches(namePattern, value['name'])),
  },
  'declared-names-unique': {
    demand: 'A function was declared twice.',
    violation: ({ body }) => firstRepeated(declarationsOf(body), ({ value }) => value['name']),
  },
  'schema-keyword': {
    demand: '`parameters` of a function must have only keywords that the API knows.',
    violation: ({ body }) =>
      firstOf(declarationsOf(body), ({ at, value }) => unknownKeyword(value['parameters'], `${at}.parameters`)),
  },
  'one-thinking-setting': {
    demand: 'Only one of `thinkingBudget` and `thinkingLevel` may be set.',
    violation: ({ body }) => {
      const { thinkingBudget, thinkingLevel } = thinkingConfig(body)
      return thinkingBudget !== undefined && thinkingLevel !== undefined ? 'generationConfig.thinkingConfig' : undefined
    },
  },
  'thinking-level': {
    demand: '`thinkingLevel` is not supported for this model.',
    violation: ({ body, model }) =>
      /gemini-[12]/.test(model) && thinkingConfig(body)['thinkingLevel'] !== undefined
        ? 'generationConfig.thinkingConfig.thinkingLevel'
        : undefined,
  },
} satisfies RuleTable

const namePattern = /^[a-zA-Z_][a-zA-Z0-9_.:-]{0,127}$/

const dataKinds = [
  'text',
  'inlineData',
  'fileData',
  'functionCall',
  'functionResponse',
  'executableCode',
  'codeExecutionResult',
  'toolCall',
  'toolResponse',
]

/** The keywords of an OpenAPI schema that `parameters` may have; `parametersJsonSchema` accepts any JSON Schema. */
const schemaKeywords = new Set(
  (
    'type format title description nullable enum maxItems minItems properties required minProperties maxProperties ' +
    'minLength maxLength pattern example anyOf propertyOrdering default items minimum maximum'
  ).split(' '),
)

function unknownKeyword(schema: unknown, at: string): string | undefined {
  if (!isObject(schema)) return undefined
  const unknown = Object.keys(schema).find((key) => !schemaKeywords.has(key))
  if (unknown !== undefined) return `${at}.${unknown}`
  const below: [string, unknown][] = [
    ...Object.entries(asObject(schema['properties'])).map(([key, each]): [string, unknown] => [
      `properties.${key}`,
      each,
    ]),
    ['items', schema['items']],
    ...placed(schema['anyOf'], 'anyOf').map(({ at, value }): [string, unknown] => [at, value]),
  ]
  return below.map(([key, each]) => unknownKeyword(each, `${at}.${key}`)).find((found) => found !== undefined)
}

function contentsOf(body: Json): Placed[] {
  return placed(body['contents'], 'contents')
}

function partsOf(content: Placed | undefined): Placed[] {
  return content ? placed(content.value['parts'], `${content.at}.parts`) : []
}

function allParts(body: Json): Placed[] {
  return contentsOf(body).flatMap(partsOf)
}

function callsIn(content: Placed | undefined): Placed[] {
  return partsOf(content).filter(({ value }) => value['functionCall'] !== undefined)
}

function responsesIn(content: Placed | undefined): Placed[] {
  return partsOf(content).filter(({ value }) => value['functionResponse'] !== undefined)
}

/** Each call with its response. */
function pairs(body: Json): { at: string; call: Json; response: Json }[] {
  const contents = contentsOf(body)
  return contents.flatMap((content, place) => {
    const responses = responsesIn(contents[place + 1])
    return callsIn(content).flatMap(({ value }, index) => {
      const response = responses[index]
      if (!response) return []
      return [
        {
          at: response.at,
          call: asObject(value['functionCall']),
          response: asObject(response.value['functionResponse']),
        },
      ]
    })
  })
}

function declarationsOf(body: Json): Placed[] {
  // The API accepts a single tool or a list of them.
  return placed([body['tools'] ?? []].flat(), 'tools').flatMap(({ at, value }) =>
    placed(value['functionDeclarations'], `${at}.functionDeclarations`),
  )
}

function thinkingConfig(body: Json): Json {
  return asObject(asObject(body['generationConfig'])['thinkingConfig'])
}
