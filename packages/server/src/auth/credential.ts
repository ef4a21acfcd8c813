import { subprotocol } from '@tapetree/client/protocol'
import type { Peer } from './peer.ts'

/** The credential of a request. An explicit one counts alone: a valid cookie does not make up for an invalid token. */
export type Credential = { type: 'none' } | { type: 'token' | 'cookie'; token: string }

export function credentialOf(header: (name: string) => string | undefined, peer: Peer): Credential {
  const offered = offeredProtocols(header('sec-websocket-protocol')).find((each) => each.startsWith(bearerProtocol))
  if (offered !== undefined) return { type: 'token', token: offered.slice(bearerProtocol.length) }
  const authorization = header('authorization')
  if (authorization !== undefined) {
    return { type: 'token', token: /^bearer +(\S+)$/i.exec(authorization)?.[1] ?? '' }
  }
  const cookie = readCookie(header('cookie'), peer)
  return cookie === undefined ? { type: 'none' } : { type: 'cookie', token: cookie }
}

/** A browser can set no header of a WebSocket except its subprotocols. */
export function speaksOurs(header: string | undefined): boolean {
  return offeredProtocols(header).some((each) => ourProtocols.includes(each))
}

/** For clients of the Agent Client Protocol that can set no header. */
const editorProtocol = 'acp.v1'

export const ourProtocols: readonly string[] = [subprotocol, editorProtocol]

const bearerProtocol = 'bearer.'

function offeredProtocols(header: string | undefined): string[] {
  return (header ?? '').split(',').map((each) => each.trim())
}

/**
 * Browsers share cookies between the ports of a host, so the name includes the port. They accept `__Host-` only for the
 * whole host, and `__Secure-` for a path as well.
 */
export function cookieName({ scheme, host, prefix = '' }: Pick<Peer, 'scheme' | 'host' | 'prefix'>): string {
  const port = /:(\d+)$/.exec(host ?? '')?.[1]
  const own = port === undefined ? 'tapetree' : `tapetree-${port}`
  if (scheme !== 'https') return own
  return prefix === '' ? `__Host-${own}` : `__Secure-${own}`
}

/** The `Set-Cookie` header that keeps a token from scripts, other sites and other paths of a shared host. */
export function tokenCookie(token: string, peer: Peer, maxAgeSeconds = longestAgeSeconds): string {
  const age = Math.min(Math.max(0, Math.floor(maxAgeSeconds)), longestAgeSeconds)
  const secure = peer.scheme === 'https' ? '; Secure' : ''
  return `${cookieName(peer)}=${token}; Path=${peer.prefix ?? ''}/; Max-Age=${age}; HttpOnly; SameSite=Strict${secure}`
}

export function clearedCookie(peer: Peer): string {
  return tokenCookie('', peer, 0)
}

export function readCookie(header: string | undefined, peer: Peer): string | undefined {
  const start = `${cookieName(peer)}=`
  const found = (header ?? '')
    .split(';')
    .map((each) => each.trim())
    .find((each) => each.startsWith(start))
  const value = found?.slice(start.length)
  return value === '' ? undefined : value
}

/** Browsers keep cookies no longer than this. */
const longestAgeSeconds = 400 * 24 * 60 * 60
