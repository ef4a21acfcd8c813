import { CfWorkerJsonSchemaValidator } from '@modelcontextprotocol/client/validators/cf-worker'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { jsonSchemaCheck } from './json-schema-check.ts'

test('an issue has a message and a path', () => {
  const check = jsonSchemaCheck({
    type: 'object',
    properties: {
      name: { type: 'string', minLength: 2 },
      tags: { type: 'array', items: { enum: ['red', 'blue'] }, uniqueItems: true },
      size: { anyOf: [{ type: 'integer', minimum: 1 }, { const: 'any' }] },
    },
    required: ['name', 'kind'],
    additionalProperties: false,
  })
  expect(check({ name: 'x', tags: ['red', 'green', 'red'], size: 0, color: 1 })).toEqual([
    { message: 'Too few characters: at least 2', path: ['name'] },
    { message: 'Invalid input: expected "red" or "blue"', path: ['tags', 1] },
    { message: 'Equals an earlier item, and items must be unique', path: ['tags', 2] },
    { message: 'Matches no alternative: Must be at least 1; or Invalid input: expected "any"', path: ['size'] },
    { message: 'Missing key: "kind"', path: [] },
    { message: 'Unrecognized key: "color"', path: [] },
  ])
})

test('a recursive schema is followed to the depth of the value', () => {
  const check = jsonSchemaCheck({
    $ref: '#/$defs/node',
    $defs: {
      node: { type: 'object', properties: { next: { $ref: '#/$defs/node' }, value: { type: 'number' } } },
    },
  })
  expect(check({ next: { next: { value: 1 } } })).toEqual([])
  expect(check({ next: { next: { value: 'one' } } })).toEqual([
    { message: 'Invalid input: expected number, received string', path: ['next', 'next', 'value'] },
  ])
})

test('values are compared as JSON, whatever the order of their keys', () => {
  const check = jsonSchemaCheck({ properties: { list: { uniqueItems: true }, fixed: { const: { a: [1], b: 2 } } } })
  expect(check({ list: [[], {}, 1, '1', null, { a: 1 }], fixed: { b: 2, a: [1] } })).toEqual([])
  expect(check({ list: [{ a: 1, b: [] }, 0, { b: [], a: 1 }] })).toMatchObject([{ path: ['list', 2] }])
  expect(check({ fixed: { a: [1, 1], b: 2 } })).toHaveLength(1)
})

test('a list of items has its meaning of draft-07', () => {
  const check = jsonSchemaCheck({ items: [{ type: 'string' }], additionalItems: { type: 'number' } })
  expect(check(['a', 1, 2])).toEqual([])
  expect(check([1, 'a'])).toMatchObject([{ path: [0] }, { path: [1] }])
})

test('inherited names of objects count only as keys of the value', () => {
  const check = jsonSchemaCheck({ properties: { toString: { type: 'string' } }, required: ['constructor'] })
  expect(check({})).toEqual([{ message: 'Missing key: "constructor"', path: [] }])
  expect(check({ constructor: 1, toString: 2 })).toHaveLength(1)
})

test.each([
  [{ type: 'text' }, '#/type is not a type: text.'],
  [{ properties: 7 }, '#/properties must be an object.'],
  [{ properties: { a: 'string' } }, '#/properties/a must be an object.'],
  [{ required: true }, '#/required must be a list.'],
  [{ minimum: 1, exclusiveMinimum: true }, '#/exclusiveMinimum must be a number.'],
  [{ allOf: [{ unevaluatedProperties: false }] }, '"unevaluatedProperties" at #/allOf/0 is not supported.'],
  [{ $ref: '#/$defs/none' }, '#/$ref refers to #/$defs/none, which does not exist.'],
  [{ $ref: 'https://example.com/a.json' }, '#/$ref must refer to the same schema, such as "#/$defs/name".'],
  [{ pattern: '(' }, 'Invalid regular expression'],
])('a schema that cannot be enforced is rejected: %j', (schema, message) => {
  expect(() => jsonSchemaCheck(schema)).toThrow(message)
})

