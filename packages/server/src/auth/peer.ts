import { BlockList, isIP, isIPv4 } from 'node:net'
import { OptionError } from '../util/option-error.ts'
import type { PublicUrl } from './public-url.ts'

/** Address, scheme and host of a client, as far as they can be trusted. */
export interface Peer {
  address: string
  scheme: 'http' | 'https'
  /** The host name that the client used. */
  host: string | undefined
  /** Set for the Unix socket, which only its owner can open. */
  isOwner: boolean
  /** The path of the public URL, if the client used that. Cookies are limited to it. */
  prefix?: string
}

export interface Arrival {
  remoteAddress: string | undefined
  isEncrypted: boolean
  isUnixSocket: boolean
  header: (name: string) => string | undefined
}

/**
 * Forwarded headers are honored only from listed proxies. A request that names the host of the public URL has the scheme
 * and port of that URL, because a proxy may pass the name without them.
 */
export function peerOf(arrival: Arrival, proxies: TrustedProxies, publicUrl?: PublicUrl): Peer {
  const peer = peerBehind(arrival, proxies)
  if (!publicUrl?.isNamedBy(peer.host) || peer.isOwner) return peer
  return { ...peer, scheme: publicUrl.scheme, host: publicUrl.host, prefix: publicUrl.prefix }
}

function peerBehind({ remoteAddress, isEncrypted, isUnixSocket, header }: Arrival, proxies: TrustedProxies): Peer {
  const address = plainAddress(remoteAddress ?? '')
  const direct: Peer = {
    address,
    scheme: isEncrypted ? 'https' : 'http',
    host: header('host'),
    isOwner: isUnixSocket,
  }
  if (isUnixSocket || !proxies.has(address)) return direct
  const scheme = nearest(header('x-forwarded-proto'))
  return {
    address: clientBehind(header('x-forwarded-for'), proxies) ?? address,
    scheme: scheme === 'https' || scheme === 'http' ? scheme : direct.scheme,
    host: nearest(header('x-forwarded-host')) ?? direct.host,
    isOwner: false,
  }
}

/** Addresses and networks such as `10.0.0.0/8`. */
export class TrustedProxies {
  readonly #list = new BlockList()

  constructor(entries: readonly string[]) {
    for (const entry of entries) {
      const [address = '', bits] = entry.split('/')
      const mostBits = isIPv4(address) ? 32 : 128
      const isRight =
        isIP(address) !== 0 && (bits === undefined || (/^\d{1,3}$/.test(bits) && Number(bits) <= mostBits))
      if (!isRight)
        throw new OptionError(
          `${JSON.stringify(entry)} is neither an address nor a network. Correct the trusted proxies.`,
        )
      const family = isIPv4(address) ? 'ipv4' : 'ipv6'
      if (bits === undefined) this.#list.addAddress(address, family)
      else this.#list.addSubnet(address, Number(bits), family)
    }
  }

  has(remoteAddress: string): boolean {
    const address = plainAddress(remoteAddress)
    return isIP(address) !== 0 && this.#list.check(address, isIPv4(address) ? 'ipv4' : 'ipv6')
  }
}

/**
 * Each proxy appends the address it saw; the last one that is not a trusted proxy is the client, and earlier
 * ones are unverified.
 */
function clientBehind(forwardedFor: string | undefined, proxies: TrustedProxies): string | undefined {
  const chain = (forwardedFor ?? '').split(',').map((each) => plainAddress(each.trim()))
  const client = chain.findLast((address) => !proxies.has(address))
  return client !== undefined && isIP(client) !== 0 ? client : undefined
}

function nearest(list: string | undefined): string | undefined {
  const value = list?.split(',').at(-1)?.trim()
  return value === '' ? undefined : value
}

/** Converts an IPv4-mapped IPv6 address to IPv4. */
function plainAddress(address: string): string {
  return address.toLowerCase().startsWith('::ffff:') && isIPv4(address.slice(7)) ? address.slice(7) : address
}
