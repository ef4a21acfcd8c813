import { subprotocol } from '@tapetree/client'
import { readCookie } from './cookie.ts'
import type { Peer } from './peer.ts'

/** What a request brings to be let in by. One that is named openly counts alone: a bad token is not mended by a good cookie. */
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

/** A browser can give a WebSocket no header but its subprotocols. */
export function speaksOurs(header: string | undefined): boolean {
  return offeredProtocols(header).includes(subprotocol)
}

const bearerProtocol = 'bearer.'

function offeredProtocols(header: string | undefined): string[] {
  return (header ?? '').split(',').map((each) => each.trim())
}
