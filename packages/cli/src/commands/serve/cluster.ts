import { NatsBus, RelayBus, type Log, type SessionBus } from '@tapetree/server'
import { randomBytes } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { hostname } from 'node:os'
import { resolve } from 'node:path'
import { textOption, type Invocation } from '../../command-line/command.ts'
import { exitCodes } from '../../command-line/exit-code.ts'
import { Failure, usageFailure } from '../../command-line/failure.ts'
import type { Io } from '../../command-line/io.ts'
import type { NodeStore } from '../../host/node-store.ts'
import type { StoreAddress } from '../../host/store-address.ts'
import { harmlessLine } from '../../text/harmless.ts'

/** The place of this server among those of its database. */
export interface ClusterOptions {
  /** The name of this server; undefined: it is alone. */
  node: string | undefined
  busUrl: string | undefined
  /** Where the other servers connect to this one, if no broker is between them. */
  address: string | undefined
}

const busVariable = 'TAPETREE_BUS'

/** The options `--bus` and `--node`, and the variable `TAPETREE_BUS`, which may have a password. */
export async function clusterOptions(
  invocation: Invocation,
  io: Pick<Io, 'cwd' | 'env'>,
  store: StoreAddress | undefined,
): Promise<ClusterOptions> {
  const given = textOption(invocation, 'bus')
  const text = given ?? io.env[busVariable]?.trim() ?? ''
  const name = textOption(invocation, 'node')
  if (name !== undefined && !/^[\w.:-]{1,100}$/.test(name)) {
    throw usageFailure('--node must be 1 to 100 letters, digits or any of . : _ -')
  }
  if (text === '') return { node: name, busUrl: undefined, address: undefined }
  if (store?.type !== 'postgres') {
    throw usageFailure('--bus connects servers of one database, so it needs --store postgres://….', [
      'tapetree serve --store postgres://user@host/database --bus nats://host:4222',
    ])
  }
  const isFile = text.startsWith('@')
  const busUrl = isFile ? (await contentOf(resolve(io.cwd, text.slice(1)))).trim() : text
  const url = URL.parse(busUrl)
  if (!url || !/^(?:nats|tls|https?):$/.test(url.protocol)) {
    throw usageFailure(
      '--bus must be the URL of a NATS server (nats:// or tls://), or the one at which other servers reach this one (http:// or https://).',
    )
  }
  if (given !== undefined && !isFile && (url.password !== '' || url.username !== '')) {
    throw new Failure(exitCodes.usage, '--bus has a password, and other users can see the command line.', {
      type: 'visible-password',
      why: `Put the URL into ${busVariable}, or into a private file.`,
      next: ['tapetree serve … --bus @<file>'],
    })
  }
  const isRelay = url.protocol.startsWith('http')
  return { node: name ?? `${hostname()}-${process.pid}`, busUrl, address: isRelay ? busUrl : undefined }
}

/** Connects to the other servers. */
export async function openBus(
  { node, busUrl, address }: ClusterOptions,
  { log, document, nodes }: { log: Log } & Partial<Pick<NodeStore, 'document' | 'nodes'>>,
): Promise<SessionBus | undefined> {
  if (busUrl === undefined || node === undefined) return undefined
  const report = (problem: string): void => log.warn({ source: 'bus' }, problem)
  if (address !== undefined && document && nodes) {
    const peers = async (): Promise<{ node: string; url: string }[]> =>
      (await nodes()).flatMap(({ name, address: url }) => (url.startsWith('http') ? [{ node: name, url }] : []))
    return new RelayBus({ node, peers, secret: await sharedSecret(document('bus')), report })
  }
  return NatsBus.open({ node, url: busUrl, report }).catch((cause: unknown) => {
    throw new Failure(exitCodes.configuration, 'The bus between the servers cannot be used.', {
      type: 'bus-unreachable',
      why: harmlessLine(cause instanceof Error ? cause.message : String(cause)),
      next: [],
      cause,
    })
  })
}

/** Whoever may use the database may use the bus: the first server makes the secret, and the others read it there. */
async function sharedSecret(document: ReturnType<NodeStore['document']>): Promise<string> {
  for (;;) {
    const known = await document.read()
    if (known) return known.content
    await document.write(randomBytes(32).toString('base64url'), 0)
  }
}

async function contentOf(file: string): Promise<string> {
  return readFile(file, 'utf8').catch((cause: unknown) => {
    throw new Failure(exitCodes.notFound, `The file ${harmlessLine(file)} of --bus cannot be read.`, {
      type: 'file-not-found',
      cause,
    })
  })
}
