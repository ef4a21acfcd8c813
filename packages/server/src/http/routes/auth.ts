import type { Clock } from '@tapetree/agent/run'
import {
  beginPairingSchema,
  callerSchema,
  createTokenSchema,
  pairedSchema,
  pairingBegunSchema,
  pairPreviewedSchema,
  pairPreviewSchema,
  pairSchema,
  signInSchema,
  signOutSchema,
  tokenCreatedSchema,
  tokenInfoSchema,
  tokenListSchema,
} from '@tapetree/client/protocol'
import type { Context } from 'hono'
import { z } from 'zod'
import { clearedCookie, credentialOf, tokenCookie } from '../../auth/credential.ts'
import type { Gatekeeper } from '../../auth/gatekeeper.ts'
import type { UsageLimits } from '../../auth/limits.ts'
import type { Pairing } from '../../auth/pairing.ts'
import type { Peer } from '../../auth/peer.ts'
import { tokenInfo, type NewToken, type TokenRecord, type TokenStore } from '../../auth/token-store.ts'
import { RequestProblem } from '../../util/problem-error.ts'
import type { ApiParts, AppEnv, Routes } from '../app.ts'
import { localUser } from '../../live/driver.ts'
import { folderInside, rootsFor } from '../bodies/list-files.ts'
import { visitOf } from '../guard.ts'
import { json, jsonBody } from '../responses.ts'

export interface AuthParts extends Pick<ApiParts, 'roots'> {
  gatekeeper: Gatekeeper
  limits: UsageLimits
  tokens: TokenStore
  pairing: Pairing
  clock: Clock
}

/** Tokens of the caller's tenant, pairing and sign-in. */
export function addAuthRoutes(routes: Routes, parts: AuthParts): void {
  addTokens(routes, parts)
  addPairing(routes, parts)
  addSignIn(routes, parts)
}

/** Also available without tokens, as over the Unix socket alone. */
export function addCallerRoute(routes: Routes): void {
  routes.add(
    'any-role',
    {
      method: 'get',
      path: '/api/caller',
      operationId: 'getCaller',
      summary: 'Show the caller, its role and its limits',
      responses: { 200: json(callerSchema, 'The caller of this token.') },
    },
    async (context) => {
      const { tokenId, tenant, role, folder } = context.get('caller')
      const expiresAt = context.get('expiresAt')
      const { limits = {}, usage = {} } = (await context.get('limits')?.show()) ?? {}
      const body = {
        token_id: tokenId,
        tenant,
        role,
        ...(folder !== undefined && { folder }),
        ...(expiresAt !== undefined && { expires_at: new Date(expiresAt).toISOString() }),
        ...(Object.keys(limits).length > 0 && { limits, usage }),
      }
      return context.json(body, 200)
    },
  )
}

function addTokens(routes: Routes, parts: AuthParts): void {
  const { tokens, limits } = parts
  routes.add(
    'drive',
    {
      method: 'get',
      path: '/api/tokens',
      operationId: 'listTokens',
      summary: 'List the tokens of the tenant',
      description: 'A caller with a folder sees only its own token and the tokens that derive from it.',
      responses: { 200: json(tokenListSchema, 'Without the tokens themselves, which are not stored.') },
    },
    async (context) => {
      const records = tokens.list(context.get('caller').tenant).filter(({ id }) => mayManage(context, id, tokens))
      const listed = await Promise.all(
        records.map(async (record) => ({
          ...tokenInfo(record),
          ...(record.limits && { usage: await limits.usageOf(record) }),
        })),
      )
      return context.json({ tokens: listed }, 200)
    },
  )
  routes.add(
    'drive',
    {
      method: 'post',
      path: '/api/tokens',
      operationId: 'createToken',
      summary: 'Make a token that is at most as wide as that of the caller',
      request: { body: jsonBody(createTokenSchema) },
      responses: { 201: json(tokenCreatedSchema, 'The token is shown only this once.') },
    },
    async (context) => {
      const grant = await grantOf(context, context.req.valid('json'), parts)
      const made = await tokens.create(grant, creatorOf(context))
      return context.json({ ...tokenInfo(made.record), token: made.token }, 201)
    },
  )
  routes.add(
    'drive',
    {
      method: 'delete',
      path: '/api/tokens/{token_id}',
      operationId: 'revokeToken',
      summary: 'Revoke a token and all tokens that derive from it',
      request: { params: z.object({ token_id: z.string().max(64) }) },
      responses: { 204: { description: 'Their connections are closed.' } },
    },
    async (context) => {
      const { token_id: tokenId } = context.req.valid('param')
      const isRevoked =
        mayManage(context, tokenId, tokens) && (await tokens.revoke(tokenId, context.get('caller').tenant))
      if (!isRevoked) {
        throw new RequestProblem(404, 'token-not-found', 'The token does not exist.')
      }
      return context.body(null, 204)
    },
  )
}

