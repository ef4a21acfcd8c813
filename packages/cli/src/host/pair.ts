import type { ServerAddress } from '@tapetree/client'
import { pairedSchema } from '@tapetree/client/protocol'
import { isIP } from 'node:net'
import { hostname as machineName } from 'node:os'
import { connect } from 'node:tls'
import { exitCodes } from '../command-line/exit-code.ts'
import { Failure } from '../command-line/failure.ts'
import { harmlessLine } from '../text/harmless.ts'
import { connectionFailure, transportFor, type Way } from './transport.ts'
import type { KnownServer } from './known-servers.ts'

/** A typed or pasted address. The code and the fingerprint follow the `#`. */
export interface ServerLink {
  /** The origin, and the path if the server is below one. Without a slash at the end. */
  url: string
  code?: string
  fingerprint?: string
}

export function parseServerLink(text: string): ServerLink | undefined {
  const url = /^https?:\/\//i.test(text) ? URL.parse(text) : null
  if (!url) return undefined
  const fragment = new URLSearchParams(url.hash.slice(1))
  const [code, fingerprint] = [fragment.get('pair'), fragment.get('fingerprint')]
  return {
    url: url.origin + url.pathname.replace(/\/+$/, ''),
    ...(code !== null && { code }),
    ...(fingerprint !== null && { fingerprint }),
  }
}

/** Throws if the token would be sent unencrypted, or if the link has a fingerprint but http presents no certificate. */
export function requireSafe({ url, fingerprint }: ServerLink, { allowInsecure }: { allowInsecure: boolean }): void {
  const { protocol, host, pathname, hostname: name } = new URL(url)
  if (protocol === 'https:') return
  const shown = harmlessLine(url)
  const next = [`tapetree attach https://${harmlessLine(host + (pathname === '/' ? '' : pathname))}`]
  if (fingerprint !== undefined) {
    throw new Failure(exitCodes.usage, `${shown} includes a certificate fingerprint, but http has no certificate.`, {
      type: 'insecure-link',
      why: 'The link may have been changed. Use it as the server prints it.',
      next,
    })
  }
  if (allowInsecure || isThisMachine(name)) return
  throw new Failure(exitCodes.usage, `${shown} is on another machine, and http is not encrypted.`, {
    type: 'insecure-link',
    why: 'Anyone on the network could read the token.',
    next: [...next, `tapetree attach ${shown} --allow-insecure`],
  })
}

function isThisMachine(name: string): boolean {
  return name === 'localhost' || name.endsWith('.localhost') || name === '[::1]' || /^127(?:\.\d{1,3}){3}$/.test(name)
}

/** Exchanges the code of a link for a token of this device. */
export async function pair({ url, code = '', fingerprint }: ServerLink): Promise<KnownServer> {
  const pinned = fingerprint === undefined ? undefined : await pinnedCertificate(url, fingerprint)
  const { fetch } = transportFor(wayTo({ pinned }))
  const answer = await fetch(`${url}/api/pair`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ code, name: `terminal on ${machineName()}`.slice(0, 100), as: 'token' }),
    redirect: 'error',
  }).catch((cause: unknown) => {
    throw connectionFailure(url, cause)
  })
  const paired = answer.ok ? pairedSchema.safeParse(await answer.json()).data : undefined
  const token = paired && 'token' in paired ? paired.token : undefined
  if (typeof token !== 'string') {
    throw new Failure(exitCodes.noModel, 'This pairing link has expired or was already used.', {
      type: 'link-used-up',
      why: 'A link works once, within five minutes. Press Enter in the terminal of the server to print another one.',
    })
  }
  return { url, token, pairedAt: new Date().toISOString(), ...(pinned && { pinned }) }
}

export function addressOfServer(
  server: Pick<KnownServer, 'url' | 'token' | 'pinned'>,
): ServerAddress & ReturnType<typeof transportFor> {
  return { baseUrl: server.url, token: server.token, ...transportFor(wayTo(server)) }
}

export function wayTo({ pinned }: Pick<KnownServer, 'pinned'>): Way {
  return pinned ? { type: 'pinned', ...pinned } : { type: 'network' }
}

/** The certificate that the server presents, if the link names it. Sends nothing to any other server. */
async function pinnedCertificate(url: string, fingerprint: string): Promise<NonNullable<KnownServer['pinned']>> {
  const { hostname, port } = new URL(url)
  const host = hostname.replace(/^\[(.*)\]$/, '$1')
  const { promise, resolve, reject } = Promise.withResolvers<{ raw: Buffer; fingerprint256: string }>()
  const socket = connect(
    {
      host,
      port: Number(port || 443),
      // A server with several names chooses its certificate by this one. An address must not be sent.
      ...(isIP(host) === 0 && { servername: host }),
      rejectUnauthorized: false,
      timeout: 10_000,
    },
    () => resolve(socket.getPeerCertificate()),
  )
  socket.once('error', reject)
  socket.once('timeout', () => reject(new Error('It does not answer.')))
  try {
    const shown = await promise.catch((cause: unknown) => {
      throw connectionFailure(url, cause)
    })
    if (shown.fingerprint256 === fingerprint) return { certificate: pemOf(shown.raw), fingerprint }
    throw new Failure(
      exitCodes.configuration,
      `The certificate of ${harmlessLine(url)} does not match its pairing link.`,
      {
        type: 'wrong-certificate',
        why: 'The connection may be intercepted. Nothing was sent.',
        next: ['tapetree serve --self-signed'],
      },
    )
  } finally {
    socket.destroy()
  }
}

function pemOf(raw: Buffer): string {
  const lines = raw.toString('base64').match(/.{1,64}/g) ?? []
  return `-----BEGIN CERTIFICATE-----\n${lines.join('\n')}\n-----END CERTIFICATE-----\n`
}
