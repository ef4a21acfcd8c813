import { flag, textOption, type Invocation } from '../../command-line/command.ts'
import { exitCodes, type ExitCode } from '../../command-line/exit-code.ts'
import { Failure, usageFailure } from '../../command-line/failure.ts'
import { harmlessLine } from '../../text/harmless.ts'
import { findSession, findSessionIn, type SearchedSessions } from '../../host/find-session.ts'
import { KnownServers, type KnownServer } from '../../host/known-servers.ts'
import type { Offer } from '../../host/offer-folder.ts'
import { openStore } from '../../host/open-store.ts'
import { parseServerLink, requireSafe, addressOfServer, type ServerLink } from '../../host/pair.ts'
import { serverFor } from '../../host/server-for.ts'
import { isInteractive, write, printJson, type Io } from '../../command-line/io.ts'
import { outputTable } from '../../text/output-table.ts'
import { placesOf } from '../../host/places.ts'
import { chatWith, noticesOf } from '../chat/here.ts'
import { ProblemError, RestClient } from '@tapetree/client'
import { connectionFailure } from '../../host/transport.ts'
import { remoteSource, infoOf, sessionPage } from '../../host/remote-source.ts'
import { surroundingsOf } from '../../host/surroundings.ts'
import { lookOf, showChat } from '../chat/screen.ts'
import { offerHere } from './offer-here.ts'

/** A screen for a session of this machine or of a server. */
export async function attach(invocation: Invocation, io: Io): Promise<ExitCode> {
  const servers = new KnownServers(placesOf(io))
  if (flag(invocation, 'list')) return listServers(servers, invocation, io)
  const forgotten = textOption(invocation, 'forget')
  if (forgotten !== undefined) return forget(forgotten, servers, io)
  const [where, session] = invocation.positionals
  if (where === undefined) {
    throw usageFailure('attach needs a session or the address of a server.', [
      'tapetree attach last',
      'tapetree attach --list',
    ])
  }
  if (!isInteractive(io)) {
    throw usageFailure('The chat needs a terminal for input and output.', [
      'tapetree run --session <session> "<prompt>"',
    ])
  }
  const link = parseServerLink(where)
  if (link) {
    requireSafe(link, { allowInsecure: flag(invocation, 'allow-insecure') })
    return attachServer({ link, session, servers, invocation, io })
  }
  if (session !== undefined)
    throw usageFailure('A session on this machine is a single argument.', [`tapetree attach ${where}`])
  const store = await openStore(placesOf(io))
  try {
    const found = await findSession(store, where, { cwd: io.cwd })
    return await chatWith({ type: 'open', session: found }, { store, invocation, io, prompt: '' })
  } finally {
    await store.close()
  }
}

async function listServers(servers: KnownServers, invocation: Invocation, io: Io): Promise<ExitCode> {
  const known = await servers.list()
  // Tokens are not printed.
  const rows = known.map(({ url, pairedAt, pinned }) => ({
    url,
    paired_at: pairedAt,
    pinned: pinned?.fingerprint ?? null,
  }))
  if (flag(invocation, 'json')) await printJson(io, { servers: rows })
  else if (rows.length === 0)
    await write(io.stderr, 'There are no known servers. `tapetree serve` prints a pairing link.\n')
  else {
    const cells = rows.map(({ url, paired_at: pairedAt }) => [harmlessLine(url), pairedAt.slice(0, 10)])
    await write(
      io.stdout,
      outputTable([{ title: 'SERVER', flexible: true }, { title: 'PAIRED' }], cells, io.stdout.columns),
    )
  }
  return exitCodes.ok
}

async function forget(text: string, servers: KnownServers, io: Io): Promise<ExitCode> {
  const url = parseServerLink(text)?.url ?? text
  if (!(await servers.forget(url))) {
    throw new Failure(exitCodes.notFound, `${harmlessLine(url)} is not a known server.`, {
      type: 'server-not-found',
      next: ['tapetree attach --list'],
    })
  }
  await write(io.stderr, `Forgot ${harmlessLine(url)}. Its token stays valid until the server revokes it.\n`)
  return exitCodes.ok
}

interface AttachServerOptions {
  link: ServerLink
  /** Id, name or `last`; if absent, the user chooses from a list. */
  session: string | undefined
  servers: KnownServers
  invocation: Invocation
  io: Io
}

async function attachServer(options: AttachServerOptions): Promise<ExitCode> {
  const { session, invocation, io } = options
  const server = await serverFor(options)
  const address = addressOfServer(server)
  const source = remoteSource({ address, where: server.url, clientName: 'terminal' })
  const leaving = new AbortController()
  let offer: Pick<Offer, 'ended'> | undefined
  try {
    const rest = new RestClient(address)
    await requireServer(rest, server)
    const sessionId = session === undefined ? undefined : await findThere(rest, session, server)
    const recreate = flag(invocation, 'recreate')
    if (recreate && !flag(invocation, 'here')) throw usageFailure('--recreate needs --here.')
    if (flag(invocation, 'here')) {
      offer = await offerHere({ server, sessionId, recreate, rest, io, signal: leaving.signal })
    }
    const { settings } = await surroundingsOf(io, { cwd: io.cwd })
    const first = sessionId === undefined ? undefined : await source.open(sessionId)
    const look = lookOf(invocation, settings.values.terminal, io)
    const end = await showChat({ io, source, first, look, notices: noticesOf({ first, settings }) })
    if (end.sessionId !== undefined) {
      await write(io.stderr, `To continue: tapetree attach ${server.url} ${end.sessionId}\n`)
    }
    return exitCodes.ok
  } finally {
    leaving.abort()
    await source.close()
    // A call that must not be interrupted is finished first.
    await offer?.ended.catch(() => undefined)
  }
}

/** Connects before it draws the screen, so that a refused connection is one error message. */
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
