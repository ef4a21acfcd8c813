import { z } from 'zod'
import { thinkingLevels } from '../../models/model.ts'

export const modelName = z.string().regex(/^[^\s/]+\/\S+$/, 'A model is written as provider/id.')
export const thinkingLevel = z.enum(thinkingLevels)

const tokens = z.int().positive()
const price = z.number().nonnegative()

/** US dollars for a million tokens. */
const tokenPrices = z.strictObject({
  input: price,
  output: price,
  cacheRead: price.exactOptional(),
  cacheWrite: price.exactOptional(),
})

const addedModel = z.strictObject({
  /** Ids stand in references and are shown: no blanks, and nothing that moves a cursor. */
  id: z.string().regex(/^[\w@~./][\w.:@/+~=-]{0,199}$/),
  name: z.string().min(1).max(200).exactOptional(),
  contextTokens: tokens.exactOptional(),
  outputTokens: tokens.exactOptional(),
  thinkingLevels: z.array(thinkingLevel).exactOptional(),
  hasImages: z.boolean().exactOptional(),
  prices: tokenPrices
    .extend({ tiers: z.array(tokenPrices.extend({ inputTokensAbove: price })).exactOptional() })
    .exactOptional(),
})

const providerId = z
  .string()
  .regex(/^[A-Za-z0-9][\w-]{0,63}$/, 'The id of a provider is made of letters, digits, - and _ (at most 64).')

/** A provider of the user's own, or what the user changes in one of the catalogue. */
export const providers = z.record(
  providerId,
  z.strictObject({
    name: z.string().min(1).max(200).exactOptional(),
    /** Whose wire format it speaks. */
    api: z.enum(['openai-compatible', 'openai', 'anthropic', 'google']).exactOptional(),
    baseUrl: z.url({ protocol: /^https?$/ }).exactOptional(),
    keyVariable: z
      .string()
      .regex(/^[A-Za-z_]\w{0,127}$/, 'The name of an environment variable, not its value.')
      .exactOptional(),
    headers: z.record(z.string().min(1), z.string()).exactOptional(),
    models: z.array(addedModel).exactOptional(),
  }),
)
