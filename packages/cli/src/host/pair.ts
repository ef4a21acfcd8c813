import { pairedSchema, type ServerAddress } from '@tapetree/client'
import { hostname } from 'node:os'
import { connect } from 'node:tls'
import { exitCodes } from '../command-line/exit-code.ts'
import { Failure } from '../command-line/failure.ts'
import { harmlessLine } from '../text/harmless.ts'
import { connectionFailure } from './connection-failure.ts'
import type { KnownServer } from './known-servers.ts'
import { transportFor, type Way } from './transport.ts'

/** An address as it is typed or pasted. The code and the fingerprint stand behind the `#`. */
export interface ServerLink {
  /** The origin. */
  url: string
  code?: string
  fingerprint?: string
}

export function parseServerLink(text: string): ServerLink | undefined {
  const url = /^https?:\/\//i.test(text) ? URL.parse(text) : null
  if (!url) return undefined
  const fragment = new URLSearchParams(url.hash.slice(1))
  const [code, fingerprint] = [fragment.get('pair'), fragment.get('fingerprint')]
  return { url: url.origin, ...(code !== null && { code }), ...(fingerprint !== null && { fingerprint }) }
}

/** Throws where the token would travel in clear, or where the link promises a certificate that nobody would look at. */
export function requireSafe({ url, fingerprint }: ServerLink, { allowInsecure }: { allowInsecure: boolean }): void {
  const { protocol, host, hostname: name } = new URL(url)
  if (protocol === 'https:') return
  const shown = harmlessLine(url)
  const next = [`tapetree attach https://${harmlessLine(host)}`]
  if (fingerprint !== undefined) {
    throw new Failure(exitCodes.usage, `${shown} names the fingerprint of a certificate, and http shows none.`, {
      type: 'insecure-link',
      why: 'Somebody may have changed the link. Use it as the server prints it.',
      next,
    })
  }
  if (allowInsecure || isThisMachine(name)) return
  throw new Failure(exitCodes.usage, `${shown} is on another machine, and http encrypts nothing.`, {
    type: 'insecure-link',
    why: 'Everyone on the way would read the token.',
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
  const answer = await fetch(new URL('/api/pair', url), {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ code, name: `terminal on ${hostname()}`.slice(0, 100), as: 'token' }),
    redirect: 'error',
  }).catch((cause: unknown) => {
    throw connectionFailure(url, cause)
  })
  const paired = answer.ok ? pairedSchema.safeParse(await answer.json()).data : undefined
  const token = paired && 'token' in paired ? paired.token : undefined
  if (typeof token !== 'string') {
    throw new Failure(exitCodes.noModel, 'The link does not let anybody in any more.', {
      type: 'link-used-up',
      why: 'A link is good once, and for five minutes. The server prints another one when Enter is pressed there.',
    })
  }
  return { url, token, pairedAt: new Date().toISOString(), ...(pinned && { pinned }) }
}

export function addressOfServer(
  server: Pick<KnownServer, 'url' | 'token' | 'pinned'>,
): ServerAddress & ReturnType<typeof transportFor> {
  return { baseUrl: server.url, token: server.token, ...transportFor(wayTo(server)) }
}

function wayTo({ pinned }: Pick<KnownServer, 'pinned'>): Way {
  return pinned ? { type: 'pinned', ...pinned } : { type: 'network' }
}

/** The certificate that the server shows, if it is the one that the link names. Nothing is sent to any other. */
async function pinnedCertificate(url: string, fingerprint: string): Promise<NonNullable<KnownServer['pinned']>> {
  const { hostname: host, port } = new URL(url)
  const { promise, resolve, reject } = Promise.withResolvers<{ raw: Buffer; fingerprint256: string }>()
  const socket = connect(
    { host: host.replace(/^\[(.*)\]$/, '$1'), port: Number(port || 443), rejectUnauthorized: false, timeout: 10_000 },
    () => resolve(socket.getPeerCertificate()),
  )
  socket.once('error', reject)
  socket.once('timeout', () => reject(new Error('It does not answer.')))
  try {
    const shown = await promise.catch((cause: unknown) => {
      throw connectionFailure(url, cause)
    })
    if (shown.fingerprint256 === fingerprint) return { certificate: pemOf(shown.raw), fingerprint }
    throw new Failure(exitCodes.configuration, `${harmlessLine(url)} shows another certificate than its link names.`, {
      type: 'wrong-certificate',
      why: 'Somebody may be in between. Nothing was sent.',
      next: ['tapetree serve --self-signed'],
    })
  } finally {
    socket.destroy()
  }
}

function pemOf(raw: Buffer): string {
  const lines = raw.toString('base64').match(/.{1,64}/g) ?? []
  return `-----BEGIN CERTIFICATE-----\n${lines.join('\n')}\n-----END CERTIFICATE-----\n`
}
