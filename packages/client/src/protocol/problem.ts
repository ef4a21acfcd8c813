import { z } from 'zod'

/** A problem (RFC 9457): the body of every failed request, and `error` of every rejected command. */
export const problemSchema = z.object({
  /** The kind of problem, such as `session-busy`, for programs. */
  type: z.string(),
  title: z.string(),
  status: z.int(),
  detail: z.string().optional(),
  instance: z.string().optional(),
})

/** Problems may have more members, such as the client that answered first. */
export type Problem = z.infer<typeof problemSchema> & Record<string, unknown>
