import { z } from 'zod'

const id = z.string().regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/)
const words = z.string().max(1_000_000)
const imageIds = z.array(z.string().regex(/^[0-9a-f]{64}$/)).max(20)
const thinkingLevel = z.enum(['off', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max'])
const delivery = z.enum(['steer', 'follow-up'])

const conflictChoice = z.enum(['keep', 'take', 'merge'])

const message = { text: words, image_ids: imageIds.optional() }

/** The operations and their arguments. The server validates REST and WebSocket commands by these schemas. */
export const operations = {
  prompt: z.strictObject({ ...message, when_busy: z.enum(['queue', 'steer', 'reject']).optional() }),
  steer: z.strictObject(message),
  follow_up: z.strictObject(message),
  /** The run id keeps a late click from ending the next run. */
  cancel: z.strictObject({ run_id: id.optional() }),
  retry: z.strictObject({}),
  resume: z.strictObject({ by_person: z.boolean().optional() }),
  'permission.answer': z.strictObject({
    request_id: id,
    option_id: z.string().max(200).optional(),
    text: words.optional(),
    outcome: z.enum(['allowed', 'rejected', 'cancelled']).optional(),
  }),
  set_model: z.strictObject({ provider: z.string().max(200), model_id: z.string().max(200) }),
  set_thinking_level: z.strictObject({ level: thinkingLevel }),
  set_config: z.strictObject({ mode: z.enum(['ask', 'accept-edits', 'sandboxed', 'plan', 'auto']) }),
  /** Lets the tools of the session work in a folder of a tool host. `host`: its id or its name. */
  set_workspace: z.strictObject({
    host: z.string().min(1).max(200),
    workspace: z.string().min(1).max(200),
    recreate: z.boolean().optional(),
  }),
  compact: z.strictObject({ instructions: words.optional() }),
  branch: z.strictObject({
    entry_id: id.nullable(),
    summarise: z.boolean().optional(),
    instructions: words.optional(),
  }),
  /** Goes back to an entry: the conversation, the files, or both. It can be taken back. */
  rewind: z.strictObject({
    /** Null is the beginning. If it is a message of the user, the conversation continues before it. Absent: takes back the last rewind. */
    entry_id: id.nullable().optional(),
    what: z.enum(['talk', 'files', 'both']).optional(),
    /** For files that the agent and others changed. Default: `keep`. */
    conflicts: conflictChoice.optional(),
    /** For single files. */
    choices: z
      .array(z.strictObject({ path: z.string().max(4096), choice: conflictChoice }))
      .max(10_000)
      .optional(),
    /** Only says what would happen. */
    dry_run: z.boolean().optional(),
    /** Instead: ends a rewind of files that was interrupted. */
    interrupted: z.enum(['finish', 'undo']).optional(),
  }),
  /**
   * Control files that commands made and the sandbox took back. Without arguments: lists them. With one: applies or discards that
   * file first.
   */
  blocked: z.strictObject({ apply: id.optional(), discard: id.optional() }),
  label: z.strictObject({ entry_id: id, label: z.string().max(1000) }),
  rename: z.strictObject({ name: z.string().max(1000) }),
  bash: z.strictObject({ command: words.min(1), exclude_from_context: z.boolean().optional() }),
  'queue.add': z.strictObject({ message: words, image_ids: imageIds.optional(), delivery: delivery.optional() }),
  'queue.edit': z.strictObject({
    id,
    message: words.optional(),
    image_ids: imageIds.optional(),
    delivery: delivery.optional(),
  }),
  'queue.move': z.strictObject({ id, before_id: id.nullable() }),
  'queue.hold': z.strictObject({ id: id.optional(), reason: z.string().max(1000).optional() }),
  'queue.release': z.strictObject({ id: id.optional() }),
  'queue.remove': z.strictObject({ id }),
  'queue.clear': z.strictObject({ delivery: delivery.optional() }),
} as const

export type Operation = keyof typeof operations
export type Arguments<Op extends Operation> = z.infer<(typeof operations)[Op]>

export const operationNames = Object.keys(operations) as [Operation, ...Operation[]]

/** One operation with its validated arguments. */
export type Command = { [Op in Operation]: { op: Op; args: Arguments<Op> } }[Operation]

export type CommandCheck = { ok: true; command: Command } | { ok: false; message: string }

export function checkCommand(op: string, args: unknown): CommandCheck {
  if (!Object.hasOwn(operations, op))
    return { ok: false, message: `The operation ${JSON.stringify(op)} does not exist.` }
  const parsed = operations[op as Operation].safeParse(args ?? {})
  if (!parsed.success) return { ok: false, message: `${op}: ${z.prettifyError(parsed.error)}` }
  return { ok: true, command: { op, args: parsed.data } as Command }
}
