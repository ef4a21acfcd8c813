import { z } from 'zod'

const text = z.string().min(1)

const inputLine = z.discriminatedUnion('type', [
  z.strictObject({ type: z.literal('prompt'), text }),
  z.strictObject({ type: z.literal('steer'), text }),
  z.strictObject({ type: z.literal('follow_up'), text }),
  z.strictObject({
    type: z.literal('answer'),
    request_id: z.string().min(1),
    option_id: z.string().exactOptional(),
    text: z.string().exactOptional(),
    outcome: z.enum(['allowed', 'rejected', 'cancelled']).exactOptional(),
  }),
  z.strictObject({ type: z.literal('cancel') }),
])

/** What may be said on stdin with `--input jsonl`, a line each. */
export type InputLine = z.output<typeof inputLine>

/** The line, or a sentence on what is wrong with it. */
export function readInputLine(line: string): InputLine | string {
  let value: unknown
  try {
    value = JSON.parse(line)
  } catch {
    return 'It is no JSON.'
  }
  const { data, error } = inputLine.safeParse(value)
  return data ?? z.prettifyError(error).replaceAll(/\s*\n\s*/g, ' ')
}
