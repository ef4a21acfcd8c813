import { replaceFile } from '@tapetree/session/util/replace-file'
import { X509Certificate } from 'node:crypto'
import { mkdir, readFile } from 'node:fs/promises'
import { isIP } from 'node:net'
import { join } from 'node:path'
import { makeCertificate } from './self-signed.ts'

/** A certificate as PEM; or a self-signed one, stored in a folder so that it stays the same. */
export type TlsOptions = { cert: string | Buffer; key: string | Buffer } | { selfSigned: { folder: string } }

export interface TlsKeys {
  cert: string | Buffer
  key: string | Buffer
  /** SHA-256 of the certificate, if it is self-signed. */
  fingerprint?: string
}

/** A self-signed certificate is renewed this long before it expires. */
const renewMs = 7 * 24 * 60 * 60_000

export async function loadTls(options: TlsOptions, names: readonly string[], now: number): Promise<TlsKeys> {
  if (!('selfSigned' in options)) return options
  const { folder } = options.selfSigned
  const kept = await readKept(folder)
  const usable = kept && isUsable(kept.cert, { names, now }) ? kept : await makeAndKeep(folder, names, now)
  return { ...usable, fingerprint: new X509Certificate(usable.cert).fingerprint256 }
}

function isUsable(cert: string, { names, now }: { names: readonly string[]; now: number }): boolean {
  const certificate = new X509Certificate(cert)
  if (Date.parse(certificate.validTo) - now < renewMs) return false
  const isFor = (name: string): string | undefined =>
    isIP(name) === 0 ? certificate.checkHost(name) : certificate.checkIP(name)
  return names.every((name) => isFor(name) !== undefined)
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
