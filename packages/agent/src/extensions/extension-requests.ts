import { z } from 'zod'
import type { Question } from '../tools/tool.ts'
import type { ExtensionRequest } from './runner.ts'

/** What extensions ask of us is checked before it reaches a log or a screen. These throw a sentence for the extension. */

const question = z.object({
  question: z.string().min(1),
  options: z.array(z.object({ label: z.string().min(1), description: z.string().exactOptional() })).default([]),
})

export function readQuestion(request: ExtensionRequest & { type: 'ask' }): Question {
  return parsed(question, request.question, 'question')
}

const entry = z.object({ customType: z.string().min(1).max(200), data: z.record(z.string(), z.json()) })

export function readEntryRequest(request: ExtensionRequest & { type: 'append_entry' }): z.output<typeof entry> {
  return parsed(entry, request, 'entry')
}

export function readText(request: ExtensionRequest & { type: 'append_message' | 'observe' }): string {
  return parsed(z.string().min(1), request.text, 'text')
}

function parsed<Schema extends z.ZodType>(schema: Schema, value: unknown, what: string): z.output<Schema> {
  const result = schema.safeParse(value)
  if (result.success) return result.data
  throw new TypeError(`The ${what} is not valid. ${z.prettifyError(result.error)}`)
}
