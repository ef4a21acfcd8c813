/**
 * A schema of any library that implements Standard Schema (standardschema.dev), such as zod, valibot or ArkType. Validation must be
 * synchronous.
 */
export interface StandardSchema<Output = unknown> {
  readonly '~standard': {
    readonly version: 1
    readonly vendor: string
    readonly validate: (value: unknown) => StandardResult<Output> | Promise<StandardResult<Output>>
    readonly types?: { readonly input: unknown; readonly output: Output } | undefined
    /** Standard JSON Schema: the same schema as JSON Schema. */
    readonly jsonSchema?:
      | { readonly input: (options: { readonly target: 'draft-2020-12' }) => Record<string, unknown> }
      | undefined
  }
}

export type StandardResult<Output> =
  | { readonly value: Output; readonly issues?: undefined }
  | { readonly issues: readonly SchemaIssue[] }

/** What is wrong with a value, and where in it. */
export interface SchemaIssue {
  readonly message: string
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined
}

/** A schema as a model and its answers need it. */
export interface SchemaReader<Value> {
  /** What the model must fit. */
  jsonSchema: Record<string, unknown>
  /** The validated value, or a sentence for the model that explains the problem. */
  parse: (given: unknown) => { input: Value } | string
}

/** The parts of a reply that decide whether to ask again. */
interface Answered {
  text: string
  outcome: string
  /** Counts by name. */
  usage: object
  cost: number
}

/** How often an answer that does not fit the schema is sent back. */
const maxCorrections = 2

/** Asks for a value that fits, and sends wrong answers back with what is wrong. Usage and cost count all attempts. */
export async function askForValue<Value, Answer extends Answered>(
  prompt: string,
  { reader, ask }: { reader: SchemaReader<Value>; ask: (text: string) => Promise<Answer> },
): Promise<Answer & { object?: Value; reason?: string; message?: string }> {
  const instruction = 'Answer with one JSON value and nothing else. It must fit this JSON Schema:'
  let reply = await ask(`${prompt}\n\n${instruction}\n${JSON.stringify(reader.jsonSchema)}`)
  for (let corrections = 0; reply.outcome === 'completed'; corrections += 1) {
    const parsed = parseValue(reply.text, reader)
    if (typeof parsed !== 'string') return { ...reply, object: parsed.input }
    if (corrections === maxCorrections)
      return { ...reply, outcome: 'failed', reason: 'invalid-object', message: parsed }
    const next = await ask(`${parsed}\nAnswer again, with the corrected JSON value and nothing else.`)
    reply = { ...next, usage: addCounts(reply.usage, next.usage), cost: reply.cost + next.cost }
  }
  return reply
}

/** Adds counts by name. One that a side lacks is 0. */
export function addCounts<Counts extends object>(left: Counts, right: Counts): Counts {
  const sum = { ...left } as Record<string, number>
  for (const [name, count] of Object.entries(right) as [string, number | undefined][])
    if (count !== undefined) sum[name] = (sum[name] ?? 0) + count
  return sum as Counts
}

/** The value in an answer, or a sentence for the model that explains the problem. Tolerates a code fence and text around it. */
function parseValue<Value>(answer: string, reader: SchemaReader<Value>): { input: Value } | string {
  const fenced = /```(?:json)?\s*\n([^]*?)\n\s*```/.exec(answer)?.[1]
  const [first, last] = [answer.search(/[[{]/), Math.max(answer.lastIndexOf('}'), answer.lastIndexOf(']'))]
  const candidates = [answer, ...(fenced === undefined ? [] : [fenced]), answer.slice(Math.max(first, 0), last + 1)]
  for (const candidate of candidates) {
    let value: unknown
    try {
      value = JSON.parse(candidate)
    } catch {
      continue
    }
    return reader.parse(value)
  }
  return 'Your answer is not a JSON value.'
}
