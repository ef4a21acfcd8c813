import { z } from 'zod'

/** A question that waits for an answer: a call that may or may not be made, or what the agent wants to know. */
export const permissionSchema = z.looseObject({
  request_id: z.string(),
  run_id: z.string().optional(),
  call_id: z.string().optional(),
  tool: z.string().optional(),
  title: z.string().optional(),
  input: z.unknown().optional(),
  options: z
    .array(z.looseObject({ option_id: z.string(), label: z.string().optional(), kind: z.string().optional() }))
    .optional(),
  seq: z.int().optional(),
  timestamp: z.string().optional(),
})
