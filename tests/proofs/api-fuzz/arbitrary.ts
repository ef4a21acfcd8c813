import fc from 'fast-check'
import { z, type ZodType } from 'zod'

type JsonSchema = z.core.JSONSchema.JSONSchema

/** Ids of things that exist: a request that names none of them is refused before anything happens. */
export type KnownIds = Readonly<Record<string, readonly string[]>>

/** Values of a schema, mostly such as it takes, and now and then such as nobody should send. */
export function arbitraryOf(schema: ZodType, known: KnownIds): fc.Arbitrary<unknown> {
  return fromJson(z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' }), { known, name: '' })
}

interface Place {
  known: KnownIds
  /** Of the member that this is the value of. */
  name: string
}

function fromJson(schema: JsonSchema | boolean, place: Place): fc.Arbitrary<unknown> {
  if (typeof schema === 'boolean') return hostile
  return fc.oneof({ weight: 12, arbitrary: fitting(schema, place) }, { weight: 1, arbitrary: hostile })
}

function fitting(schema: JsonSchema, place: Place): fc.Arbitrary<unknown> {
  const forms = schema.anyOf ?? schema.oneOf
  if (forms) return fc.oneof(...forms.map((form) => fromJson(form, place)))
  if (schema.const !== undefined) return fc.constant(schema.const)
  if (schema.enum) return fc.constantFrom(...schema.enum)
  switch (schema.type) {
    case 'object':
      return objectOf(schema, place)
    case 'array':
      return fc.array(fromJson((schema.items ?? true) as JsonSchema, place), { maxLength: 4 })
    case 'string':
      return stringOf(schema, place)
    case 'integer':
    case 'number':
      return fc.oneof(
        fc.integer({ min: Math.max(schema.minimum ?? 0, -1000), max: Math.min(schema.maximum ?? 1000, 1000) }),
        fc.double(),
      )
    case 'boolean':
      return fc.boolean()
    case 'null':
      return fc.constant(null)
    default:
      return fc.jsonValue({ maxDepth: 3 })
  }
}

function objectOf({ properties = {}, required = [] }: JsonSchema, { known }: Place): fc.Arbitrary<unknown> {
  const members = Object.entries(properties).map(([name, inner]) => {
    const value = fromJson(inner, { known, name })
    return fc.option(
      value.map((each) => [name, each] as const),
      { freq: required.includes(name) ? 30 : 2, nil: undefined },
    )
  })
  const extra = fc.option(
    fc.tuple(fc.constantFrom('__proto__', 'constructor', 'extra', ''), fc.jsonValue({ maxDepth: 2 })),
    { freq: 1, nil: undefined },
  )
  return fc
    .tuple(...members, fc.oneof({ weight: 15, arbitrary: fc.constant(undefined) }, { weight: 1, arbitrary: extra }))
    .map((all) => Object.fromEntries(all.filter((each) => each !== undefined)))
}

function stringOf(
  { pattern, maxLength = 200, minLength = 0 }: JsonSchema,
  { known, name }: Place,
): fc.Arbitrary<string> {
  const ids = known[name] ?? []
  const made =
    pattern === undefined
      ? fc.string({ minLength: Math.min(minLength, 10), maxLength: Math.min(maxLength, 60), unit: 'binary' })
      : fc.stringMatching(new RegExp(pattern))
  return ids.length === 0 ? made : fc.oneof({ weight: 4, arbitrary: fc.constantFrom(...ids) }, made)
}

const hostile: fc.Arbitrary<unknown> = fc.oneof(
  fc.constantFrom<unknown>(
    null,
    true,
    -1,
    0,
    1e308,
    -0.5,
    Number.MAX_SAFE_INTEGER,
    '',
    '\0',
    '..',
    '../../etc/passwd',
    '\ud800',
    '\uffff',
    'x'.repeat(10_000),
    '<script>alert(1)</script>',
    "'; DROP TABLE sessions; --",
    '%s%n',
    '*',
    '"',
    '-',
    [],
    {},
    [[]],
    { toString: 1 },
    '__proto__',
    '2026-13-45T99:99:99Z',
    'NaN',
  ),
  fc.jsonValue({ maxDepth: 2 }),
  fc.string({ unit: 'binary', maxLength: 30 }),
)

/** Bodies that are not what their type says. */
export const brokenBodies: fc.Arbitrary<string> = fc.oneof(
  fc.constantFrom(
    '',
    '{',
    'null',
    '[]',
    '"x"',
    '{"a":1,}',
    '\u0000',
    `${'['.repeat(5000)}${']'.repeat(5000)}`,
    `{"a":${'{"a":'.repeat(100)}1${'}'.repeat(100)}}`,
    '{"__proto__":{"x":1}}',
    '{"text":"\\ud800"}',
    'x'.repeat(1000),
  ),
  fc.string({ unit: 'binary', maxLength: 50 }),
)

/** Headers that mean something to some route. */
export const oddHeaders: fc.Arbitrary<Record<string, string>> = fc.oneof(
  { weight: 6, arbitrary: fc.constant({}) },
  {
    weight: 3,
    arbitrary: fc.dictionary(
      fc.constantFrom(
        'if-match',
        'if-none-match',
        'idempotency-key',
        'x-client-id',
        'last-event-id',
        'accept',
        'range',
      ),
      fc.constantFrom(
        '*',
        '"x"',
        'a',
        '1-ffffffff',
        '99999999999999999999-x',
        '-',
        '../..',
        'application/x-ndjson',
        'bytes=0-',
        'é',
        'k1',
      ),
      { maxKeys: 3 },
    ),
  },
)
