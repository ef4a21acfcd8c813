import type { z } from 'zod'
import { builtIn } from './built-in.ts'
import { settingsJsonSchema } from './schema.ts'

export interface SettingRow {
  /** `permissions.mode`; `<name>` stands for a name that the user chooses. */
  key: string
  type: string
  /** As JSON; absent if there is none. */
  default?: string
  description: string
  /** If a single variable can set it. */
  variable?: string
}

type JsonSchema = z.core.JSONSchema.JSONSchema

let made: JsonSchema | undefined
/** Created once: it takes milliseconds. */
const wholeSchema = (): JsonSchema => (made ??= settingsJsonSchema())

/** Every setting, in the order of the schema, for the reference and for reading the environment. */
export function describeSettings(): SettingRow[] {
  return rowsOf(wholeSchema(), [])
}

/** The names that are valid below this path; empty if any name is. */
export function knownNames(path: readonly PropertyKey[]): string[] {
  let at: JsonSchema | undefined = wholeSchema()
  for (const part of path) {
    const next: unknown = at?.properties?.[String(part)] ?? at?.additionalProperties ?? at?.items
    at = typeof next === 'object' ? (next as JsonSchema) : undefined
  }
  const forms = at?.anyOf ?? at?.oneOf ?? (at ? [at] : [])
  return forms.flatMap((form) => (typeof form === 'object' ? Object.keys(form.properties ?? {}) : []))
}

function rowsOf(schema: JsonSchema, path: readonly string[]): SettingRow[] {
  if (schema.properties) {
    return Object.entries(schema.properties).flatMap(([name, inner]) =>
      typeof inner === 'object' ? rowsOf(inner, [...path, name]) : [],
    )
  }
  const hasNames = typeof schema.additionalProperties === 'object'
  const key = [...path, ...(hasNames ? ['<name>'] : [])].join('.')
  const value = defaultAt(path)
  const canBeVariable = isSimple(schema) || (schema.type === 'array' && isSimple(schema.items))
  return [
    {
      key,
      type: typeName(schema),
      description: schema.description ?? '',
      ...(value !== undefined && { default: JSON.stringify(value) }),
      ...(canBeVariable && { variable: variableFor(path) }),
    },
  ]
}

function typeName(schema: unknown): string {
  const { type, enum: values, items, anyOf } = schema as JsonSchema
  if (values) return values.map((each) => JSON.stringify(each)).join(' | ')
  if (anyOf) return [...new Set(anyOf.map(typeName))].join(' or ')
  if (type === 'array') return `list of ${typeName(items)}`
  return type === 'integer' ? 'whole number' : String(type ?? 'anything')
}

function isSimple(schema: unknown): boolean {
  const { type } = schema as JsonSchema
  return type === 'string' || type === 'number' || type === 'integer' || type === 'boolean'
}

function defaultAt(path: readonly string[]): unknown {
  let at: unknown = builtIn
  for (const name of path) at = (at as Record<string, unknown> | undefined)?.[name]
  return at
}

/** `permissions.mode` is `TAPETREE_PERMISSIONS_MODE`. */
function variableFor(path: readonly string[]): string {
  const words = path.map((name) => name.replace(/(?=[A-Z])/g, '_').toUpperCase())
  return `TAPETREE_${words.join('_')}`
}
