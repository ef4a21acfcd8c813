import { describe, expect, expectTypeOf, test } from 'vitest'
import { z } from 'zod'
import { createAgent } from '../agent/create-agent.ts'
import { script, scriptedModel } from '../testing/scripted-model.ts'
import type { StandardSchema } from './tool-input.ts'
import { defineTool, type Tool } from './tool.ts'

const place = { cwd: '/' }

interface ToolResultEvent {
  content: unknown
  isError: boolean | undefined
}

/** The result of one call for the model, through a whole session. */
async function resultOf(tool: Tool, input: Record<string, unknown>): Promise<ToolResultEvent> {
  const model = scriptedModel(script().toolCall('1', tool.name, input).step().text('done'))
  const agent = createAgent({ model, tools: [tool] })
  const results: ToolResultEvent[] = []
  await agent.ask('go', { onToolResult: ({ content, isError }) => void results.push({ content, isError }) })
  await agent.close()
  expect(results).toHaveLength(1)
  return results[0] as ToolResultEvent
}

/** A schema like those of valibot: it validates and transforms, but has no JSON Schema. */
function portSchema(): StandardSchema<{ port: string; depth: number }> {
  return {
    '~standard': {
      version: 1,
      vendor: 'hand-made',
      validate: (value) => {
        const { port, depth } = value as Record<string, unknown>
        if (typeof port !== 'string') return { issues: [{ message: 'Expected a name', path: [{ key: 'port' }] }] }
        return { value: { port: port.trim(), depth: Number(depth) } }
      },
    },
  }
}

const portJsonSchema = {
  type: 'object',
  properties: { port: { type: 'string' }, depth: { type: 'string' } },
  required: ['port'],
}

describe('zod', () => {
  const tide = defineTool({
    name: 'tide',
    description: 'Tells the tide.',
    schema: z.strictObject({ port: z.string().trim(), days: z.coerce.number().default(1) }),
    access: () => [],
    run: async (input) => {
      expectTypeOf(input).toEqualTypeOf<{ port: string; days: number }>()
      return { content: JSON.stringify(input) }
    },
  })

  test('valid input reaches the tool transformed', async () => {
    expect(await resultOf(tide, { port: ' Brest ' })).toEqual({
      content: '{"port":"Brest","days":1}',
      isError: undefined,
    })
  })

  test('invalid input gives one result with all problems and their paths', async () => {
    expect(await resultOf(tide, { port: 7, days: 2 })).toEqual({
      content: 'The input of tide is not valid. ✖ Invalid input: expected string, received number\n  → at port',
      isError: true,
    })
  })

  test('the model gets the JSON Schema of the input, not of the transformed output', () => {
    expect(tide.inputSchema).toMatchObject({
      type: 'object',
      properties: { port: { type: 'string' }, days: { type: 'number', default: 1 } },
      required: ['port'],
      additionalProperties: false,
    })
    expect(tide.inputSchema).not.toHaveProperty('$schema')
  })

  test('a version of zod that does not convert itself is converted', () => {
    const schema = z.object({ port: z.string() })
    const { jsonSchema: _, ...older } = schema['~standard']
    Object.defineProperty(schema, '~standard', { value: older })
    const tool = defineTool({ name: 'tide', description: '', schema, access: () => [], run: never })
    expect(tool.inputSchema).toMatchObject({ properties: { port: { type: 'string' } }, required: ['port'] })
  })
})

