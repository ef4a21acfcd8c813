import { z } from 'zod'

/**
 * Roles of tokens. Each of the first four includes the previous ones: watch, queue messages, answer requests,
 * drive. `metrics` reads only the metrics, and `host` only connects a tool host.
 */
export const roles = ['view', 'queue', 'approve', 'drive', 'metrics', 'host'] as const
export type Role = (typeof roles)[number]

const role = z.enum(roles)
const time = z.iso.datetime()
const name = z.string().min(1).max(200)
const count = z.int().min(0)

/** Limits of a token or a tenant. An absent one does not apply. */
export const limitsSchema = z.strictObject({
  /** Sessions that are running or observed at the same time. */
  live_sessions: count.optional(),
  /** Stored sessions, including archived ones and the trash. */
  sessions: count.optional(),
  storage_bytes: count.optional(),
  /** Requests and WebSocket commands. */
  requests_per_minute: z.int().min(1).optional(),
  /** In US dollars, from midnight UTC. */
  spend_per_day: z.number().min(0).optional(),
})
export type Limits = z.infer<typeof limitsSchema>
export type LimitName = keyof Limits

/** What counts towards the limits now. Only limited amounts are measured. */
const usageSchema = z.object({
  live_sessions: z.number().optional(),
  sessions: z.number().optional(),
  storage_bytes: z.number().optional(),
  requests_per_minute: z.number().optional(),
  spend_per_day: z.number().optional(),
})
export type LimitUsage = z.infer<typeof usageSchema>

/** Describes a token. The token itself is shown only once, to its creator. */
export const tokenInfoSchema = z.object({
  id: z.string(),
  role,
  tenant: z.string(),
  name: name.optional(),
  /** The token reaches only sessions inside of this folder. */
  folder: z.string().optional(),
  /** The token that created this one. Revoking it revokes this one too. */
  parent_id: z.string().optional(),
  created_at: time,
  expires_at: time.optional(),
  limits: limitsSchema.optional(),
})
export type TokenInfo = z.infer<typeof tokenInfoSchema>

export const tokenListSchema = z.object({ tokens: z.array(tokenInfoSchema.extend({ usage: usageSchema.optional() })) })

/** What is absent is inherited from the creator; nothing may be wider. */
export const createTokenSchema = z.strictObject({
  role,
  name: name.optional(),
  folder: z.string().min(1).max(4096).optional(),
  expires_at: time.optional(),
  limits: limitsSchema.optional(),
})

export const tokenCreatedSchema = tokenInfoSchema.extend({ token: z.string() })

export const beginPairingSchema = z.strictObject(createTokenSchema.shape)
/** The code is used in the fragment of a link. */
export const pairingBegunSchema = z.object({ code: z.string(), expires_at: time })

/** `cookie` is for web pages: no script can read the token. `role` asks for fewer rights than the code grants. */
export const pairSchema = z.strictObject({
  code: z.string().max(200),
  name: name.optional(),
  role: role.optional(),
  as: z.enum(['cookie', 'token']).optional(),
})
export const pairedSchema = tokenInfoSchema.extend({ token: z.string().optional() })

export const pairPreviewSchema = z.strictObject({ code: z.string().max(200) })
export const pairPreviewedSchema = z.object({ role, expires_at: time })

export const signInSchema = z.strictObject({ token: z.string().max(200) })

/** `revoke`: the token of the cookie is revoked as well. */
export const signOutSchema = z.strictObject({ revoke: z.boolean().optional() })

export const callerSchema = z.object({
  token_id: z.string(),
  tenant: z.string(),
  role,
  folder: z.string().optional(),
  expires_at: time.optional(),
  /** The limits that apply to the caller: for each, the one that is nearest to being reached. */
  limits: limitsSchema.optional(),
  usage: usageSchema.optional(),
})
