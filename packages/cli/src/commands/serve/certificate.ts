import { unwatchFile, watchFile } from 'node:fs'
import type { Log, RunningServer } from '@tapetree/server'
import { resolve } from 'node:path'
import { textOption, type Invocation } from '../../command-line/command.ts'
import type { Io } from '../../command-line/io.ts'
import { Failure } from '../../command-line/failure.ts'
import { exitCodes } from '../../command-line/exit-code.ts'
import { harmlessLine } from '../../text/harmless.ts'
import { readRegularFile, type RegularFile } from '../../util/read-regular-file.ts'

/** The files of a certificate and its private key, as absolute paths. */
export interface CertificateFiles {
  cert: string
  key: string
}

export async function readCertificate(
  { cert, key }: CertificateFiles,
  signal: AbortSignal,
): Promise<{ cert: Buffer; key: Buffer }> {
  return { cert: await readPem(cert, signal), key: await readPem(key, signal) }
}

/** Reads the certificate again on SIGHUP and when its files change. A certificate that cannot be used leaves the old one. */
export function reloadOnDemand(
  server: RunningServer,
  { invocation, io, log }: { invocation: Invocation; io: Io; log: Log },
): () => void {
  const [cert, key] = [textOption(invocation, 'tls-cert'), textOption(invocation, 'tls-key')]
  if (cert === undefined || key === undefined) {
    return io.onHangup?.(() => log.info('Nothing to reload: the server has no certificate file.')) ?? noop
  }
  const files = { cert: resolve(io.cwd, cert), key: resolve(io.cwd, key) }
  const reload = async (): Promise<void> => {
    try {
      server.reloadTls(await readCertificate(files, io.signal))
      log.info({ cert: files.cert }, 'The certificate was reloaded.')
    } catch (error) {
      log.error({ cert: files.cert, error }, 'The certificate was not reloaded; the previous one stays in use.')
    }
  }
  const stops = [io.onHangup?.(() => void reload()) ?? noop, watchCertificate(files, () => void reload())]
  return () => {
    for (const stop of stops) stop()
  }
}

function noop(): void {}

/** How often the files are checked. Tools that renew certificates leave the old one valid for days. */
const checkMs = 5000

/** Calls `onChange` after one of the files has changed. Follows links, which such tools replace. */
export function watchCertificate(
  { cert, key }: CertificateFiles,
  onChange: () => void,
  { intervalMs = checkMs }: { intervalMs?: number } = {},
): () => void {
  for (const path of [cert, key]) watchFile(path, { interval: intervalMs, persistent: false }, onChange)
  return () => {
    for (const path of [cert, key]) unwatchFile(path, onChange)
  }
}

/** Far larger than any certificate chain. */
const maxPemBytes = 1024 * 1024

async function readPem(path: string, signal: AbortSignal): Promise<Buffer> {
  const file = await readRegularFile(path, { maxBytes: maxPemBytes, signal })
  if (file.type === 'read') return file.bytes
  throw new Failure(exitCodes.configuration, `Cannot use ${harmlessLine(path)} as a certificate or key.`, {
    type: 'unreadable-file',
    why: whyNot(file),
    next: ['tapetree serve --self-signed'],
  })
}

function whyNot(file: Exclude<RegularFile, { type: 'read' }>): string {
  switch (file.type) {
    case 'not-found':
      return 'The file does not exist.'
    case 'no-file':
      return 'It is not a regular file.'
    case 'too-large':
      return `It has ${file.size} bytes; the limit is ${maxPemBytes}.`
    case 'unreadable':
      return file.cause.message
    default:
      return file satisfies never
  }
}
