import { z } from 'zod'

/**
 * One MCP server in the settings. A program is started directly, never by a shell. It sees the few variables
 * that every program needs, those that `env.pass` names and those that `env.set` gives.
 */
export type McpServerSettings = z.output<typeof mcpServerSchema>
export type HttpSettings = Extract<McpServerSettings, { type: 'http' }>

const withoutNul = z.string().regex(/^[^\0]*$/, 'It contains a NUL character.')
const variable = z.string().regex(/^[A-Za-z_][A-Za-z0-9_]*$/, 'It is not the name of a variable.')
const headerName = z.string().regex(/^[A-Za-z0-9!#$%&'*+.^_`|~-]+$/, 'It is not the name of a header.')
const headerValue = z.string().regex(/^[\t\x20-\x7e\x80-\xff]*$/, 'It is not the value of a header.')

const address = z.string().superRefine((url, issues) => {
  const problem = urlProblem(url)
  if (problem !== undefined) issues.addIssue(problem)
})

const oauthSchema = z.strictObject({
  /** For servers without client registration. */
  clientId: z.string().min(1).optional(),
  clientSecret: z.string().min(1).optional(),
  scope: z.string().min(1).optional(),
  /** The port for the sign-in redirect, if it must be a fixed one. */
  redirectPort: z.int().min(1024).max(65_535).optional(),
})

export type OAuthSettings = z.output<typeof oauthSchema>

const commonSchema = {
  /** Overrides of the default limits. */
  connectTimeoutMs: z.int().min(1).max(600_000).optional(),
  callTimeoutMs: z.int().min(1).max(3_600_000).optional(),
}

export const mcpServerSchema = z.discriminatedUnion('type', [
  z.strictObject({
    type: z.literal('stdio'),
    command: withoutNul.min(1),
    args: z.array(withoutNul).default([]),
    env: z
      .strictObject({
        pass: z.array(variable).default([]),
        set: z.record(variable, withoutNul).default({}),
      })
      .default({ pass: [], set: {} }),
    /** Its folder, relative to the working folder. */
    cwd: withoutNul.min(1).optional(),
    ...commonSchema,
  }),
  z.strictObject({
    type: z.literal('http'),
    url: address,
    headers: z.record(headerName, headerValue).default({}),
    oauth: oauthSchema.optional(),
    ...commonSchema,
  }),
])

/**
 * Valid server names. No two underscores in a row and none at an end, so that a rule for `mcp__github__*`
 * covers only the tools of `github`.
 */
export const mcpServerName = z
  .string()
  .max(32)
  .regex(
    /^[A-Za-z0-9]+(?:[_-][A-Za-z0-9]+)*$/,
    'The name of a server is made of letters and digits, with single - or _ between them.',
  )

export const mcpServersSchema = z.record(mcpServerName, mcpServerSchema)

/**
 * Why an address is not used, neither for requests nor in a browser; undefined if it is fine. Tokens are sent
 * only over `https`, and over `http` on this machine.
 */
export function urlProblem(address: string): string | undefined {
  const url = URL.parse(address)
  if (!url) return 'It is not a valid URL.'
  if (url.username !== '' || url.password !== '') return 'It contains a user name or a password; use a header.'
  if (url.protocol === 'https:') return undefined
  if (url.protocol !== 'http:') return 'Only https addresses are used, and http on this machine.'
  return isLoopback(url) ? undefined : 'http is used only on this machine; write https.'
}

export function isLoopback({ hostname }: URL): boolean {
  return hostname === 'localhost' || hostname === '[::1]' || /^127(?:\.\d{1,3}){3}$/.test(hostname)
}
