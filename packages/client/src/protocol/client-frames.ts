// What clients send. A client does not validate it, so its bundle does not contain these schemas.
import { z } from 'zod'
import { operationNames } from './command.ts'
import { cursorSchema } from './frames.ts'

const clientId = z.string().regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/)

const attachSchema = z.strictObject({
  type: z.literal('attach'),
  data: z.strictObject({
    after: cursorSchema.optional(),
    /** Maximum number of entries in a snapshot. */
    window: z.int().min(1).max(500).optional(),
    /** False: send no text in flight. */
    deltas: z.boolean().optional(),
    client: z.strictObject({
      id: clientId,
      name: z.string().max(200).optional(),
      kind: z.string().max(50).optional(),
    }),
  }),
})

const commandFrameSchema = z.strictObject({
  type: z.literal('cmd'),
  data: z.strictObject({
    id: clientId,
    op: z.enum(operationNames),
    args: z.record(z.string(), z.unknown()).optional(),
    /** Rejected if the log has later lines. */
    if_head: z.int().nonnegative().optional(),
  }),
})

const pingSchema = z.strictObject({
  type: z.literal('ping'),
  data: z.strictObject({ n: z.int().nonnegative(), seen: z.int().nonnegative().optional() }),
})

const presenceSchema = z.strictObject({
  type: z.literal('presence'),
  data: z.strictObject({ visibility: z.enum(['visible', 'hidden']), typing: z.boolean().optional() }),
})

export const clientFrameSchema = z.discriminatedUnion('type', [
  attachSchema,
  commandFrameSchema,
  pingSchema,
  presenceSchema,
])
export type ClientFrame = z.infer<typeof clientFrameSchema>
export type AttachRequest = z.infer<typeof attachSchema>['data']
