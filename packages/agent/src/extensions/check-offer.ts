import { isAbsolute, resolve } from 'node:path'
import { z } from 'zod'
import { addProvider } from '../models/registry/provider-additions.ts'
import { readToolInput } from '../tools/tool-input.ts'
import type { HookName } from './extension.ts'
import type { Offer } from './runner.ts'

/** Every provider accepts such a name, and it is safe to display. */
const toolName = z.string().regex(/^[A-Za-z0-9_-]{1,64}$/, 'must be made of at most 64 letters, digits, _ and -')
const commandName = z
  .string()
  .regex(/^[A-Za-z0-9][A-Za-z0-9_:-]{0,63}$/, 'must be made of at most 64 letters, digits, _, : and -')

const hookNames = {
  sessionStart: true,
  sessionEnd: true,
  beforeAgentStart: true,
  turnStart: true,
  turnEnd: true,
  toolCall: true,
  toolResult: true,
  context: true,
  beforeCompact: true,
} satisfies Record<HookName, true>

const offerSchema = z.object({
  handlers: z.array(
    z.object({
      hook: z.enum(Object.keys(hookNames) as [HookName, ...HookName[]]),
      index: z.int(),
      limitMs: z.number().positive().exactOptional(),
    }),
  ),
  commands: z.array(z.object({ name: commandName, description: z.string() })),
  tools: z.array(
    z.object({
      name: toolName,
      description: z.string().min(1),
      inputSchema: z.looseObject({ type: z.literal('object') }),
      readOnly: z.boolean().exactOptional(),
      replay: z.enum(['safe', 'never']).exactOptional(),
      deadlineMs: z.number().positive().exactOptional(),
      access: z
        .array(z.object({ type: z.enum(['read', 'write', 'fetch', 'command']), input: z.string().min(1) }))
        .min(1)
        .exactOptional(),
    }),
  ),
  providers: z.array(
    z.looseObject({ id: z.string().regex(/^[a-zA-Z0-9][\w-]{0,63}$/, 'must be made of letters and digits') }),
  ),
  skills: z.array(z.string().min(1)),
  templates: z.array(z.string().min(1)),
})

const ownModels = z.array(
  z.looseObject({
    id: z.string().min(1),
    limits: z.looseObject({ contextTokens: z.int().positive(), outputTokens: z.int().positive() }),
  }),
)

/** Validates what an extension offers. Throws a sentence if it is not usable. */
export function checkOffer(offer: Offer, cwd: string): Offer {
  const result = offerSchema.safeParse(offer)
  if (!result.success) throw new TypeError(`Its registrations are not valid. ${z.prettifyError(result.error)}`)
  for (const { name, inputSchema } of offer.tools) readToolInput({ name, schema: inputSchema })
  for (const provider of offer.providers) {
    if (isAdded(provider)) addProvider(provider.id, provider, undefined)
    else if (!ownModels.safeParse(provider.models).success)
      throw new TypeError(`The models of the provider ${provider.id} lack an id or limits.`)
  }
  const absolute = (folder: string): string => (isAbsolute(folder) ? folder : resolve(cwd, folder))
  return { ...offer, skills: offer.skills.map(absolute), templates: offer.templates.map(absolute) }
}

type OfferedProvider = Offer['providers'][number]

/** Whether we call the provider, and not the extension itself. */
export function isAdded(provider: OfferedProvider): provider is Extract<OfferedProvider, { baseUrl?: string }> {
  return 'baseUrl' in provider
}