test('random schemas accept and reject the same values as another implementation', () => {
  const name = fc.constantFrom('a', 'b', 'c')
  const size = fc.integer({ min: 0, max: 3 })
  const scalar = fc.constantFrom(null, true, false, '', 'a', 'ab', 'abc', '𝄞', 0, 1, 2, 3, 1.5, -1)
  const { value } = fc.letrec((tie) => ({
    value: fc.oneof(
      { maxDepth: 3 },
      scalar,
      fc.array(tie('value'), { maxLength: 4 }),
      fc.dictionary(name, tie('value'), { maxKeys: 3, noNullPrototype: true }),
    ),
  }))
  const optional = { requiredKeys: [] as [] }
  const { schema } = fc.letrec((tie) => {
    const one = tie('schema')
    const several = fc.array(one, { minLength: 1, maxLength: 3 })
    const named = fc.dictionary(name, one, { maxKeys: 3, noNullPrototype: true })
    const type = fc.constantFrom('object', 'array', 'string', 'number', 'integer', 'boolean', 'null')
    return {
      schema: fc.oneof(
        { maxDepth: 3, depthIdentifier: 'schema' },
        fc.boolean(),
        fc.record({ type: fc.oneof(type, fc.uniqueArray(type, { minLength: 1, maxLength: 3 })) }, optional),
        fc.record({ enum: fc.array(scalar, { minLength: 1, maxLength: 3 }) }),
        fc.record({ const: scalar }),
        // The other implementation treats [] and {} as equal.
        fc.constant({ uniqueItems: true, items: { type: ['string', 'number', 'boolean', 'null'] } }),
        fc.constant({ $ref: '#/$defs/shared' }),
        fc.record(
          {
            type: fc.constant('object'),
            properties: named,
            patternProperties: fc.dictionary(fc.constantFrom('^a', 'b|c', '.'), one, { noNullPrototype: true }),
            additionalProperties: one,
            propertyNames: fc.record({ enum: fc.array(name, { minLength: 1 }) }),
            required: fc.uniqueArray(name),
            dependentRequired: fc.dictionary(name, fc.uniqueArray(name), { noNullPrototype: true }),
            dependentSchemas: named,
            minProperties: size,
            maxProperties: size,
          },
          optional,
        ),
        fc.record(
          {
            type: fc.constant('array'),
            prefixItems: several,
            items: one,
            contains: one,
            minItems: size,
            maxItems: size,
          },
          optional,
        ),
        fc.record({ minLength: size, maxLength: size, pattern: fc.constantFrom('^a', 'b$', '^.$') }, optional),
        fc.record(
          {
            minimum: size,
            maximum: size,
            exclusiveMinimum: size,
            exclusiveMaximum: size,
            multipleOf: fc.constantFrom(1, 2, 0.5),
          },
          optional,
        ),
        fc.record(
          { allOf: several, anyOf: several, oneOf: several, not: one, if: one, then: one, else: one },
          optional,
        ),
      ),
    }
  })
  const root = fc.tuple(schema, schema).map(([given, shared]) => {
    const members = typeof given === 'boolean' ? { allOf: [given] } : given
    // The shared schema must not refer to itself, or a check would not end.
    return { ...members, $defs: { shared: JSON.stringify(shared).includes('$ref') ? true : shared } }
  })
  let valid = 0
  fc.assert(
    fc.property(root, fc.array(value, { minLength: 5, maxLength: 10 }), (random, values) => {
      const check = jsonSchemaCheck(random)
      const other = new CfWorkerJsonSchemaValidator().getValidator(structuredClone(random) as Record<string, unknown>)
      for (const each of values) {
        const isValid = check(each).length === 0
        if (isValid) valid += 1
        expect(isValid, JSON.stringify(each)).toBe(other(each).valid)
      }
    }),
    { numRuns: 1500 },
  )
  expect(valid).toBeGreaterThan(100)
})
