import { ProblemError, RestClient } from '@tapetree/client'
import { textOption, type Invocation } from '../../command-line/command.ts'
import { exitCodes, type ExitCode } from '../../command-line/exit-code.ts'
import { Failure } from '../../command-line/failure.ts'
import { harmlessLine } from '../../text/harmless.ts'
import { connectionFailure } from '../../host/connection-failure.ts'
import { findSessionIn, type SearchedSessions } from '../../host/find-session.ts'
import type { KnownServer, KnownServers } from '../../host/known-servers.ts'
import { addressOfServer, pair, type ServerLink } from '../../host/pair.ts'
import { remoteSource } from '../../host/remote-source.ts'
import { infoOf, sessionPage } from '../../host/session-page.ts'
import { surroundingsOf } from '../../host/surroundings.ts'
import { write, type Io } from '../../command-line/io.ts'
import { noticesOf } from '../chat/chat-notices.ts'
import { lookOf, showChat } from '../chat/screen.ts'

export interface AttachServerOptions {
  link: ServerLink
  /** Id, name or `last`; absent: there is a list. */
  session: string | undefined
  servers: KnownServers
  invocation: Invocation
  io: Io
}

export async function attachServer(options: AttachServerOptions): Promise<ExitCode> {
  const { session, invocation, io } = options
  const server = await serverFor(options)
  const address = addressOfServer(server)
  const source = remoteSource({ address, where: server.url, clientName: 'terminal' })
  try {
    const rest = new RestClient(address)
    await requireServer(rest, server)
    const sessionId = session === undefined ? undefined : await findThere(rest, session, server)
    const { settings } = await surroundingsOf(io, { cwd: io.cwd })
    const first = sessionId === undefined ? undefined : await source.open(sessionId)
    const look = lookOf(invocation, settings.values.terminal, io)
    const end = await showChat({ io, cwd: first?.cwd, source, first, look, notices: noticesOf({ first, settings }) })
    if (end.sessionId !== undefined) {
      await write(io.stderr, `To go on with it: tapetree attach ${server.url} ${end.sessionId}\n`)
    }
    return exitCodes.ok
  } finally {
    await source.close()
  }
}

/** A code counts for more than a token, and a token that was given for more than one that is remembered. */
async function serverFor({ link, servers, invocation, io }: AttachServerOptions): Promise<KnownServer> {
  if (link.code !== undefined) {
    const paired = await pair(link)
    await servers.remember(paired)
    return paired
  }
  const known = await servers.find(link.url)
  const token = textOption(invocation, 'token') ?? io.env['TAPETREE_TOKEN']
  if (token !== undefined && token !== '') return { ...known, url: link.url, token, pairedAt: '' }
  if (known) return known
  throw new Failure(exitCodes.noModel, `${harmlessLine(link.url)} has not let this device in yet.`, {
    type: 'not-paired',
    why: 'Use the link that the server prints, or a token of it.',
    next: [
      `tapetree attach '${harmlessLine(link.url)}/#pair=<code>'`,
      `tapetree attach ${harmlessLine(link.url)} --token <token>`,
    ],
  })
}

/** Asked before any screen is drawn: a server that does not let us in is told in a sentence. */
async function requireServer(rest: RestClient, { url }: KnownServer): Promise<void> {
  await rest.sessions({ limit: 1 }).catch((error: unknown) => {
    if (error instanceof ProblemError && error.type === 'unreachable') throw connectionFailure(url, error.cause)
    throw error
  })
}

async function findThere(rest: RestClient, reference: string, { url }: KnownServer): Promise<string> {
  const sessions: SearchedSessions = {
    list: (query) => sessionPage(rest, query),
    byId: async (id) => rest.session(id).then(infoOf, orMissing),
    commands: { list: `tapetree attach ${harmlessLine(url)}` },
  }
  return (await findSessionIn(sessions, reference)).id
}

function orMissing(error: unknown): undefined {
  if (!(error instanceof ProblemError) || error.status !== 404) throw error
}
