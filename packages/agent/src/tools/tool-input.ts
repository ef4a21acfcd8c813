import { messageOf } from '../util/message-of.ts'
import type { ToolDefinition } from '@tapetree/session'
import type { SchemaReader, StandardSchema } from '@tapetree/session/util/structured-answer'
import { z } from 'zod'
import { jsonSchemaCheck, type JsonSchemaCheck } from './json-schema-check.ts'

export type { StandardSchema }

/** The schema of a tool's input. */
export type InputSchema = StandardSchema | JsonSchema

/** JSON Schema (2020-12) of an object, as a plain value. */
export interface JsonSchema {
  readonly type?: unknown
  readonly properties?: unknown
}

/**
 * The input of `run`: the output of a Standard Schema, or the values that a JSON Schema allows as far as types
 * can tell.
 */
export type ToolInput<Schema extends InputSchema> =
  Schema extends StandardSchema<infer Output> ? Output : ObjectOf<Schema>

export type ObjectOf<Schema> = Schema extends { readonly properties: infer Properties }
  ? { [Name in keyof Properties as Name extends RequiredOf<Schema> ? Name : never]: ValueOf<Properties[Name]> } & {
      [Name in keyof Properties as Name extends RequiredOf<Schema> ? never : Name]?: ValueOf<Properties[Name]>
    } & Record<string, unknown>
  : Record<string, unknown>

/** Never if the names are not known as literals. */
export type RequiredOf<Schema> = Schema extends { readonly required: readonly (infer Name)[] }
  ? string extends Name
    ? never
    : Name
  : never

export type ValueOf<Schema> = Schema extends { readonly const: infer Value }
  ? Value
  : Schema extends { readonly enum: readonly (infer Value)[] }
    ? Value
    : Schema extends { readonly type: infer Type }
      ? OfType<Type extends readonly (infer Name)[] ? Name : Type, Schema>
      : unknown

export type OfType<Type, Schema> = Type extends 'string'
  ? string
  : Type extends 'number' | 'integer'
    ? number
    : Type extends 'boolean'
      ? boolean
      : Type extends 'null'
        ? null
        : Type extends 'array'
          ? ItemOf<Schema>[]
          : Type extends 'object'
            ? ObjectOf<Schema>
            : unknown

export type ItemOf<Schema> = Schema extends { readonly prefixItems: unknown }
  ? unknown
  : Schema extends { readonly items: infer Items }
    ? ValueOf<Items>
    : unknown

export interface ToolInputOptions<Schema extends InputSchema> {
  name: string
  schema: Schema
  inputSchema?: JsonSchema | undefined
}

interface NamedSchema<Schema> {
  schema: Schema
  /** What the schema is of, for errors, such as `the tool read`. */
  of: string
  /** What the value is, for the model, such as `The input of read`. */
  value: string
  jsonSchema?: JsonSchema | undefined
}

/** Reads a schema once, when its tool is defined. Throws if it cannot be enforced or sent. */
export function readToolInput<Schema extends InputSchema>(
  options: ToolInputOptions<Schema>,
): { inputSchema: ToolDefinition['inputSchema']; parse: SchemaReader<ToolInput<Schema>>['parse'] } {
  const { name, schema, inputSchema } = options
  const { jsonSchema, parse } = readSchema({
    schema: isStandard(schema) ? schema : (objectSchema(name, schema) as Schema),
    of: `the tool ${name}`,
    value: `The input of ${name}`,
    jsonSchema: inputSchema,
  })
  return { inputSchema: objectSchema(name, jsonSchema), parse }
}

/** Reads the schema of an answer. Throws if it cannot be enforced or sent. */
export function readAnswerSchema<Schema extends InputSchema>(schema: Schema): SchemaReader<ToolInput<Schema>> {
  return readSchema({ schema, of: 'the answer', value: 'The answer' })
}

function readSchema<Schema extends InputSchema>(named: NamedSchema<Schema>): SchemaReader<ToolInput<Schema>> {
  const { schema, of, value, jsonSchema } = named
  const standard = isStandard(schema) ? schema : fromJsonSchema(of, schema)
  const { $schema: _, ...sent } = (jsonSchema ?? (isStandard(schema) ? toJsonSchema(of, schema) : schema)) as Record<
    string,
    unknown
  >
  return {
    jsonSchema: sent,
    parse: (given) => {
      const result = standard['~standard'].validate(given)
      if ('then' in result) {
        result.catch(() => undefined)
        throw new TypeError(`The schema of ${of} validates asynchronously, which is not supported.`)
      }
      if (result.issues) return `${value} is not valid. ${z.prettifyError({ issues: result.issues })}`
      return { input: result.value as ToolInput<Schema> }
    },
  }
}

/** Schemas of ArkType are functions. */
function isStandard(schema: InputSchema): schema is StandardSchema {
  return '~standard' in schema
}

function fromJsonSchema(of: string, schema: JsonSchema): StandardSchema {
  let check: JsonSchemaCheck
  try {
    check = jsonSchemaCheck(schema)
  } catch (cause) {
    throw new TypeError(`The schema of ${of} cannot be used: ${messageOf(cause)}`, { cause })
  }
  return {
    '~standard': {
      version: 1,
      vendor: 'json-schema',
      validate: (value) => {
        const issues = check(value)
        return issues.length > 0 ? { issues } : { value }
      },
    },
  }
}

function toJsonSchema(of: string, schema: StandardSchema): JsonSchema {
  const { vendor, jsonSchema } = schema['~standard']
  const hint = 'Pass one as `inputSchema` beside `schema`.'
  try {
    if (jsonSchema) return jsonSchema.input({ target: 'draft-2020-12' })
    // zod 4.0 and 4.1 are not converters themselves.
    if ('_zod' in schema) return z.toJSONSchema(schema as unknown as z.ZodType, { io: 'input' })
  } catch (cause) {
    throw new TypeError(`The schema of ${of} has no JSON Schema. ${messageOf(cause)} ${hint}`, { cause })
  }
  throw new TypeError(`The schema of ${of} is of ${vendor}, which provides no JSON Schema. ${hint}`)
}

/** Providers accept only objects at the top. */
function objectSchema(name: string, schema: JsonSchema): ToolDefinition['inputSchema'] {
  const members = schema as Record<string, unknown>
  if (members['type'] === undefined) return { type: 'object', ...members }
  if (members['type'] !== 'object')
    throw new TypeError(
      `The input schema of the tool ${name} must be of type object, not ${JSON.stringify(members['type'])}.`,
    )
  return members
}
