import type { Connect } from '@tapetree/client'
import { request as plainRequest, type ClientRequest, type IncomingMessage, type RequestOptions } from 'node:http'
import { request as tlsRequest } from 'node:https'
import { connect as connectSocket } from 'node:net'
import { Readable } from 'node:stream'
import type { checkServerIdentity, PeerCertificate } from 'node:tls'
import { WebSocket } from 'ws'
import { exitCodes } from '../command-line/exit-code.ts'
import { Failure } from '../command-line/failure.ts'
import { harmlessLine } from '../text/harmless.ts'

/** How a server is reached. */
export type Way =
  | { type: 'network' }
  /** Over TLS with exactly this certificate, for any host name. */
  | { type: 'pinned'; certificate: string; fingerprint: string }
  | { type: 'unix-socket'; path: string }

/** What the client needs to reach a server that the platform's `fetch` and `WebSocket` cannot. */
export interface Transport {
  fetch: typeof globalThis.fetch
  connect: Connect
}

export function transportFor(way: Way): Transport {
  const fetch: typeof globalThis.fetch =
    way.type === 'network' ? globalThis.fetch : (input, init) => fetchBy(way, new Request(input, init))
  return { fetch, connect: (url, protocols) => new WebSocket(url, protocols, socketOptions(way)) }
}

export function socketOptions(way: Way): WebSocket.ClientOptions {
  // Frames are small and many: compression costs more than it saves.
  const common = { perMessageDeflate: false, handshakeTimeout: 10_000 }
  switch (way.type) {
    case 'network':
      return common
    case 'pinned':
      // The types of `ws` declare another return type for this check.
      return { ...common, ...(pinnedTo(way) as object) }
    case 'unix-socket':
      return { ...common, createConnection: () => connectSocket(way.path) }
    default:
      return way satisfies never
  }
}

/**
 * The certificate is its own authority, so the handshake rejects any other before anything is sent. Sets the rejection explicitly, because
 * an environment variable can change the default.
 */
function pinnedTo({ certificate, fingerprint }: Extract<Way, { type: 'pinned' }>): {
  ca: string
  rejectUnauthorized: true
  checkServerIdentity: typeof checkServerIdentity
} {
  return {
    ca: certificate,
    rejectUnauthorized: true,
    checkServerIdentity: (_name: string, peer: PeerCertificate) =>
      peer.fingerprint256 === fingerprint ? undefined : wrongCertificate(),
  }
}

const wrongCertificateCode = 'ANOTHER_CERTIFICATE'

function wrongCertificate(): Error {
  return Object.assign(new Error('The server presents another certificate.'), { code: wrongCertificateCode })
}

async function fetchBy(way: Exclude<Way, { type: 'network' }>, asked: Request): Promise<Response> {
  const { pathname, search, hostname, port } = new URL(asked.url)
  const body = asked.body === null ? undefined : Buffer.from(await asked.arrayBuffer())
  const headers = Object.fromEntries(asked.headers)
  if (body) headers['content-length'] = String(body.length)
  const common: RequestOptions = { method: asked.method, path: pathname + search, headers, signal: asked.signal }
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>()
  const request: ClientRequest =
    way.type === 'unix-socket'
      ? plainRequest({ ...common, socketPath: way.path, headers: { ...headers, host: 'localhost' } }, resolve)
      : tlsRequest({ ...common, host: hostname.replace(/^\[(.*)\]$/, '$1'), port, ...pinnedTo(way) }, resolve)
  request.on('error', reject)
  request.end(body)
  return responseOf(await promise)
}

function responseOf(message: IncomingMessage): Response {
  const { statusCode: status = 500, statusMessage: statusText = '' } = message
  const headers = new Headers()
  for (const [name, values = []] of Object.entries(message.headersDistinct)) {
    for (const value of values) headers.append(name, value)
  }
  const hasBody = status !== 204 && status !== 304
  if (!hasBody) message.resume()
  const body = hasBody ? (Readable.toWeb(message) as ReadableStream<Uint8Array>) : null
  return new Response(body, { status, statusText, headers })
}

/** Why a connection to a server failed: no answer, or an untrusted certificate. */
export function connectionFailure(url: string, cause: unknown): Failure {
  const shown = harmlessLine(url)
  const code = certificateCode(cause)
  if (code === undefined) {
    return new Failure(exitCodes.notFound, `${shown} does not answer.`, {
      type: 'unreachable',
      why: 'The server may be down, or only reachable from its own machine.',
      next: ['tapetree serve'],
      cause,
    })
  }
  return new Failure(exitCodes.configuration, `The certificate of ${shown} is not trusted (${code}).`, {
    type: 'untrusted-certificate',
    why: 'Nothing was sent. For a self-signed certificate, use the pairing link that the server prints.',
    next: [`tapetree attach '${shown}/#pair=<code>&fingerprint=<fingerprint>'`],
    cause,
  })
}

/** Of the error or one of its causes. */
function certificateCode(error: unknown): string | undefined {
  for (let each = error; each instanceof Error; each = each.cause) {
    const { code } = each as NodeJS.ErrnoException
    if (code !== undefined && certificateCodes.test(code)) return code
  }
  return undefined
}

/** Named as in OpenSSL and Node. */
const certificateCodes = new RegExp(
  `CERT|^UNABLE_TO_(?:VERIFY|GET_ISSUER|DECODE_ISSUER)|^(?:INVALID_CA|INVALID_PURPOSE|HOSTNAME_MISMATCH|PATH_LENGTH_EXCEEDED)$|^${wrongCertificateCode}$`,
)
