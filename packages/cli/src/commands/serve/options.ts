import { folderInside, type ServerOptions, type TlsOptions } from '@tapetree/server'
import { realpath } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { flag, listOption, textOption, type Invocation } from '../../command-line/command.ts'
import { exitCodes } from '../../command-line/exit-code.ts'
import { Failure, usageFailure } from '../../command-line/failure.ts'
import { harmlessLine } from '../../text/harmless.ts'
import type { Io } from '../../command-line/io.ts'
import { placesOf } from '../../host/places.ts'
import { readRegularFile, type RegularFile } from '../../util/read-regular-file.ts'

/** The command line options of `serve`. */
export interface ServeOptions {
  /** Real and absolute. */
  roots: readonly string[]
  /** Rejects paths outside the roots. */
  checkFolder: (cwd: string) => Promise<unknown>
  server: Pick<ServerOptions, 'host' | 'port' | 'tls' | 'allowInsecure' | 'allowedHosts' | 'recovery'> & {
    host: string
    port: number
  }
  reach: Reach
}

/** Who can reach the server, which decides what a phone still needs. */
export type Reach = 'this-machine' | 'network' | 'insecure-network'

export async function serveOptions(invocation: Invocation, io: Io): Promise<ServeOptions> {
  const host = textOption(invocation, 'host') ?? '127.0.0.1'
  const tls = await tlsOf(invocation, io)
  const allowInsecure = flag(invocation, 'allow-insecure')
  const isHere = host === 'localhost' || host === '::1' || /^127(?:\.\d{1,3}){3}$/.test(host)
  if (!isHere && !tls && !allowInsecure) throw withoutTls(host)
  const roots = await rootsOf(invocation, io)
  return {
    roots,
    checkFolder: (cwd) => folderInside(cwd, roots),
    server: {
      host,
      port: portOf(invocation),
      ...(tls && { tls }),
      allowInsecure,
      allowedHosts: listOption(invocation, 'allowed-host'),
      ...(!flag(invocation, 'no-recovery') && { recovery: 'resume' as const }),
    },
    reach: isHere ? 'this-machine' : tls ? 'network' : 'insecure-network',
  }
}

const defaultPort = 8787

function portOf(invocation: Invocation): number {
  const given = textOption(invocation, 'port')
  const port = given === undefined ? defaultPort : Number(given)
  if (given !== undefined && (!/^\d+$/.test(given) || port > 65_535)) {
    throw usageFailure(`--port must be a number from 0 to 65535, not ${JSON.stringify(harmlessLine(given))}.`)
  }
  return port
}

async function tlsOf(invocation: Invocation, io: Io): Promise<TlsOptions | undefined> {
  const [cert, key] = [textOption(invocation, 'tls-cert'), textOption(invocation, 'tls-key')]
  const selfSigned = flag(invocation, 'self-signed')
  if (selfSigned && (cert !== undefined || key !== undefined)) {
    throw usageFailure('--self-signed creates a certificate and --tls-cert names one. Use only one of them.')
  }
  if (selfSigned) return { selfSigned: { folder: join(placesOf(io).state, 'tls') } }
  if (cert === undefined && key === undefined) return undefined
  if (cert === undefined || key === undefined) throw usageFailure('--tls-cert and --tls-key must be used together.')
  return { cert: await readPem(cert, io), key: await readPem(key, io) }
}

/** Far larger than any certificate chain. */
const maxPemBytes = 1024 * 1024

async function readPem(path: string, { cwd, signal }: Io): Promise<Buffer> {
  const file = await readRegularFile(resolve(cwd, path), { maxBytes: maxPemBytes, signal })
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

function withoutTls(host: string): Failure {
  return new Failure(exitCodes.usage, `${harmlessLine(host)} is reachable from other machines, and TLS is off.`, {
    type: 'no-tls',
    why: 'Anyone on the network could read the tokens.',
    next: [
      `tapetree serve --host ${harmlessLine(host)} --self-signed`,
      `tapetree serve --host ${harmlessLine(host)} --tls-cert <file> --tls-key <file>`,
      'tapetree serve',
    ],
  })
}

async function rootsOf(invocation: Invocation, { cwd }: Io): Promise<string[]> {
  const given = listOption(invocation, 'root')
  return Promise.all(
    (given.length > 0 ? given : [cwd]).map((root) =>
      realpath(resolve(cwd, root)).catch((cause: unknown) => {
        throw new Failure(exitCodes.notFound, `There is no folder ${harmlessLine(root)}.`, {
          type: 'folder-not-found',
          cause,
        })
      }),
    ),
  )
}