function addPairing(routes: Routes, parts: AuthParts): void {
  const { gatekeeper, pairing, clock } = parts
  routes.add(
    'drive',
    {
      method: 'post',
      path: '/api/pairing',
      operationId: 'beginPairing',
      summary: 'Create a pairing code for one device',
      request: { body: jsonBody(beginPairingSchema) },
      responses: { 201: json(pairingBegunSchema, 'Valid once, and only briefly.') },
    },
    async (context) => {
      const grant = await grantOf(context, context.req.valid('json'), parts)
      const { code, expiresAt } = pairing.begin(grant, creatorOf(context))
      return context.json({ code, expires_at: new Date(expiresAt).toISOString() }, 201)
    },
  )
  routes.add(
    'anyone',
    {
      method: 'post',
      path: '/api/pair/preview',
      operationId: 'previewPairing',
      summary: 'Show what a pairing code grants, without using it',
      request: { body: jsonBody(pairPreviewSchema) },
      responses: { 200: json(pairPreviewedSchema, 'Its role, and when it expires.') },
    },
    (context) => {
      const found = pairing.preview(context.req.valid('json').code)
      if (!found) throw gatekeeper.failed(visitOf(context).peer, codeUnknown)
      return context.json({ role: found.role, expires_at: new Date(found.expiresAt).toISOString() }, 200)
    },
  )
  routes.add(
    'anyone',
    {
      method: 'post',
      path: '/api/pair',
      operationId: 'pair',
      summary: 'Exchange a pairing code for a new token',
      request: { body: jsonBody(pairSchema) },
      responses: { 201: json(pairedSchema, 'As a cookie, or in the response if a program requests it.') },
    },
    async (context) => {
      const { code, name, role, as = 'cookie' } = context.req.valid('json')
      const { peer } = visitOf(context)
      const made = await pairing.exchange(code, { ...(name !== undefined && { name }), ...(role && { role }) })
      if (made.type === 'unknown') throw gatekeeper.failed(peer, codeUnknown)
      if (made.type === 'too-wide') {
        const detail = `The pairing code grants the role ${made.grants}, not ${role}.`
        throw new RequestProblem(403, 'role-too-wide', detail, { grants: made.grants })
      }
      const { token, record } = made
      if (as === 'token') return context.json({ ...tokenInfo(record), token }, 201)
      context.header('set-cookie', cookieOf(token, record, { peer, clock }))
      return context.json(tokenInfo(record), 201)
    },
  )
}

const codeUnknown = 'The pairing code is unknown, has expired or was already used.'

function addSignIn(routes: Routes, { gatekeeper, tokens, clock }: AuthParts): void {
  routes.add(
    'anyone',
    {
      method: 'post',
      path: '/api/sign-in',
      operationId: 'signIn',
      summary: 'Exchange a token for a cookie',
      request: { body: jsonBody(signInSchema) },
      responses: { 200: json(tokenInfoSchema, 'The response sets the cookie.') },
    },
    (context) => {
      const { token } = context.req.valid('json')
      const { peer } = visitOf(context)
      const record = tokens.verify(token)
      if (!record) throw gatekeeper.failed(peer)
      context.header('set-cookie', cookieOf(token, record, { peer, clock }))
      return context.json(tokenInfo(record), 200)
    },
  )
  routes.add(
    'anyone',
    {
      method: 'post',
      path: '/api/sign-out',
      operationId: 'signOut',
      summary: 'Delete the cookie, and optionally revoke its token',
      request: { body: { content: { 'application/json': { schema: signOutSchema } } } },
      responses: { 204: { description: 'Without `revoke`, the token stays valid.' } },
    },
    async (context) => {
      const { revoke = false } = context.req.valid('json') as { revoke?: boolean }
      const { peer, header } = visitOf(context)
      const credential = credentialOf(header, peer)
      const record = revoke && credential.type === 'cookie' ? tokens.verify(credential.token) : undefined
      if (record) await tokens.revoke(record.id, record.tenant)
      context.header('set-cookie', clearedCookie(peer))
      return context.body(null, 204)
    },
  )
}

/** The grant that a request asks for. The tenant is that of the caller; the folder is inside of the roots. */
async function grantOf(
  context: Context<AppEnv>,
  { role, name, folder, expires_at: expires, limits }: z.infer<typeof createTokenSchema>,
  parts: Pick<AuthParts, 'clock' | 'roots'>,
): Promise<NewToken> {
  const caller = context.get('caller')
  const { tenant } = caller
  const expiresAt = expires === undefined ? undefined : Date.parse(expires)
  if (expiresAt !== undefined && expiresAt <= parts.clock.now()) {
    throw new RequestProblem(422, 'already-over', 'The expiry time of a token must be in the future.')
  }
  return {
    tenant,
    role,
    ...(name !== undefined && { name }),
    ...(folder !== undefined && { folder: await folderInside(folder, await rootsFor(caller, parts)) }),
    ...(expiresAt !== undefined && { expiresAt }),
    ...(limits && { limits }),
  }
}

/** The token that creates another one; the user of the Unix socket is not bound by any. */
function creatorOf(context: Context<AppEnv>): { by?: string } {
  const { tokenId } = context.get('caller')
  return tokenId === localUser ? {} : { by: tokenId }
}

/** A caller with a folder manages only its own token and those that derive from it. */
function mayManage(context: Context<AppEnv>, tokenId: string, tokens: TokenStore): boolean {
  const { tokenId: callerId, folder } = context.get('caller')
  return folder === undefined || tokens.chainOf(tokenId).some(({ id }) => id === callerId)
}

/** The cookie expires with its token. */
function cookieOf(token: string, { expiresAt }: TokenRecord, { peer, clock }: { peer: Peer; clock: Clock }): string {
  return tokenCookie(token, peer, expiresAt === undefined ? undefined : (expiresAt - clock.now()) / 1000)
}
