import { replaceFile } from '@tapetree/session/util/replace-file'
import { createPrivateKey, X509Certificate } from 'node:crypto'
import { mkdir, readFile } from 'node:fs/promises'
import { isIP, isIPv6 } from 'node:net'
import { join } from 'node:path'
import { createSecureContext, type Server } from 'node:tls'
import { makeCertificate } from './self-signed.ts'

/** A certificate as PEM; or a self-signed one, stored in a folder so that it stays the same. */
export type TlsOptions = { cert: string | Buffer; key: string | Buffer } | { selfSigned: { folder: string } }

export interface TlsKeys {
  cert: string | Buffer
  key: string | Buffer
  /** SHA-256 of the certificate, if it is self-signed. */
  fingerprint?: string
  /** Why a self-signed certificate of an earlier start was replaced. */
  renewed?: 'expires' | 'new-name'
}

export interface CertificateNames {
  /** Without one of these, a stored certificate is replaced. */
  required: readonly string[]
  /** Included in a new certificate. Systems change some of their addresses every day, which is no reason for a new one. */
  also?: readonly string[]
}

/** For new connections. Throws if the certificate cannot be used; then nothing changes. */
export function useCertificate(server: Server, { cert, key }: Pick<TlsKeys, 'cert' | 'key'>): void {
  // An empty file would be accepted below, and every handshake would fail.
  if (!new X509Certificate(cert).checkPrivateKey(createPrivateKey(key)))
    throw new Error('The private key does not belong to the certificate.')
  createSecureContext({ cert, key })
  server.setSecureContext({ cert, key })
}

/** A self-signed certificate is renewed this long before it expires. */
const renewMs = 7 * 24 * 60 * 60_000

export async function loadTls(options: TlsOptions, names: CertificateNames, now: number): Promise<TlsKeys> {
  if (!('selfSigned' in options)) return options
  const { folder } = options.selfSigned
  const kept = await readKept(folder)
  const problem = kept && problemOf(kept.cert, names.required, now)
  const usable = kept && problem === undefined ? kept : await makeAndKeep(folder, namesWith(names, kept?.cert), now)
  const fingerprint = new X509Certificate(usable.cert).fingerprint256
  return { ...usable, fingerprint, ...(problem !== undefined && { renewed: problem }) }
}

function problemOf(cert: string, names: readonly string[], now: number): TlsKeys['renewed'] {
  const certificate = new X509Certificate(cert)
  if (Date.parse(certificate.validTo) - now < renewMs) return 'expires'
  const isFor = (name: string): string | undefined =>
    isIP(name) === 0 ? certificate.checkHost(name) : certificate.checkIP(name)
  return names.every((name) => isFor(name) !== undefined) ? undefined : 'new-name'
}

/** A machine that moves between networks keeps the names of all of them, so that it does not need a new certificate for each move. */
function namesWith({ required, also = [] }: CertificateNames, cert: string | undefined): string[] {
  const earlier = cert === undefined ? '' : (new X509Certificate(cert).subjectAltName ?? '')
  const known = Array.from(earlier.matchAll(/(?:DNS|IP Address):([^, "]+)/g), ([, name = '']) => plainAddress(name))
  return [...new Set([...required, ...also, ...known])].slice(0, Math.max(required.length, maxNames))
}

const maxNames = 64

/** As systems write an IPv6 address. */
function plainAddress(name: string): string {
  return isIPv6(name) ? (URL.parse(`http://[${name}]/`)?.hostname.slice(1, -1) ?? name) : name
}

/** One file, replaced atomically: a key never lies beside the certificate of another. */
async function readKept(folder: string): Promise<{ cert: string; key: string } | undefined> {
  const text = await readFile(join(folder, fileName), 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'ENOENT') throw error
    return ''
  })
  const [key, cert] = text.split(/(?<=-----END [A-Z ]+-----\n)/)
  return key !== undefined && cert !== undefined ? { cert, key } : undefined
}

async function makeAndKeep(
  folder: string,
  names: readonly string[],
  now: number,
): Promise<{ cert: string; key: string }> {
  const made = makeCertificate(names, now)
  await mkdir(folder, { recursive: true, mode: 0o700 })
  await replaceFile(join(folder, fileName), made.key + made.cert)
  return made
}

const fileName = 'self-signed.pem'
