import { z } from 'zod'

/** What went wrong, as RFC 9457 has it: the body of every failed request, and `error` of every refused command. */
export const problemSchema = z.object({
  /** A name for the kind of problem, such as `session-busy`: what a program decides by. */
  type: z.string(),
  title: z.string(),
  status: z.int(),
  detail: z.string().optional(),
  instance: z.string().optional(),
})

/** Problems may carry more, such as who answered first. */
export type Problem = z.infer<typeof problemSchema> & Record<string, unknown>
