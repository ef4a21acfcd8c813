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
  type TokenInfo,
} from '@tapetree/client/protocol'
import { z } from 'zod'
import { clearedCookie, credentialOf, tokenCookie } from '../../auth/credential.ts'
import type { Gatekeeper } from '../../auth/gatekeeper.ts'
import type { Pairing } from '../../auth/pairing.ts'
import type { Peer } from '../../auth/peer.ts'
import type { NewToken, TokenRecord, TokenStore } from '../../auth/token-store.ts'
import { RequestProblem } from '../../util/problem-error.ts'
import type { Routes } from '../app.ts'
import { visitOf } from '../guard.ts'
import { json, jsonBody } from '../responses.ts'

export interface AuthParts {
  gatekeeper: Gatekeeper
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
    'view',
    {
      method: 'get',
      path: '/api/caller',
      operationId: 'getCaller',
      summary: 'Show the caller and its role',
      responses: { 200: json(callerSchema, 'The caller of this token.') },
    },
    (context) => {
      const { tokenId, tenant, role } = context.get('caller')
      return context.json({ token_id: tokenId, tenant, role }, 200)
    },
  )
}

function addTokens(routes: Routes, { tokens, clock }: AuthParts): void {
  routes.add(
    'drive',
    {
      method: 'get',
      path: '/api/tokens',
      operationId: 'listTokens',
      summary: 'List the tokens of the tenant',
      responses: { 200: json(tokenListSchema, 'Without the tokens themselves, which are not stored.') },
    },
    (context) => context.json({ tokens: tokens.list(context.get('caller').tenant).map(infoOf) }, 200),
  )
  routes.add(
    'drive',
    {
      method: 'post',
      path: '/api/tokens',
      operationId: 'createToken',
      summary: 'Make a token',
      request: { body: jsonBody(createTokenSchema) },
      responses: { 201: json(tokenCreatedSchema, 'The token is shown only this once.') },
    },
    async (context) => {
      const { role, name, expires_at: expires } = context.req.valid('json')
      const expiresAt = expires === undefined ? undefined : Date.parse(expires)
      if (expiresAt !== undefined && expiresAt <= clock.now()) {
        throw new RequestProblem(422, 'already-over', 'The expiry time of a token must be in the future.')
      }
      const { tenant } = context.get('caller')
      const made = await tokens.create({
        ...grantOf(tenant, role, name),
        ...(expiresAt !== undefined && { expiresAt }),
      })
      return context.json({ ...infoOf(made.record), token: made.token }, 201)
    },
  )
  routes.add(
    'drive',
    {
      method: 'delete',
      path: '/api/tokens/{token_id}',
      operationId: 'revokeToken',
      summary: 'Revoke a token',
      request: { params: z.object({ token_id: z.string().max(64) }) },
      responses: { 204: { description: 'Its connections are closed.' } },
    },
    async (context) => {
      const { token_id: tokenId } = context.req.valid('param')
      if (!(await tokens.revoke(tokenId, context.get('caller').tenant))) {
        throw new RequestProblem(404, 'token-not-found', 'The token does not exist.')
      }
      return context.body(null, 204)
    },
  )
}

function addPairing(routes: Routes, { gatekeeper, pairing, clock }: AuthParts): void {
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
    (context) => {
      const { role, name } = context.req.valid('json')
      const { code, expiresAt } = pairing.begin(grantOf(context.get('caller').tenant, role, name))
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
      if (as === 'token') return context.json({ ...infoOf(record), token }, 201)
      context.header('set-cookie', cookieOf(token, record, { peer, clock }))
      return context.json(infoOf(record), 201)
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
      return context.json(infoOf(record), 200)
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

function grantOf(tenant: string, role: NewToken['role'], name: string | undefined): NewToken {
  return { tenant, role, ...(name !== undefined && { name }) }
}

/** The cookie expires with its token. */
function cookieOf(token: string, { expiresAt }: TokenRecord, { peer, clock }: { peer: Peer; clock: Clock }): string {
  return tokenCookie(token, peer, expiresAt === undefined ? undefined : (expiresAt - clock.now()) / 1000)
}

function infoOf({ id, role, name, createdAt, expiresAt }: TokenRecord): TokenInfo {
  return {
    id,
    role,
    created_at: new Date(createdAt).toISOString(),
    ...(name !== undefined && { name }),
    ...(expiresAt !== undefined && { expires_at: new Date(expiresAt).toISOString() }),
  }
}
