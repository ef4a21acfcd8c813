import { flag, textOption, type Invocation } from '../../command-line/command.ts'
import { exitCodes, type ExitCode } from '../../command-line/exit-code.ts'
import { Failure, usageFailure } from '../../command-line/failure.ts'
import { harmlessLine } from '../../text/harmless.ts'
import { findSession } from '../../host/find-session.ts'
import { KnownServers } from '../../host/known-servers.ts'
import { openStore } from '../../host/open-store.ts'
import { parseServerLink, requireSafe } from '../../host/pair.ts'
import { isInteractive, write, type Io } from '../../command-line/io.ts'
import { outputTable } from '../../text/output-table.ts'
import { placesOf } from '../../host/places.ts'
import { attachServer } from './attach-server.ts'
import { chatWith } from '../chat/here.ts'
import { printJson } from '../../command-line/print-json.ts'

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
    throw usageFailure('The chat needs a terminal to read from and to draw on.', [
      'tapetree run --session <session> "<prompt>"',
    ])
  }
  const link = parseServerLink(where)
  if (link) {
    requireSafe(link, { allowInsecure: flag(invocation, 'allow-insecure') })
    return attachServer({ link, session, servers, invocation, io })
  }
  if (session !== undefined)
    throw usageFailure('A session of this machine is named by one word.', [`tapetree attach ${where}`])
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
  // The tokens are nobody's business.
  const rows = known.map(({ url, pairedAt, pinned }) => ({
    url,
    paired_at: pairedAt,
    pinned: pinned?.fingerprint ?? null,
  }))
  if (flag(invocation, 'json')) await printJson(io, { servers: rows })
  else if (rows.length === 0)
    await write(io.stderr, 'No server is known yet. `tapetree serve` prints a link for one.\n')
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
  await write(io.stderr, `${harmlessLine(url)} is forgotten. Its token is good until the server revokes it.\n`)
  return exitCodes.ok
}
