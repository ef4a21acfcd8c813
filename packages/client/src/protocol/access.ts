import { z } from 'zod'

/** Roles of tokens, each including the previous ones: watch, queue messages, answer requests, drive. */
export const roles = ['view', 'queue', 'approve', 'drive'] as const
export type Role = (typeof roles)[number]

const role = z.enum(roles)
const time = z.iso.datetime()
const name = z.string().min(1).max(200)

/** Describes a token. The token itself is shown only once, to its creator. */
export const tokenInfoSchema = z.object({
  id: z.string(),
  role,
  name: name.optional(),
  created_at: time,
  expires_at: time.optional(),
})
export type TokenInfo = z.infer<typeof tokenInfoSchema>

export const tokenListSchema = z.object({ tokens: z.array(tokenInfoSchema) })

export const createTokenSchema = z.strictObject({ role, name: name.optional(), expires_at: time.optional() })

export const tokenCreatedSchema = tokenInfoSchema.extend({ token: z.string() })

export const beginPairingSchema = z.strictObject({ role, name: name.optional() })
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

export const callerSchema = z.object({ token_id: z.string(), tenant: z.string(), role })
