import { NatsBus, type Log, type SessionBus } from '@tapetree/server'
import { readFile } from 'node:fs/promises'
import { hostname } from 'node:os'
import { resolve } from 'node:path'
import { textOption, type Invocation } from '../../command-line/command.ts'
import { exitCodes } from '../../command-line/exit-code.ts'
import { Failure, usageFailure } from '../../command-line/failure.ts'
import type { Io } from '../../command-line/io.ts'
import type { StoreAddress } from '../../host/store-address.ts'
import { harmlessLine } from '../../text/harmless.ts'

/** The place of this server among those of its database. */
export interface ClusterOptions {
  /** The name of this server; undefined: it is alone. */
  node: string | undefined
  busUrl: string | undefined
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
  if (text === '') return { node: name, busUrl: undefined }
  if (store?.type !== 'postgres') {
    throw usageFailure('--bus connects servers of one database, so it needs --store postgres://….', [
      'tapetree serve --store postgres://user@host/database --bus nats://host:4222',
    ])
  }
  const isFile = text.startsWith('@')
  const busUrl = isFile ? (await contentOf(resolve(io.cwd, text.slice(1)))).trim() : text
  const url = URL.parse(busUrl)
  if (!url || !/^(?:nats|tls):$/.test(url.protocol)) {
    throw usageFailure(`--bus must be a URL that starts with nats:// or tls://.`)
  }
  if (given !== undefined && !isFile && (url.password !== '' || url.username !== '')) {
    throw new Failure(exitCodes.usage, '--bus has a password, and other users can see the command line.', {
      type: 'visible-password',
      why: `Put the URL into ${busVariable}, or into a private file.`,
      next: ['tapetree serve … --bus @<file>'],
    })
  }
  return { node: name ?? `${hostname()}-${process.pid}`, busUrl }
}

/** Connects to the other servers. */
export async function openBus({ node, busUrl }: ClusterOptions, log: Log): Promise<SessionBus | undefined> {
  if (busUrl === undefined || node === undefined) return undefined
  const report = (problem: string): void => log.warn({ source: 'bus' }, problem)
  return NatsBus.open({ node, url: busUrl, report }).catch((cause: unknown) => {
    throw new Failure(exitCodes.configuration, 'The bus between the servers cannot be used.', {
      type: 'bus-unreachable',
      why: harmlessLine(cause instanceof Error ? cause.message : String(cause)),
      next: [],
      cause,
    })
  })
}

async function contentOf(file: string): Promise<string> {
  return readFile(file, 'utf8').catch((cause: unknown) => {
    throw new Failure(exitCodes.notFound, `The file ${harmlessLine(file)} of --bus cannot be read.`, {
      type: 'file-not-found',
      cause,
    })
  })
}
