import { resolve } from 'node:path'
import { z } from 'zod'
import { exitCodes } from '../command-line/exit-code.ts'
import { Failure, usageFailure } from '../command-line/failure.ts'
import { harmlessLine } from '../text/harmless.ts'
import { readRegularFile } from '../util/read-regular-file.ts'

/** The required form of an answer: JSON that matches a schema. */
export interface OutputSchema {
  /** Appended to the prompt. */
  readonly instructions: string
  readonly check: (answer: string) => CheckedAnswer
}

export type CheckedAnswer = { type: 'valid'; value: unknown } | { type: 'invalid'; fault: string }

/** Reads `--output-schema`: a file, or the schema itself if it begins with a brace. */
export async function readOutputSchema(
  given: string,
  { cwd, signal }: { cwd: string; signal?: AbortSignal },
): Promise<OutputSchema> {
  const isInline = given.trimStart().startsWith('{')
  return outputSchemaOf(isInline ? given : await readSchemaFile(resolve(cwd, given), signal))
}

/** Sent to a model whose answer did not match. */
export function askAgain(fault: string): string {
  return `Your answer does not fit the schema. ${fault}\n\nAnswer again with the whole JSON value and nothing else.`
}

/** The schema is part of the prompt, and a larger one would fill it. */
const maxBytes = 256 * 1024

async function readSchemaFile(path: string, signal: AbortSignal | undefined): Promise<string> {
  const file = await readRegularFile(path, { maxBytes, ...(signal && { signal }) })
  if (file.type === 'read') return file.bytes.toString('utf8')
  const shown = harmlessLine(path)
  const isTooLarge = file.type === 'too-large'
  throw new Failure(exitCodes.notFound, `The schema ${shown} ${isTooLarge ? 'is too large' : 'cannot be read'}.`, {
    type: 'schema-not-found',
    ...(isTooLarge && { why: `It has ${file.size} bytes; the limit is ${maxBytes}.` }),
    ...(file.type === 'no-file' && { why: 'It is not a regular file.' }),
    ...(file.type === 'unreadable' && { cause: file.cause }),
  })
}

function outputSchemaOf(text: string): OutputSchema {
  const schema = parsedSchema(text)
  return {
    instructions: [
      'Answer with one JSON value that is valid against this JSON Schema, and with nothing else: no words before or after it, no code fence.',
      `<output_schema>\n${JSON.stringify(schema.json, null, 2)}\n</output_schema>`,
    ].join('\n'),
    check: (answer) => {
      const parsed = parseAnswer(answer)
      if (parsed.type === 'invalid') return parsed
      const { error } = schema.type.safeParse(parsed.value)
      return error ? { type: 'invalid', fault: z.prettifyError(error) } : parsed
    },
  }
}

function parsedSchema(text: string): { json: object; type: z.ZodType } {
  try {
    const json: unknown = JSON.parse(text)
    if (typeof json !== 'object' || json === null || Array.isArray(json)) throw new TypeError('It is not an object.')
    return { json, type: z.fromJSONSchema(json as Parameters<typeof z.fromJSONSchema>[0]) }
  } catch (error) {
    const why = error instanceof Error ? harmlessLine(error.message) : ''
    throw usageFailure(`--output-schema is not a usable JSON Schema. ${why}`, ['tapetree run --help'])
  }
}

/** Models often add a code fence in spite of the instructions. */
function parseAnswer(answer: string): CheckedAnswer {
  const trimmed = answer.trim()
  const [, fenced] = /^```(?:json)?\s*\n([^]*?)\n\s*```$/.exec(trimmed) ?? []
  try {
    return { type: 'valid', value: JSON.parse(fenced ?? trimmed) as unknown }
  } catch (error) {
    return { type: 'invalid', fault: `It is not JSON: ${error instanceof Error ? error.message : String(error)}` }
  }
}
