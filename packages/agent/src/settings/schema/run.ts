import { z } from 'zod'

const count = z.int().positive()
const milliseconds = z.int().nonnegative()

function limits(scope: 'run' | 'session') {
  return z.strictObject({
    turns: count.describe(`Turns of one ${scope}.`).exactOptional(),
    toolCalls: count.describe(`Tool calls of one ${scope}.`).exactOptional(),
    tokens: count.describe(`Tokens of one ${scope}, input and output.`).exactOptional(),
    cost: z.number().positive().describe(`US dollars for one ${scope}.`).exactOptional(),
    wallMs: count.describe(`Milliseconds that one ${scope} may take.`).exactOptional(),
    logBytesPerTurn: count.describe('Bytes that one turn may add to the log.').exactOptional(),
  })
}

export const runAndSessionLimits = z.strictObject({
  run: limits('run').exactOptional(),
  session: limits('session').exactOptional(),
})

export const compaction = z.strictObject({
  isEnabled: z.boolean().describe('False: the context is compacted only by hand.').exactOptional(),
  reserveTokens: z
    .int()
    .nonnegative()
    .describe("What is left free of the model's window; compaction begins where it would be used up.")
    .exactOptional(),
  keepTokens: z.int().nonnegative().describe('About how much stays word for word.').exactOptional(),
})

export const retry = z.strictObject({
  maxRetries: z.int().min(0).max(20).describe('How often a failed request is tried again.').exactOptional(),
  baseMs: milliseconds.max(600_000).describe('The first wait; each further one is twice as long.').exactOptional(),
  capMs: milliseconds.max(3_600_000).describe('The longest wait between two tries.').exactOptional(),
  longestRetryAfterMs: milliseconds
    .max(86_400_000)
    .describe('A provider that asks for more patience than this is not waited for.')
    .exactOptional(),
  jitter: z.number().min(0).max(1).describe('Lengthens a wait by up to this part of it.').exactOptional(),
})

/** Spelt as the specification of sessions has it. */
export const conversations = z.strictObject({
  queue: z
    .strictObject({
      enabled: z
        .boolean()
        .describe('False: a waiting message goes out only when a person releases it, or prompts after it came.')
        .exactOptional(),
      delay_seconds: z
        .number()
        .nonnegative()
        .max(600)
        .describe('How long a waiting message is announced before it goes out.')
        .exactOptional(),
    })
    .exactOptional(),
})

export const steerPolicy = z.enum(['skip-remaining', 'after-batch', 'interrupt'])
export const reasoningPolicy = z.enum(['auto', 'turn', 'never'])
