import { isDeeperThan } from '@tapetree/session/util/json'
import { z } from 'zod'
import { hashOf } from '../util/request-hash.ts'
import { hasHidden, withoutHidden } from './foreign-text.ts'
import type { McpLimits } from './limits.ts'
import { CfWorkerJsonSchemaValidator } from '@modelcontextprotocol/client/validators/cf-worker'
import { createContext, Script } from 'node:vm'

/** A validated tool of a server, safe to show to a model. */
export interface RemoteTool {
  /** The server's name for it. */
  name: string
  description: string
  inputSchema: Record<string, unknown>
  check: InputCheck
  /** Hash of the name, the description and the schema as received. */
  sha256: string
}

export interface RemoteTools {
  tools: RemoteTool[]
  /** Sentences about tools that were left out. */
  problems: string[]
}

const toolSchema = z.looseObject({
  name: z.string().min(1).max(256),
  title: z.string().optional(),
  description: z.string().optional(),
  inputSchema: z.looseObject({ type: z.literal('object') }),
})

/** Validates the list of a server. Each tool is checked alone: an invalid one does not affect the others. */
export function readTools(listed: readonly unknown[], limits: McpLimits): RemoteTools {
  const tools = new Map<string, RemoteTool>()
  const problems: string[] = []
  for (const [index, each] of listed.slice(0, limits.maxTools).entries()) {
    const tool = readTool(each, limits)
    if (typeof tool === 'string') problems.push(`${shownName(each, index)} is left out: ${tool}`)
    else if (tools.has(tool.name))
      problems.push(`${shownName(each, index)} is left out: another tool has the same name.`)
    else tools.set(tool.name, tool)
  }
  if (listed.length > limits.maxTools) {
    problems.push(`There are more than ${limits.maxTools} tools; the others are left out.`)
  }
  return { tools: [...tools.values()], problems }
}

/** The tool, or why it cannot be used. */
function readTool(
  listed: unknown,
  { maxDescriptionLength, maxSchemaBytes, maxSchemaDepth }: McpLimits,
): RemoteTool | string {
  // Before any other code walks through it.
  if (isDeeperThan(maxSchemaDepth + 1, listed)) return `it is nested more than ${maxSchemaDepth} deep.`
  const parsed = toolSchema.safeParse(listed)
  if (!parsed.success) return `its description is malformed. ${z.prettifyError(parsed.error)}`
  const { name, title, description, inputSchema } = parsed.data
  if (Buffer.byteLength(JSON.stringify(inputSchema)) > maxSchemaBytes) {
    return `its schema has more than ${maxSchemaBytes} bytes.`
  }
  const schema = visibleSchema(inputSchema)
  if (schema === undefined) return 'the names or values of its schema contain invisible characters.'
  let check: InputCheck
  try {
    check = inputCheck(inputSchema)
  } catch (error) {
    return `its schema is invalid: ${error instanceof Error ? error.message : String(error)}`
  }
  const said = withoutHidden(description ?? title ?? '').trim()
  return {
    name,
    description: said.length > maxDescriptionLength ? `${said.slice(0, maxDescriptionLength).toWellFormed()}…` : said,
    inputSchema: schema,
    check,
    sha256: hashOf({ name, description: description ?? null, title: title ?? null, inputSchema }),
  }
}

const prose = new Set(['description', 'title', '$comment'])

/**
 * The schema for a model: invisible characters are removed from prose. A schema with invisible characters in
 * names or values is rejected, because removing them would change it.
 */
function visibleSchema(schema: Record<string, unknown>): Record<string, unknown> | undefined {
  let isVisible = true
  const seen = (value: unknown, member?: string): unknown => {
    if (typeof value === 'string') {
      if (member !== undefined && prose.has(member)) return withoutHidden(value)
      isVisible &&= !hasHidden(value)
      return value
    }
    if (Array.isArray(value)) return value.map((each) => seen(each))
    if (typeof value !== 'object' || value === null) return value
    const members = Object.entries(value).map(([name, each]): [string, unknown] => {
      isVisible &&= !hasHidden(name)
      return [name, seen(each, name)]
    })
    return Object.fromEntries(members)
  }
  const { $schema: _, ...visible } = seen({ properties: {}, ...schema }) as Record<string, unknown>
  return isVisible ? visible : undefined
}

function shownName(listed: unknown, index: number): string {
  const name = typeof listed === 'object' && listed !== null && 'name' in listed ? listed.name : undefined
  return typeof name === 'string' && name !== '' ? `The tool ${withoutHidden(name).slice(0, 64)}` : `Tool ${index + 1}`
}

/** Returns a sentence about an invalid input; undefined if it is valid. */
type InputCheck = (input: unknown) => string | undefined

/** Patterns and references can be crafted to take forever, and the schema's author is not trusted. */
const checkMs = 1000
const check = new Script('check()')

/**
 * Checks inputs against an untrusted JSON Schema. The schema is interpreted, not compiled to code, and the
 * check has a timeout. Throws if the schema's dialect is unknown.
 */
function inputCheck(schema: Record<string, unknown>): InputCheck {
  const validate = new CfWorkerJsonSchemaValidator().getValidator(structuredClone(schema))
  return (input) => {
    try {
      const { valid, errorMessage } = interrupted(() => validate(input))
      return valid ? undefined : errorMessage
    } catch (error) {
      return `It could not be checked: ${error instanceof Error ? error.message : String(error)}`
    }
  }
}

/** Only a script in a context can be interrupted while it runs. */
function interrupted<T>(work: () => T): T {
  return check.runInContext(createContext({ check: work }), { timeout: checkMs }) as T
}