describe('a Standard Schema', () => {
  const tide = defineTool({
    name: 'tide',
    description: 'Tells the tide.',
    schema: portSchema(),
    inputSchema: portJsonSchema,
    access: ({ port }) => [{ type: 'tool', name: `tide of ${port}`, readOnly: true }],
    run: async (input) => {
      expectTypeOf(input).toEqualTypeOf<{ port: string; depth: number }>()
      return { content: JSON.stringify(input) }
    },
  })

  test('valid input reaches the tool transformed, and so does the access for the gate', async () => {
    expect(await resultOf(tide, { port: ' Brest', depth: '3' })).toEqual({
      content: '{"port":"Brest","depth":3}',
      isError: undefined,
    })
    expect(tide.check({ port: ' Brest' }, place)).toMatchObject({ access: [{ name: 'tide of Brest' }] })
  })

  test('invalid input gives one result with the messages of the schema', async () => {
    expect(await resultOf(tide, { depth: '3' })).toEqual({
      content: 'The input of tide is not valid. ✖ Expected a name\n  → at port',
      isError: true,
    })
  })

  test('the model gets the separate JSON Schema', () => {
    expect(tide.inputSchema).toEqual(portJsonSchema)
  })

  test('a schema that converts itself needs no separate one, and may be a function', () => {
    const asked: unknown[] = []
    const standard = {
      ...portSchema()['~standard'],
      jsonSchema: {
        input: (options: unknown) => {
          asked.push(options)
          return { $schema: 'https://json-schema.org/draft/2020-12/schema', ...portJsonSchema }
        },
      },
    }
    const schema: StandardSchema<{ port: string }> = Object.assign(() => undefined, { '~standard': standard })
    const tool = defineTool({ name: 'tide', description: '', schema, access: () => [], run: never })
    expect(tool.inputSchema).toEqual(portJsonSchema)
    expect(asked).toEqual([{ target: 'draft-2020-12' }])
  })

  test('without any JSON Schema the tool is not defined', () => {
    expect(() =>
      defineTool({ name: 'tide', description: '', schema: portSchema(), access: () => [], run: never }),
    ).toThrow(
      'The schema of the tool tide is of hand-made, which provides no JSON Schema. Pass one as `inputSchema` beside `schema`.',
    )
  })

  test('a schema that cannot be converted needs a separate JSON Schema', () => {
    const options = { name: 'tide', description: '', schema: z.object({ at: z.date() }), access: () => [], run: never }
    expect(() => defineTool(options)).toThrow(/The schema of the tool tide has no JSON Schema\. .*Pass one as/)
    expect(defineTool({ ...options, inputSchema: portJsonSchema }).inputSchema).toEqual(portJsonSchema)
  })

  test('a schema that validates asynchronously is rejected at the first call', async () => {
    const schema = z.object({ port: z.string().refine(async () => true) })
    const tool = defineTool({ name: 'tide', description: '', schema, access: () => [], run: never })
    expect(() => tool.check({ port: 'Brest' }, place)).toThrow('validates asynchronously')
    expect(await resultOf(tool, { port: 'Brest' })).toMatchObject({
      content: expect.stringContaining('validates asynchronously'),
      isError: true,
    })
  })
})

describe('JSON Schema', () => {
  const tide = defineTool({
    name: 'tide',
    description: 'Tells the tide.',
    schema: {
      type: 'object',
      properties: {
        port: { type: 'string', minLength: 1 },
        days: { type: 'integer', minimum: 1 },
        unit: { enum: ['m', 'ft'] },
        places: { type: 'array', items: { type: ['number', 'null'] } },
        near: { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] },
      },
      required: ['port', 'unit'],
    },
    access: () => [],
    run: async (input) => {
      expectTypeOf(input.port).toEqualTypeOf<string>()
      expectTypeOf(input.days).toEqualTypeOf<number | undefined>()
      expectTypeOf(input.unit).toEqualTypeOf<'m' | 'ft'>()
      expectTypeOf(input.places).toEqualTypeOf<(number | null)[] | undefined>()
      expectTypeOf(input.near?.name).toEqualTypeOf<string | undefined>()
      expectTypeOf(input['other']).toBeUnknown()
      return { content: JSON.stringify(input) }
    },
  })

  test('valid input reaches the tool unchanged', async () => {
    const input = { port: 'Brest', unit: 'm', other: true }
    expect(await resultOf(tide, input)).toEqual({ content: JSON.stringify(input), isError: undefined })
  })

  test('invalid input gives one result with all problems', async () => {
    expect(await resultOf(tide, { port: '', days: 1.5, near: {} })).toEqual({
      content: [
        'The input of tide is not valid. ✖ Missing key: "unit"',
        '✖ Too few characters: at least 1\n  → at port',
        '✖ Invalid input: expected integer, received number\n  → at days',
        '✖ Missing key: "name"\n  → at near',
      ].join('\n'),
      isError: true,
    })
  })

  test('a schema whose types are not literals gives a record', () => {
    const schema = JSON.parse(JSON.stringify(portJsonSchema)) as Record<string, unknown>
    const tool = defineTool({
      name: 'tide',
      description: '',
      schema,
      access: () => [],
      run: async (input) => {
        expectTypeOf(input).toEqualTypeOf<Record<string, unknown>>()
        return { content: '' }
      },
    })
    expect(tool.check({}, place)).toContain('Missing key: "port"')
  })

  test('a schema without a type is one of an object', () => {
    const schema = { properties: { port: { type: 'string' } } }
    const tool = defineTool({ name: 'tide', description: '', schema, access: () => [], run: never })
    expect(tool.inputSchema).toEqual({ type: 'object', ...schema })
    expect(tool.check([], place)).toContain('expected object, received array')
  })

  test.each([
    [{ type: 'string' }, 'The input schema of the tool tide must be of type object, not "string".'],
    [{ properties: { a: { $ref: '#/$defs/b' } } }, 'The schema of the tool tide cannot be used: #/properties/a/$ref'],
  ])('an unusable schema does not define a tool: %j', (schema, message) => {
    expect(() => defineTool({ name: 'tide', description: '', schema, access: () => [], run: never })).toThrow(message)
  })
})

async function never(): Promise<never> {
  throw new Error('This tool does not run.')
}
