import type { RouteAccess, Role } from '@tapetree/server'

/** One way in, from the router's own inventory. */
export interface Way {
  method: string
  /** As declared, with parameters in braces. */
  path: string
  access: RouteAccess
  isWebSocket: boolean
  /** What a body may be; empty where the route takes none. */
  mediaTypes: readonly string[]
}

/** What one request brings, an axis each. */
export interface Visit {
  token: TokenKind
  host: HostKind
  origin: OriginKind
  contentType: ContentTypeKind
}

export const tokenKinds = [
  'good',
  'good cookie',
  'none',
  'nonsense',
  'wrong secret',
  'expired',
  'revoked',
  'revoked cookie',
  'lesser role',
  'metrics role',
  'other folder',
  'other tenant',
  'tenant not hosted',
] as const
export type TokenKind = (typeof tokenKinds)[number]

/** All but the first are none of the server's names. */
export const hostKinds = [
  'good',
  'evil.example',
  'localhost.evil.example',
  '127.0.0.1.nip.example',
  'localhost.',
  '0.0.0.0',
  '127.1',
  '0x7f000001',
  '2130706433',
  '[::]',
  '[::ffff:127.0.0.1]',
  'localhost@evil.example',
  'missing',
] as const
type HostKind = (typeof hostKinds)[number]

/** All but the first two are foreign; `PORT` is the server's own. */
export const originKinds = [
  'absent',
  'own',
  'null',
  'http://evil.example',
  'https://localhost:PORT',
  'http://localhost:1',
  'http://localhost',
  'http://localhost:PORT.evil.example',
  'http://evil.localhost:PORT',
  'http://localhost.:PORT',
  'http://localhost:PORT/',
  'http://user@localhost:PORT',
  'file://',
] as const
type OriginKind = (typeof originKinds)[number]

/** All but the first are what a form of a foreign page can send, or nothing. */
export const contentTypeKinds = [
  'declared',
  'text/plain',
  'application/x-www-form-urlencoded',
  'multipart/form-data; boundary=x',
  'text/plain; application/json',
  'absent',
] as const
type ContentTypeKind = (typeof contentTypeKinds)[number]

export const allGood: Visit = { token: 'good', host: 'good', origin: 'absent', contentType: 'declared' }

/** The widest role that may not use a route. */
export function lesserRole(access: RouteAccess): Role | undefined {
  return lesserRoles[access]
}

const lesserRoles: Record<RouteAccess, Role | undefined> = {
  anyone: undefined,
  'any-role': undefined,
  view: 'metrics',
  queue: 'view',
  approve: 'queue',
  drive: 'approve',
  metrics: 'approve',
  host: 'approve',
}

export function changesSomething({ method, isWebSocket }: Way): boolean {
  return isWebSocket || !['get', 'head'].includes(method)
}
